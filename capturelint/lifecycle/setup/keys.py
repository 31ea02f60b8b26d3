"""CG808: graphs kept by a key that lacks a host value on which the captured code depends."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from capturelint.findings import Around
from capturelint.lifecycle.setup.captures import Capture, report
from capturelint.lifecycle.setup.parameters import default_of, passed_to
from capturelint.lifecycle.setup.points import Path, Point, ancestors, loops_at, scope_of
from capturelint.lifecycle.setup.sizes import names_in
from capturelint.model import Confidence, Related
from capturelint.project.definitions import FunctionInfo
from capturelint.project.syntax import dotted_name, last_name, store_targets, walk_own
from capturelint.values.domain import ClassValue, Host, Unknown, options
from capturelint.values.engine import Engine
from capturelint.values.lazy import LazyScope

_HOST_TYPES = ("int", "bool", "str", "float")
_MAPPINGS = ("dict", "defaultdict", "OrderedDict")
_LOOKUPS = ("get", "pop", "setdefault", "__contains__")


@dataclass(frozen=True, slots=True)
class _Store:
    """``container[key] = ...`` at ``path[level]``, which keeps the graph."""

    level: int
    point: Point
    container: str
    key: ast.expr


def find(engine: Engine, captures: list[Capture]) -> Iterator[Around]:
    for capture in captures:
        for path in capture.paths:
            store = _store(capture, path)
            if store is None:
                continue
            for function, name in _host_parameters(engine, capture, path):
                missing = _missing(path, function, name, store)
                if missing:
                    yield _reported(capture, store, function, name, missing)
                    break


# -- where the graph is kept -----------------------------------------------------------------------------------------


def _store(capture: Capture, path: Path) -> _Store | None:
    """The nearest ``graphs[key] = ...`` on the way out, of the graph itself or of what a function returned for it."""
    graph = capture.argument("cuda_graph") if capture.kind == "graph" else None
    if graph is None and capture.call is not None and isinstance(capture.call.func, ast.Attribute):
        graph = capture.call.func.value
    if isinstance(graph, ast.Subscript):
        name = dotted_name(graph.value)
        return _Store(0, path[0], name, graph.slice) if name is not None and not _positional(graph.slice) else None
    names = names_in(graph) - {"self", "cls"} if graph is not None else set()
    for level, point in enumerate(path):
        result = {id(point.node)} if level else set()
        found = _kept_in(point, names, result)
        if found is not None:
            return _Store(level, point, *found)
        names = _bound(point, result)
    return None


def _kept_in(point: Point, names: set[str], calls: set[int]) -> tuple[str, ast.expr] | None:
    named = set(names)
    for node in point.function.acts if point.function is not None else walk_own(point.root):
        if not isinstance(node, ast.Assign):
            continue
        holds = bool(names_in(node.value) & named) or any(id(each) in calls for each in ast.walk(node.value))
        if not holds:
            continue
        for target in node.targets:
            if isinstance(target, ast.Subscript) and dotted_name(target.value) and not _positional(target.slice):
                return dotted_name(target.value) or "", target.slice
        if isinstance(node.value, (ast.Tuple, ast.Call, ast.Dict, ast.Name)):
            named |= {target.id for target in store_targets(node) if isinstance(target, ast.Name)}
    return None


def _positional(key: ast.expr) -> bool:
    return isinstance(key, (ast.Slice, ast.Constant))


def _bound(point: Point, calls: set[int]) -> set[str]:
    """The names that a call's result gets at a place."""
    for node in ancestors(point.root, point.node):
        if isinstance(node, ast.Assign) and any(id(each) in calls for each in ast.walk(node.value)):
            return {target.id for target in store_targets(node) if isinstance(target, ast.Name)}
    return set()


# -- what the captured code depends on -------------------------------------------------------------------------------


def _host_parameters(engine: Engine, capture: Capture, path: Path) -> Iterator[tuple[FunctionInfo, str]]:
    """Parameters of functions on the way that the region itself reads as host values."""
    functions = [point.function for point in path if point.function is not None]
    read = {
        (owner.function, name)
        for context in capture.reach.steps
        for owner, name in context.names_read
        if isinstance(owner, LazyScope) and owner.function in functions
    }
    for function in functions:
        for each in function.parameters():
            if (function, each.arg) in read and _is_host(engine, capture, function, each):
                yield function, each.arg


def _is_host(engine: Engine, capture: Capture, function: FunctionInfo, parameter: ast.arg) -> bool:
    point = Point(function.module, function, function.node)
    if parameter.annotation is not None:
        if last_name(parameter.annotation) in _HOST_TYPES:
            return True
        declared = engine.evaluate_in(engine.module_scope(function.module), parameter.annotation)
        return any(
            isinstance(option, ClassValue)
            and any(isinstance(base, str) and base.startswith("enum.") for base in engine.mro(option.info))
            for option in options(declared)
        )
    default = default_of(function, parameter.arg)
    if isinstance(default, ast.Constant) and isinstance(default.value, (bool, int, float, str)):
        return True
    value = scope_of(engine, point).lookup(parameter.arg)
    found = list(options(value)) if value is not None else []
    if found and all(isinstance(option, Host) and not option.is_none for option in found):
        return True
    return all(isinstance(option, Unknown) for option in found) and _decides(capture, parameter.arg)


def _decides(capture: Capture, name: str) -> bool:
    """``if greedy:`` in the region's own block."""
    for statement in capture.declaration.body or ():
        for node in ast.walk(statement):
            if isinstance(node, (ast.If, ast.IfExp)):
                test = node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test
                if isinstance(test, ast.Name) and test.id == name:
                    return True
    return False


# -- whether the key has it ------------------------------------------------------------------------------------------


def _missing(path: Path, function: FunctionInfo, name: str, store: _Store) -> str:
    """What differs from call to call where the graph is kept, feeds the parameter, and is not in the key."""
    level = next(index for index, point in enumerate(path) if point.function is function)
    if level > store.level:
        return ""
    needs = {name}
    for inner in range(level, store.level):
        callee, call = path[inner].function, path[inner + 1].node
        if callee is None or not isinstance(call, ast.Call):
            return ""
        passed = [passed_to(call, callee, each) for each in needs]
        needs = {each for node in passed if node is not None for each in names_in(node)}
    point = store.point
    bases = _bases(point, needs)
    holder = {store.container.partition(".")[0]} - {"self", "cls"}
    known = _bases(point, names_in(store.key) | holder)
    varying = _varying(path, store)
    return next((each for each in sorted(bases - known) if each in varying), "")


def _bases(point: Point, names: set[str]) -> set[str]:
    """Parameters and loop variables behind some names, through the function's own assignments."""
    function = point.function
    found: set[str] = set()
    stack = list(names)
    while stack:
        name = stack.pop()
        if name in found:
            continue
        found.add(name)
        for value in function.assigned.get(name, ()) if function is not None else ():
            stack.extend(names_in(value))
        for node in walk_own(point.root):
            if isinstance(node, ast.Assign) and any(
                isinstance(target, (ast.Tuple, ast.List)) for target in node.targets
            ):
                if any(isinstance(target, ast.Name) and target.id == name for target in store_targets(node)):
                    stack.extend(names_in(node.value))
    return found


def _varying(path: Path, store: _Store) -> set[str]:
    """Names at the place of the store that are other values from call to call: what loops bind, and parameters.

    A parameter to which every caller on the ways that are known passes the same constant does not vary.
    """
    point, function = store.point, store.point.function
    found = {name for loop in loops_at(point) for name in names_in(loop.target)}
    if function is None or _made_here(function, store.container):
        return found  # what was passed is the same for all graphs in a dictionary that each call makes anew
    receivers = 1 if function.owner is not None and not function.is_static else 0
    for each in function.parameters()[receivers:]:
        outer = path[store.level + 1].node if store.level + 1 < len(path) else None
        passed = passed_to(outer, function, each.arg) if isinstance(outer, ast.Call) else None
        if outer is not None and (passed is None or isinstance(passed, (ast.Constant, ast.Attribute))):
            continue
        found.add(each.arg)
    return found


def _made_here(function: FunctionInfo, container: str) -> bool:
    """Whether each call of the function makes the dictionary anew."""
    for node in walk_own(function.node):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            if any(isinstance(target, ast.Name) and target.id == container for target in store_targets(node)):
                if isinstance(node.value, (ast.Dict, ast.DictComp)):
                    return True
                if isinstance(node.value, ast.Call) and last_name(node.value.func) in _MAPPINGS:
                    return True
    return False


def _reported(capture: Capture, store: _Store, function: FunctionInfo, name: str, missing: str) -> Around:
    node = _shown(store)
    point = store.point.at(node)
    key = store.point.module.segment(store.key, 40)
    return report(
        "CG808",
        point,
        f"graphs in `{store.container}` are told apart by `{key}`, but what is captured also depends on `{missing}`",
        f"`{missing}` is not in the key",
        Confidence.LIKELY,
        [capture],
        help=f"put it into the key: `{_with(store, key, missing)}`",
        related=[
            Related(function.module.display, function.line, f"`{name}` comes in here"),
            capture.related(),
        ],
    )


def _with(store: _Store, key: str, missing: str) -> str:
    inner = key[1:-1] if key.startswith("(") and key.endswith(")") else key
    return f"{store.container}[{inner}, {missing}]"


def _shown(store: _Store) -> ast.expr:
    """The first lookup by the key in the function, or where the key is made; else the key where it is stored."""
    function = store.point.function
    if isinstance(store.key, ast.Name) and function is not None:
        made = function.assigned.get(store.key.id, [])
        if len(made) == 1 and isinstance(made[0], (ast.Tuple, ast.Call, ast.JoinedStr)):
            return made[0]
    text = ast.dump(store.key)
    for node in walk_own(store.point.root):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            if dotted_name(node.comparators[0]) == store.container and ast.dump(node.left) == text:
                return node
        if isinstance(node, ast.Call) and last_name(node.func) in _LOOKUPS and isinstance(node.func, ast.Attribute):
            if dotted_name(node.func.value) == store.container and node.args and ast.dump(node.args[0]) == text:
                return node
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            if dotted_name(node.value) == store.container and ast.dump(node.slice) == text:
                return node
    return store.key
