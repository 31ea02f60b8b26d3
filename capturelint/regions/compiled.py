"""``torch.compile`` in a mode that uses CUDA graphs: as a call, and as a decorator."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import last_name
from capturelint.regions.declaration import Declaration
from capturelint.values.domain import (
    MISSING,
    BoundExternal,
    External,
    Function,
    Host,
    Mapping,
    Partial,
    Value,
    options,
)
from capturelint.values.engine import Engine
from capturelint.values.frame import Arguments
from capturelint.values.given import arguments_of

_MODES = ("reduce-overhead", "max-autotune")
KIND = "torch.compile"


def find(engine: Engine, module: Module) -> Iterator[Declaration]:
    decorators = {id(d): info for info in module.all_functions(last_name_of_compile(module)) for d in info.decorators}
    for holder, call in module.calls_named(last_name_of_compile(module)):
        scope = engine.scope_of(holder, module)
        decorated = decorators.get(id(call))
        if decorated is not None:
            scope = engine.module_scope(module)
        if not _is_compile(engine.evaluate_in(scope, call.func)):
            continue
        given = arguments_of(call, engine.frame_for(scope))
        if not uses_graphs(given):
            continue
        if decorated is not None:
            target: Value = Function(decorated, bound=_receiver(engine, decorated))
            yield _declare(module, decorated.node, decorated, target, given)
            continue
        compiled = given.get(0, "model")
        if compiled is not None:
            yield _declare(module, call, holder, compiled, given)
    yield from _partially_applied(engine, module)
    yield from _of_modules(engine, module)


def _of_modules(engine: Engine, module: Module) -> Iterator[Declaration]:
    """``model.compile(mode="reduce-overhead")``, and calls of ``partial(torch.compile, mode=...)``."""
    for name, calls in module.uses.all_calls().items():
        for holder, call in calls:
            modes = any(keyword.arg in ("mode", "options") for keyword in call.keywords)
            if not (name == "compile" and modes) and not (name in module.names or name == "partial"):
                continue
            scope = engine.scope_of(holder, module)
            callee = engine.evaluate_in(scope, call.func)
            for option in options(callee):
                if isinstance(option, BoundExternal) and option.path == "torch.nn.Module.compile":
                    given = arguments_of(call, engine.frame_for(scope))
                    if uses_graphs(given):
                        yield _declare(module, call, holder, option.receiver, given)
                elif isinstance(option, Partial) and _is_compile(option.function):
                    given = Arguments(option.arguments, option.keywords)
                    if uses_graphs(given) and call.args:
                        yield _declare(module, call, holder, engine.evaluate_in(scope, call.args[0]), given)


def last_name_of_compile(module: Module) -> str:
    for alias, found in module.names.items():
        if any(getattr(definition, "name", None) == "compile" for definition in found):
            return alias
    return "compile"


def _partially_applied(engine: Engine, module: Module) -> Iterator[Declaration]:
    """``@partial(torch.compile, mode="reduce-overhead")``."""
    for info in module.all_functions("partial"):
        for decorator in info.decorators:
            if not (isinstance(decorator, ast.Call) and last_name(decorator.func) == "partial" and decorator.args):
                continue
            scope = engine.module_scope(module)
            given = arguments_of(decorator, engine.frame_for(scope))
            if _is_compile(given.positional[0]) and uses_graphs(given):
                target = Function(info, bound=_receiver(engine, info))
                yield _declare(module, info.node, info, target, given)


def _receiver(engine: Engine, info: FunctionInfo) -> Value | None:
    receiver = engine.receiver_of(info)
    return next(iter(receiver.values()), None)


def _is_compile(value: Value) -> bool:
    return any(isinstance(option, External) and option.path == "torch.compile" for option in options(value))


def _declare(
    module: Module, node: ast.AST, holder: FunctionInfo | None, target: Value, given: Arguments
) -> Declaration:
    """``target`` compiled as a region of its own, with what was ``given`` to ``torch.compile``."""
    name = holder.qualname if holder is not None else "<module>"
    whole = given.keyword("fullgraph")
    refuses = isinstance(whole, Host) and whole.truth is True
    return Declaration(KIND, module, node, name, holder, target=target, compiled=True, refuses_breaks=refuses)


def uses_graphs(given: Arguments) -> bool:
    mode = given.keyword("mode")
    if isinstance(mode, Host) and mode.const in _MODES:
        return True
    chosen = given.keyword("options")
    if isinstance(chosen, Mapping):
        switch = chosen.get("triton.cudagraphs")
        return isinstance(switch, Host) and switch.const is not MISSING and bool(switch.const)
    return False
