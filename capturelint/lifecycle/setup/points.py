"""Where code stands, and from where it is called: the way from a capture out to what sets it up.

A ``Point`` is a node in the code; where a value is kept is what ``capturelint.lifecycle.places`` knows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import children
from capturelint.values.domain import ClassValue, Function, Instance, Value, options
from capturelint.values.engine import Engine
from capturelint.values.lazy import LazyScope

#: files that are searched for callers, callers that are looked at, and how far callers of callers are followed
_MAX_FILES = 12
_MAX_CALLERS = 12
_MAX_DEPTH = 4
_MAX_PATHS = 24
#: calls of one module that are asked whether they call an object
_MAX_ASKED = 400
_CALLED_AS_OBJECT = ("__call__", "forward")

Loop = ast.For | ast.AsyncFor | ast.comprehension


@dataclass(frozen=True, slots=True)
class Point:
    """A node in a function's own code, or at module level where ``function`` is None."""

    module: Module
    function: FunctionInfo | None
    node: ast.AST

    @property
    def root(self) -> ast.AST:
        return self.function.node if self.function is not None else self.module.tree

    @property
    def scope_name(self) -> str:
        return self.function.qualname if self.function is not None else ""

    @property
    def line(self) -> int:
        return getattr(self.node, "lineno", 1)

    def at(self, node: ast.AST) -> Point:
        return Point(self.module, self.function, node)


#: from the capture outward: each place but the first is a call of the function that holds the one before
Path = tuple[Point, ...]


def scope_of(engine: Engine, point: Point) -> LazyScope:
    return engine.scope_of(point.function, point.module)


def value_at(engine: Engine, point: Point, node: ast.expr) -> Value:
    return engine.evaluate_in(scope_of(engine, point), node)


def ancestors(root: ast.AST, node: ast.AST) -> list[ast.AST]:
    """The nodes that hold ``node``, outermost first, with ``root`` and the node itself; empty if it is not there."""
    return _way(root, node, by_lines=True) or _way(root, node, by_lines=False)


def _way(root: ast.AST, node: ast.AST, *, by_lines: bool) -> list[ast.AST]:
    """``by_lines`` leaves out what stands on other lines; what is in a formatted text may have wrong ones."""
    stack: list[tuple[ast.AST, int]] = [(root, 0)]
    way: list[ast.AST] = []
    line = getattr(node, "lineno", 0)
    while stack:
        current, depth = stack.pop()
        del way[depth:]
        way.append(current)
        if current is node:
            return way
        stack.extend((child, depth + 1) for child in children(current) if not by_lines or _may_hold(child, line))
    return []


def _may_hold(outer: ast.AST, line: int) -> bool:
    """Whether a node may have another one in it that begins on ``line``; decorators stand above a function's own."""
    first, last = getattr(outer, "lineno", None), getattr(outer, "end_lineno", None)
    return first is None or last is None or first <= line <= last or bool(getattr(outer, "decorator_list", None))


def loops_at(point: Point) -> list[Loop]:
    """The ``for`` loops and comprehensions that run the place more than once, outermost first."""
    way = ancestors(point.root, point.node)
    found: list[Loop] = []
    for index, node in enumerate(way[:-1]):
        inside = way[index + 1]
        if isinstance(node, (ast.For, ast.AsyncFor)) and inside is not node.iter and inside not in node.orelse:
            found.append(node)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            found.extend(each for each in node.generators if inside is not node.generators[0])
    return found


def withs_at(point: Point) -> Iterator[ast.withitem]:
    """The context managers that are open at the place."""
    way = ancestors(point.root, point.node)
    for index, node in enumerate(way[:-1]):
        if isinstance(node, (ast.With, ast.AsyncWith)):
            inside = way[index + 1]
            if inside in node.items:
                yield from node.items[: node.items.index(inside)]
            else:
                yield from node.items


@dataclass(eq=False, repr=False, slots=True)
class Callers:
    """Who calls a function, as far as values tell; each function is asked about once."""

    engine: Engine
    _known: dict[FunctionInfo, list[Point]] = field(default_factory=dict)

    def paths(self, start: Point) -> list[Path]:
        """The ways out from a place, each as far as callers are known."""
        found: list[Path] = []
        stack: list[Path] = [(start,)]
        while stack and len(found) < _MAX_PATHS:
            path = stack.pop()
            seen = {point.function for point in path}
            outer = [
                caller for caller in self._outward(path[-1]) if caller.function is None or caller.function not in seen
            ]
            if not outer or len(path) > _MAX_DEPTH:
                found.append(path)
            stack.extend((*path, caller) for caller in outer)
        return found

    def _outward(self, point: Point) -> list[Point]:
        return self.of(point.function) if point.function is not None else []

    def of(self, info: FunctionInfo) -> list[Point]:
        if info not in self._known:
            self._known[info] = []  # while it is asked about, for functions that call themselves
            self._known[info] = self._find(info)
        return self._known[info]

    def _find(self, info: FunctionInfo) -> list[Point]:
        if info.name in _CALLED_AS_OBJECT and info.owner is not None:
            return self._calls_of_object(info.owner)
        name = info.owner.name if info.owner is not None and info.name == "__init__" else info.name
        files = self.engine.project.search.calling(name)
        modules = self.engine.project.modules(files) if len(files) <= _MAX_FILES else [info.module]
        found = []
        for module in modules:
            for holder, call in module.calls_named(name):
                point = Point(module, holder, call)
                if holder is not info and self._means(point, call, info):
                    found.append(point)
        return found[:_MAX_CALLERS]

    def _means(self, point: Point, call: ast.Call, info: FunctionInfo) -> bool:
        for option in options(value_at(self.engine, point, call.func)):
            if isinstance(option, Function) and option.info is info:
                return True
            if info.name == "__init__" and isinstance(option, ClassValue) and info.owner is not None:
                if info.owner in self.engine.mro(option.info):
                    return True
        return False

    def _calls_of_object(self, cls: ClassInfo) -> list[Point]:
        """``runner(x)`` for an object of the class."""
        files = self.engine.project.search.mentioning(cls.name)
        found = []
        for module in self.engine.project.modules(files, _MAX_FILES):
            asked = 0
            for name, calls in module.uses.all_calls().items():
                if name in module.names or not name:
                    continue  # a function, a class or a module: no object
                for holder, call in calls:
                    asked += 1
                    if asked > _MAX_ASKED:
                        break
                    point = Point(module, holder, call)
                    for option in options(value_at(self.engine, point, call.func)):
                        if isinstance(option, Instance) and cls in self.engine.mro(option.site.cls):
                            found.append(point)
                            break
        return found[:_MAX_CALLERS]
