"""CG809, beside calls that collect: graphs dropped while another captures, and collection left on for many captures."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.findings import Around
from capturelint.lifecycle import stores
from capturelint.lifecycle.setup.captures import Capture, is_torch_graph, report, story
from capturelint.lifecycle.setup.points import Path, Point, loops_at, value_at, withs_at
from capturelint.lifecycle.setup.sizes import names_in
from capturelint.model import Confidence
from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.syntax import dotted_name, last_name, walk_own
from capturelint.regions.managers import BEGINS, ENDS
from capturelint.values import instances
from capturelint.values.domain import Instance, Mapping, Sequence, Value, options
from capturelint.values.engine import Engine

_TENDS = ("freeze", "disable", "collect", "freeze_gc", "gc_collect")
_CLEARS = ("clear", "pop", "popitem", "popleft")
#: how far containers and objects are looked into for a graph
_MAX_HELD = 2
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
            if name is None or name == kept:
                continue
            if not _holds_graph(engine, value_at(engine, point, target), 0) and not _kept_here(engine, point, target):
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
        if any(isinstance(node, ast.Call) and last_name(node.func) in _MANAGES for node in info.acts):
            continue  # it begins and ends captures itself, piece by piece
        for node in info.acts:
            yield Point(info.module, info, node), node


def _targets(node: ast.AST) -> list[ast.expr]:
    """What ``del x``, ``x = None``, ``graphs.clear()`` and ``graphs.popitem()`` (with its result left) drop."""
    if isinstance(node, ast.Delete):
        return [each.value if isinstance(each, ast.Subscript) else each for each in node.targets]
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is None:
        return [each for each in node.targets if isinstance(each, (ast.Name, ast.Attribute))]
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _CLEARS:
        return [call.func.value]
    return []


def _holds_graph(engine: Engine, value: Value, depth: int) -> bool:
    """A graph, a container of some, or an object one of whose attributes holds one."""
    if is_torch_graph(value):
        return True
    if depth > _MAX_HELD:
        return False
    for option in options(value):
        if isinstance(option, (Sequence, Mapping)):
            inner = option.element
            if inner is not None and _holds_graph(engine, inner, depth + 1):
                return True
        if isinstance(option, Instance) and _keeps_graph(engine, option, depth):
            return True
    return False


def _keeps_graph(engine: Engine, value: Instance, depth: int) -> bool:
    """Whether one of an object's attributes holds a graph, made by a method of its class or handed to one."""
    bases = (base for base in engine.mro(value.site.cls) if isinstance(base, ClassInfo))
    names = dict.fromkeys(name for base in bases for name in base.attribute_names())
    return any(_holds_graph(engine, instances.of_instance(engine, value, name), depth + 1) for name in names)


def _kept_here(engine: Engine, point: Point, target: ast.expr) -> bool:
    """Whether something with a graph is put into the container that ``target`` is, wherever that is done."""
    if not isinstance(target, ast.Attribute):
        return False
    for option in options(value_at(engine, point, target.value)):
        if isinstance(option, Instance):
            for store in stores.of_attribute(engine, option.site.cls, target.attr):
                value = value_at(engine, Point(store.module, store.function, store.node), store.value)
                if store.entry and _holds_graph(engine, value, 0):
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
