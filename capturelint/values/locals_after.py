"""Names of the code that captures, which it binds anew between capture and replay.

``scale = 1.0``, then a region that multiplies by ``scale``, then ``scale = 2.0`` and a replay: in one function, or in a
script's module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import contains, last_name, store_targets, walk_own
from capturelint.values.change import Cause, of_causes
from capturelint.values.changing import GROWING, IN_PLACE
from capturelint.values.domain import Device, Host, Sequence, Tensor, Value, changed, join, options
from capturelint.values.lazy import LazyScope

if TYPE_CHECKING:
    from capturelint.values.engine import Engine


def with_changes(engine: Engine, scope: LazyScope, name: str, value: Value) -> Value:
    """``value`` of a name around a region, with why it changes; as it is where nothing binds the name after capture."""
    if not any(_can_change(option) for option in options(value)):
        return value
    node: ast.AST = scope.function.node if scope.function is not None else scope.module.tree
    recorded = _recorded_at(node)
    if recorded is None or not _replays_after(node, recorded) or engine.replays.is_key(name):
        return value
    if any(contains(loop, recorded) and _binds(loop, name) for loop in _loops(node)):
        return value  # a graph is captured for each
    found: list[Value] = []
    for option in options(value):
        change = of_causes([_cause(scope, name, each) for each in _writes(scope, node, name, option, recorded)])
        found.append(changed(option, change) if change is not None else option)
    return join(*found)


def _can_change(value: Value) -> bool:
    if isinstance(value, Tensor):
        return value.device is Device.HOST
    return isinstance(value, Sequence) or (isinstance(value, Host) and not value.is_none)


def _recorded_at(node: ast.AST) -> ast.AST | None:
    """The first statement that records a graph, or calls what is named for it."""
    for each in walk_own(node):
        if isinstance(each, (ast.With, ast.AsyncWith)) and any(
            last_name(i.context_expr) == "graph" for i in each.items
        ):
            return each
        if isinstance(each, ast.Call) and "captur" in last_name(each.func).lower():
            if "capturing" not in last_name(each.func):
                return each
    return None


def _replays_after(node: ast.AST, recorded: ast.AST) -> bool:
    line = _line(recorded)
    return any(
        isinstance(each, ast.Call) and "replay" in last_name(each.func) and each.lineno > line
        for each in walk_own(node, into_nested=True)
    )


def _writes(
    scope: LazyScope, node: ast.AST, name: str, value: Value, recorded: ast.AST
) -> Iterator[tuple[ast.AST, str]]:
    """What gives the name another value after the recording, and what that does: to a number, a tensor, a list."""
    methods = IN_PLACE if isinstance(value, Tensor) else GROWING if isinstance(value, Sequence) else ()
    for each in walk_own(node):
        if _line(each) <= _line(recorded) or contains(recorded, each):
            continue
        if any(isinstance(target, ast.Name) and target.id == name for target in store_targets(each)):
            yield each, "advanced" if isinstance(each, ast.AugAssign) else "assigned"
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in methods:
            owner = each.func.value
            if isinstance(owner, ast.Name) and owner.id == name:
                yield each, "written" if isinstance(value, Tensor) else "changed"
    for inner in _nested(scope.module, node):
        if any(isinstance(each, ast.Nonlocal) and name in each.names for each in walk_own(inner.node)):
            for each in walk_own(inner.node):
                if any(isinstance(target, ast.Name) and target.id == name for target in store_targets(each)):
                    yield each, "advanced" if isinstance(each, ast.AugAssign) else "assigned"


def _cause(scope: LazyScope, name: str, write: tuple[ast.AST, str]) -> Cause:
    node, verb = write
    holder = scope.function.qualname if scope.function is not None else "the module"
    reason = f"`{name}` is {verb} in {holder} ({scope.module.display}:{_line(node)})"
    return Cause(reason, carried=True)


def _nested(module: Module, node: ast.AST) -> Iterator[FunctionInfo]:
    for each in walk_own(node):
        info = module.functions.get(id(each))
        if info is not None:
            yield info


def _loops(node: ast.AST) -> Iterator[ast.AST]:
    return (each for each in walk_own(node) if isinstance(each, (ast.For, ast.AsyncFor, ast.While)))


def _binds(loop: ast.AST, name: str) -> bool:
    return any(
        isinstance(target, ast.Name) and target.id == name for each in ast.walk(loop) for target in store_targets(each)
    )


def _line(node: ast.AST) -> int:
    line: int = getattr(node, "lineno", 0)
    return line
