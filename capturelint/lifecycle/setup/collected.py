"""CG809, beside calls that collect: graphs dropped while another captures, and collection left on for many captures."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.findings import Around
from capturelint.lifecycle.setup.captures import Capture, is_torch_graph, report, story
from capturelint.lifecycle.setup.points import Path, Point, loops_at, value_at, withs_at
from capturelint.lifecycle.setup.sizes import names_in
from capturelint.model import Confidence
from capturelint.project.definitions import FunctionInfo, dotted_name, last_name, walk_own
from capturelint.regions.managers import BEGINS, ENDS
from capturelint.values.domain import Instance, Mapping, Sequence, Value, options
from capturelint.values.engine import Engine

_TENDS = ("freeze", "disable", "collect", "freeze_gc", "gc_collect")
_CLEARS = ("clear", "pop", "popitem")
_MANAGES = (*BEGINS, *ENDS)


def find(engine: Engine, captures: list[Capture]) -> Iterator[Around]:
    for capture in captures:
        yield from _dropped(engine, capture)
        for path in capture.paths:
            yield from _untended(capture, path)


# -- dropped in the region -------------------------------------------------------------------------------------------


def _dropped(engine: Engine, capture: Capture) -> Iterator[Around]:
    own = capture.argument("cuda_graph") if capture.kind == "graph" else None
    kept = dotted_name(own) if own is not None else None
    for point, node in _statements(capture):
        for target in _targets(node):
            name = dotted_name(target)
            if name is None or name == kept or not _holds_graph(engine, value_at(engine, point, target), 0):
                continue
            yield report(
                "CG809",
                point.at(target),
                f"`{name}` holds a graph, which is destroyed here while another one captures",
                "a graph is dropped while capturing",
                Confidence.LIKELY,
                [capture],
                help="drop it before the capture begins, or after it",
                related=[capture.related()],
            )


def _statements(capture: Capture) -> Iterator[tuple[Point, ast.AST]]:
    """What the region runs: its own block, and the functions that it enters."""
    for statement in capture.declaration.body or ():
        for node in (statement, *walk_own(statement)):
            yield capture.point.at(node), node
    entered: dict[FunctionInfo, None] = dict.fromkeys(
        context.function
        for context, step in capture.reach.steps.items()
        if context.function is not None
        and context.function is not capture.declaration.holder
        and step.confidence > Confidence.POSSIBLE
        and not step.guessed
    )
    for info in entered:
        if any(isinstance(node, ast.Call) and last_name(node.func) in _MANAGES for node in walk_own(info.node)):
            continue  # it begins and ends captures itself, piece by piece
        for node in walk_own(info.node):
            yield Point(info.module, info, node), node


def _targets(node: ast.AST) -> list[ast.expr]:
    """What ``del x``, ``x = None`` and ``graphs.clear()`` drop."""
    if isinstance(node, ast.Delete):
        return [each.value if isinstance(each, ast.Subscript) else each for each in node.targets]
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is None:
        return [each for each in node.targets if isinstance(each, (ast.Name, ast.Attribute))]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CLEARS:
        return [node.func.value]
    return []


def _holds_graph(engine: Engine, value: Value, depth: int) -> bool:
    """A graph, a container of some, or an object whose attribute is bound to one."""
    if is_torch_graph(value):
        return True
    if depth > 2:
        return False
    for option in options(value):
        if isinstance(option, (Sequence, Mapping)):
            inner = option.element
            if inner is not None and _holds_graph(engine, inner, depth + 1):
                return True
        if isinstance(option, Instance):
            for method in option.site.cls.methods.values():
                for node in walk_own(method.node):
                    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                        made = last_name(node.value.func) == "CUDAGraph"
                        if made and any(isinstance(target, ast.Attribute) for target in node.targets):
                            return True
    return False


# -- many captures ---------------------------------------------------------------------------------------------------


def _untended(capture: Capture, path: Path) -> Iterator[Around]:
    looped = [
        (point, loop)
        for point in path
        for loop in loops_at(point)
        if {name for name in names_in(loop.target) if not name.startswith("_")}
    ]
    if not looped or any(_tends(point) for point in path):
        return
    yield report(
        "CG809",
        capture.point.at(capture.begins),
        "captures in a loop with garbage collection on; if it runs during a capture and finds a dead graph, "
        "destroying that breaks the capture",
        "collection may run in here",
        Confidence.POSSIBLE,
        [capture],
        help="`gc.collect()` and `gc.freeze()` before the loop, `gc.unfreeze()` after it",
        related=list(story(path, capture))[:-1],
    )


def _tends(point: Point) -> bool:
    if any("gc" in last_name(item.context_expr).lower() for item in withs_at(point)):
        return True
    return any(
        isinstance(node, ast.Call)
        and last_name(node.func) in _TENDS
        and (dotted_name(node.func) or "").startswith("gc.")
        for node in walk_own(point.root)
    )
