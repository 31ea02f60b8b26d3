"""Forward hooks that run with a region's modules: those registered in the file that declares the region.

Which modules a hook sits on is not followed: a file that hooks modules and captures a model means the same ones. Hooks
that the file removes again are not taken for captured.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.model import Confidence
from capturelint.project.module import Module
from capturelint.regions.declaration import Declaration
from capturelint.values.domain import Device, Function, Tensor, Unknown, options
from capturelint.values.engine import Engine
from capturelint.values.facts import Context
from capturelint.values.frame import Arguments, Frame
from capturelint.values.sure import Sure

_FORWARD = ("register_forward_hook", "register_forward_pre_hook", "register_module_forward_hook")


def enter(engine: Engine, declaration: Declaration, frame: Frame) -> None:
    """Enters the hooks, as called from the region's own block."""
    if frame.context is None or not _calls_modules(frame.context) or _removes(declaration.module):
        return
    for hook in _registered(engine, declaration.module):
        output = Tensor(device=Device.DEVICE, confidence=Confidence.LIKELY, why="what a hooked module gives")
        given = (Unknown(), Unknown(), output)
        bound = 1 if hook.bound is not None else 0
        count = len(hook.info.parameters()) - bound
        engine.enter(
            hook,
            Arguments(given[:count]),
            declaration.node,
            frame,
            Sure(Confidence.LIKELY, "a hook that its file registers"),
        )


def _calls_modules(context: Context) -> bool:
    return any(callee.endswith((".forward", ".__call__")) for fact in context.calls.values() for callee in fact.callees)


def _registered(engine: Engine, module: Module) -> Iterator[Function]:
    for name in _FORWARD:
        for holder, call in module.calls_named(name):
            if not call.args:
                continue
            scope = engine.scope_of(holder, module)
            for option in options(engine.evaluate_in(scope, call.args[0])):
                if isinstance(option, Function):
                    yield option


def _removes(module: Module) -> bool:
    """``handle.remove()``, with nothing to remove from a list."""
    return any(isinstance(call.func, ast.Attribute) and not call.args for _, call in module.calls_named("remove"))
