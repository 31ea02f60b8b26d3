"""The eager call beside a replay: what it passes anew at each call, and the region got once.

``self.model(self.x, cfg)`` is captured with one ``cfg``. The function that replays makes the same call where graphs are
off, with a ``cfg`` of its caller's: so that is what the code depends on, and replays keep the one of capture time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.project.definitions import FunctionInfo
from capturelint.project.syntax import dotted_name, walk_own
from capturelint.regions.declaration import Declaration
from capturelint.values import hierarchy, narrowing
from capturelint.values.change import Change, because
from capturelint.values.domain import Host, Instance, Value, changed, join, options
from capturelint.values.engine import Engine
from capturelint.values.lazy import LazyScope
from capturelint.values.scope import Scope


def bind(engine: Engine, declaration: Declaration, outer: LazyScope, scope: Scope) -> None:
    """Binds, in a region's own scope, what the eager call beside a replay gets anew."""
    for node, change in _varying(engine, declaration):
        value = _varied(engine, engine.evaluate_in(outer, node), change)
        key = narrowing.key_of(node)
        if isinstance(node, ast.Name):
            scope.bind(node.id, value)
        elif key is not None:
            scope.narrow(key, value)


def _varying(engine: Engine, declaration: Declaration) -> Iterator[tuple[ast.expr, Change]]:
    """What the region hands on, where the caller of each replay gives it anew."""
    if not engine.replays.functions:
        return
    captured = {name: call for call in _calls(declaration.body or []) if (name := dotted_name(call.func)) is not None}
    for function in engine.replays.functions:
        if function.module is not declaration.module or function is declaration.holder:
            continue
        if declaration.holder is not None and function.owner is not declaration.holder.owner:
            continue  # another class's `self.model`
        parameters = {each.arg for each in function.parameters()[1 if function.owner is not None else 0 :]}
        for node in function.acts:
            name = dotted_name(node.func) if isinstance(node, ast.Call) else None
            region = captured.get(name) if name is not None else None
            if region is None or not isinstance(node, ast.Call):
                continue
            for theirs, ours in _paired(node, region):
                if not isinstance(ours, (ast.Name, ast.Attribute)) or not isinstance(theirs, ast.Name):
                    continue
                if _is_given(function, theirs.id, parameters) and not engine.replays.is_key(theirs.id):
                    if not _is_copied(function, theirs.id):
                        place = f"{function.module.display}:{node.lineno}"
                        reason = f"`{theirs.id}` is given anew by each call of {function.qualname} ({place})"
                        yield ours, because(reason)


def _is_given(function: FunctionInfo, name: str, parameters: set[str]) -> bool:
    """A parameter, or what the function makes of its parameters."""
    made = [each for value in function.assigned.get(name, ()) for each in ast.walk(value)]
    return name in parameters or any(isinstance(each, ast.Name) and each.id in parameters for each in made)


def _varied(engine: Engine, value: Value, change: Change) -> Value:
    """``value`` with its numbers as changing: itself, or the fields of the object that it is."""
    found: list[Value] = []
    for option in options(value):
        if isinstance(option, Instance) and not hierarchy.is_module(engine, option.site.cls):
            found.append(engine.varying_instance(option, change))
        else:
            found.append(changed(option, change) if isinstance(option, Host) else option)
    return join(*found)


def _calls(body: list[ast.stmt]) -> Iterator[ast.Call]:
    return (node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Call))


def _paired(left: ast.Call, right: ast.Call) -> Iterator[tuple[ast.expr, ast.expr]]:
    if any(isinstance(each, ast.Starred) for each in (*left.args, *right.args)):
        return
    yield from zip(left.args, right.args, strict=False)
    named = {each.arg: each.value for each in right.keywords if each.arg is not None}
    for keyword in left.keywords:
        if keyword.arg in named:
            yield keyword.value, named[keyword.arg]


def _is_copied(function: FunctionInfo, name: str) -> bool:
    """Whether the replaying function writes it into something that the graph reads: ``self.scale.fill_(scale)``."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("copy_", "fill_")
        and any(isinstance(each, ast.Name) and each.id == name for each in node.args)
        for node in walk_own(function.node)
    )
