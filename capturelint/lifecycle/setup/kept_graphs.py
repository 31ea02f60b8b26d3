"""Whether the graphs that a loop captures are all kept, or each takes the last one's place."""

from __future__ import annotations

import ast

from capturelint.lifecycle.setup.captures import GRAPHED_CALLABLES, Capture
from capturelint.lifecycle.setup.parameters import binds
from capturelint.lifecycle.setup.points import Path, Point, ancestors
from capturelint.lifecycle.setup.sizes import names_in
from capturelint.project.syntax import last_name, walk_own

#: what may hold an object that it is made of
_HOLDING = (ast.Tuple, ast.Call, ast.Dict, ast.List, ast.Lambda)
_ADDS = ("append", "add", "setdefault", "extend", "insert", "appendleft", "put")


def keeps_each(capture: Capture, path: Path, index: int) -> bool:
    """Whether a graph outlives its round of a loop at ``path[index]``."""
    graph = capture.argument("cuda_graph") if capture.kind == "graph" else None
    if capture.kind == "capture_begin" and capture.call is not None and isinstance(capture.call.func, ast.Attribute):
        graph = capture.call.func.value
    if capture.kind == GRAPHED_CALLABLES:
        return _result_kept(path[0], capture.call) or _onward(path, 0, index, set())
    if isinstance(graph, ast.Subscript):
        return True
    if isinstance(graph, ast.Attribute):
        return _of_new_object(path, index, graph)
    if not isinstance(graph, ast.Name):
        return False
    return _onward(path, 0, index, {graph.id})


def _onward(path: Path, level: int, index: int, names: set[str]) -> bool:
    """Whether what is called ``names`` at ``path[level]`` is put somewhere, there or by who gets it returned."""
    if _puts(path[level], names):
        return True
    if level >= index or not _returns(path[level], names):
        return False
    outer = path[level + 1]
    if _result_kept(outer, outer.node):
        return True
    bound = _bound_to(outer)
    return bool(bound) and _onward(path, level + 1, index, bound)


def _puts(point: Point, names: set[str]) -> bool:
    """``graphs[n] = graph``, ``graphs.append((graph, out))``, also within what is made of it."""
    named = _with_closures(point, names)
    for node in walk_own(point.root):
        if isinstance(node, ast.Assign) and names_in(node.value) & named:
            if any(isinstance(target, ast.Subscript) and _lasts(point, target.value) for target in node.targets):
                return True
            if isinstance(node.value, _HOLDING):  # an entry that holds it
                named |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDS:
            if any(names_in(argument) & named for argument in node.args) and _lasts(point, node.func.value):
                return True
        if isinstance(node, ast.Yield) and node.value is not None and names_in(node.value) & named:
            return True
    return False


def _lasts(point: Point, container: ast.expr) -> bool:
    """Whether a container outlives the function: graphs that are made for a measurement are gone after it."""
    if not isinstance(container, ast.Name) or point.function is None:
        return True
    name = container.id
    if not binds(point.function, name) or name in {each.arg for each in point.function.parameters()}:
        return True
    for node in walk_own(point.root):
        if isinstance(node, (ast.Return, ast.Yield)) and node.value is not None and name in names_in(node.value):
            return not isinstance(node.value, ast.Call) or last_name(node.value.func) not in ("len", "min", "max")
        if isinstance(node, ast.Assign) and name in names_in(node.value):
            if any(isinstance(target, (ast.Attribute, ast.Subscript)) for target in node.targets):
                return True
        if isinstance(node, ast.Call) and any(isinstance(each, ast.Name) and each.id == name for each in node.args):
            if last_name(node.func) not in ("len", "print", "sorted", "enumerate", "min", "max"):
                return True
    return False


def _with_closures(point: Point, names: set[str]) -> set[str]:
    """The names, and the functions (and classes) defined here that hold on to one of them by using it."""
    named, before = set(names), 0
    while len(named) > before:
        before = len(named)
        for node in walk_own(point.root):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and names_in(node) & named:
                named.add(node.name)
    return named


def _returns(point: Point, names: set[str]) -> bool:
    named = _with_closures(point, names)
    for node in walk_own(point.root):
        if isinstance(node, ast.Assign) and isinstance(node.value, _HOLDING):
            if names_in(node.value) & named:
                named |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return any(
        isinstance(node, ast.Return) and node.value is not None and names_in(node.value) & named
        for node in walk_own(point.root)
    )


def _result_kept(point: Point, node: ast.AST | None) -> bool:
    """``graphs[n] = capture(n)``, ``graphs.append(capture(n))``, ``{n: capture(n) for n in sizes}``."""
    if node is None:
        return False
    for each in ancestors(point.root, node):
        if isinstance(each, ast.Assign):
            if any(isinstance(target, ast.Subscript) and _lasts(point, target.value) for target in each.targets):
                return True
        if isinstance(each, (ast.ListComp, ast.DictComp, ast.SetComp)):
            return True
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in _ADDS:
            return _lasts(point, each.func.value)
    return False


def _bound_to(point: Point) -> set[str]:
    for each in ancestors(point.root, point.node):
        if isinstance(each, ast.Assign):
            return {name for target in each.targets for name in names_in(target)}
    return set()


def _of_new_object(path: Path, index: int, graph: ast.Attribute) -> bool:
    """``self.graph`` is another graph in each round where the object is made in it."""
    for level in range(index):
        function = path[level].function
        if function is not None and function.name == "__init__" and function.owner is not None:
            outer = path[level + 1]
            return _result_kept(outer, outer.node) or _onward(path, level + 1, index, _bound_to(outer))
    local = isinstance(graph.value, ast.Name) and graph.value.id not in ("self", "cls")
    return local and _onward(path, 0, index, {graph.value.id})  # type: ignore[attr-defined]
