"""What runs before a capture on the way to it, and on which stream."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from capturelint.lifecycle.setup.points import Path, Point, ancestors, value_at, withs_at
from capturelint.project.definitions import FunctionInfo
from capturelint.project.syntax import last_name, walk_own
from capturelint.values import hierarchy
from capturelint.values.domain import (
    BoundExternal,
    External,
    ExternalInstance,
    Function,
    Instance,
    Partial,
    Value,
    options,
)
from capturelint.values.engine import Engine

_BLOCKS = ("body", "orelse", "finalbody")
_NOT_SIDE = ("default_stream", "current_stream")


@dataclass(frozen=True, slots=True)
class Earlier:
    """A statement before the capture: in the function of ``path[0]``, which the rest of the path calls."""

    path: Path
    statement: ast.stmt

    @property
    def point(self) -> Point:
        return self.path[0]


def earlier(path: Path) -> Iterator[Earlier]:
    """Statements that ran when the capture begins, nearest functions first, in the order of the source in each."""
    for index, point in enumerate(path):
        found: list[ast.stmt] = []
        way = ancestors(point.root, point.node)
        for outer, inner in pairwise(way):
            for name in _BLOCKS:
                block = getattr(outer, name, None)
                if isinstance(block, list) and inner in block:
                    found.extend(block[: block.index(inner)])
                    if name == "finalbody" or (name == "orelse" and isinstance(outer, (ast.For, ast.Try))):
                        found.extend(outer.body)  # type: ignore[attr-defined]
        for statement in found:
            yield Earlier((point.at(statement), *path[index + 1 :]), statement)


def calls_in(statement: ast.AST) -> Iterator[ast.Call]:
    """The calls that a statement itself makes; what it only defines is not called."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    if isinstance(statement, ast.Call):
        yield statement
    yield from (node for node in walk_own(statement) if isinstance(node, ast.Call))


def callees(engine: Engine, point: Point, call: ast.Call) -> list[FunctionInfo]:
    """The project's functions that a call outside regions may enter."""
    found: list[FunctionInfo] = []
    stack: list[Value] = [value_at(engine, point, call.func)]
    while stack:
        for option in options(stack.pop()):
            if isinstance(option, Function):
                found.append(option.info)
            elif isinstance(option, Partial):
                stack.append(option.function)
            elif isinstance(option, Instance):
                for name in ("forward", "__call__"):
                    method = hierarchy.find_method(engine, option.site.cls, name)
                    if method is not None:
                        found.append(method)
                        break
    return found


# -- streams ---------------------------------------------------------------------------------------------------------


def on_side_stream(engine: Engine, path: Path) -> bool:
    """Whether the code at ``path[0]`` runs under ``with torch.cuda.stream(side)``, there or in a caller."""
    return any(is_side_stream(engine, point, item.context_expr) for point in path for item in withs_at(point)) or any(
        _sets_stream(point) for point in path
    )


def in_another_capture(path: Path) -> bool:
    """Whether the code at ``path[0]`` is captured itself, on the stream of that capture."""
    return any(
        isinstance(item.context_expr, ast.Call) and last_name(item.context_expr.func) == "graph"
        for point in path
        for item in withs_at(point)
    )


def is_side_stream(engine: Engine, point: Point, node: ast.expr) -> bool:
    """Whether a context manager makes a stream the current one that is not the default stream."""
    if isinstance(node, ast.Call) and last_name(node.func) in ("stream", "StreamContext"):
        given = node.args[0] if node.args else None
        return given is None or not _is_default(point, given)
    value = value_at(engine, point, node)
    if any(isinstance(option, ExternalInstance) and "tream" in option.cls for option in options(value)):
        return not _is_default(point, node)
    return "stream" in last_name(node).lower()  # a context manager of the project's own


def _is_default(point: Point, node: ast.expr) -> bool:
    if isinstance(node, ast.Name) and point.function is not None:
        bound = point.function.assigned.get(node.id, [])
        return bool(bound) and all(last_name(each) in _NOT_SIDE for each in bound)
    return isinstance(node, ast.Call) and last_name(node.func) in _NOT_SIDE


def _sets_stream(point: Point) -> bool:
    """``torch.cuda.set_stream(side)`` earlier in the function."""
    line = point.line
    return any(
        isinstance(node, ast.Call) and last_name(node.func) == "set_stream" and node.lineno <= line
        for node in walk_own(point.root)
    )


def external_name(engine: Engine, point: Point, node: ast.expr) -> str:
    """The dotted name of a third-party function or class, empty for anything else."""
    for option in options(value_at(engine, point, node)):
        if isinstance(option, (External, BoundExternal)):
            return option.path
    return ""
