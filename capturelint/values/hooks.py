"""Hooks of modules: what ``register_forward_hook`` and its like are given runs with each call of the module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capturelint.model import Confidence
from capturelint.project.syntax import contains, keyword_value, last_name
from capturelint.values.domain import ExternalInstance, Function, Instance, Partial, Value, options

if TYPE_CHECKING:
    from capturelint.project.definitions import FunctionInfo
    from capturelint.project.module import Module
    from capturelint.values.engine import Engine

BEFORE, AFTER, BACKWARD = "before", "after", "backward"
_REGISTERING = {
    "register_forward_pre_hook": BEFORE,
    "register_forward_hook": AFTER,
    "register_full_backward_hook": BACKWARD,
    "register_full_backward_pre_hook": BACKWARD,
    "register_backward_hook": BACKWARD,
}
_MAX_FILES = 24
_CONDITIONAL = (ast.If, ast.Try, ast.For, ast.While, ast.Match)


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Hook:
    """A hook as one call registers it. ``at`` is the last identifier of the module's expression."""

    kind: str
    owner: Value
    at: str
    hook: Value
    confidence: Confidence
    why: str


def of_module(engine: Engine, module: Instance | ExternalInstance, callee: ast.AST) -> Iterator[Hook]:
    """The hooks that a call of ``module``, written as ``callee``, runs."""
    for each in registered(engine):
        if any(_is_same(engine, owner, module, each.at, callee) for owner in options(each.owner)):
            yield each


def _is_same(engine: Engine, owner: Value, module: Instance | ExternalInstance, at: str, callee: ast.AST) -> bool:
    if isinstance(owner, Instance) and isinstance(module, Instance):
        if owner.site is module.site:
            return True
        known = owner.site.generic or module.site.generic
        return known and (
            module.site.cls in engine.mro(owner.site.cls) or owner.site.cls in engine.mro(module.site.cls)
        )
    # two of torch's own modules with equal arguments are told apart by name
    return owner == module and isinstance(callee, ast.Call) and bool(at) and last_name(callee.func) == at


def registered(engine: Engine) -> list[Hook]:
    """Every hook that the project registers on a module that is known."""
    if engine.hooks is None:
        engine.hooks = []  # while they are looked for
        engine.hooks = [hook for name, kind in _REGISTERING.items() for hook in _find(engine, name, kind)]
    return engine.hooks


def _find(engine: Engine, name: str, kind: str) -> Iterator[Hook]:
    for module in engine.project.modules(engine.project.search.calling(name), _MAX_FILES):
        for holder, call in module.calls_named(name):
            given = call.args[0] if call.args else keyword_value(call, "hook")
            if given is None or not isinstance(call.func, ast.Attribute):
                continue
            scope = engine.scope_of(holder, module)
            owner, hook = engine.evaluate_in(scope, call.func.value), engine.evaluate_in(scope, given)
            if any(isinstance(option, (Instance, ExternalInstance)) for option in options(owner)) and any(
                isinstance(option, (Function, Partial)) for option in options(hook)
            ):
                confidence, why = _sure(module, holder, call)
                yield Hook(kind, owner, last_name(call.func.value), hook, confidence, why)


def _sure(module: Module, holder: FunctionInfo | None, call: ast.Call) -> tuple[Confidence, str]:
    """A hook that is registered under a condition, or whose handle is kept to remove it, may well be gone."""
    body = holder.node if holder is not None else module.tree
    for node in ast.walk(body):
        if isinstance(node, _CONDITIONAL) and contains(node, call):
            return Confidence.POSSIBLE, "a hook that is registered under a condition"
        if isinstance(node, ast.Call) and last_name(node.func) == "append" and call in node.args:
            return Confidence.POSSIBLE, "a hook whose handle is kept, to remove it"
    if module.uses.names_given_to(call) and module.holds(".remove()"):
        return Confidence.POSSIBLE, "a hook whose handle is kept, to remove it"
    return Confidence.LIKELY, "a hook of the module"
