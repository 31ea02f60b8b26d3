"""Where code stands, and from where it is called: the way from a capture out to what sets it up."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from capturelint.project.definitions import ClassInfo, FunctionInfo, children
from capturelint.project.module import Module
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
class Place:
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

    def at(self, node: ast.AST) -> Place:
        return Place(self.module, self.function, node)


#: from the capture outward: each place but the first is a call of the function that holds the one before
Path = tuple[Place, ...]


def scope_of(engine: Engine, place: Place) -> LazyScope:
    function = place.function
    if function is None:
        return engine.module_scope(place.module)
    return engine.function_scope(function, engine.receiver_of(function))


def value_at(engine: Engine, place: Place, node: ast.expr) -> Value:
    return engine.evaluate_in(scope_of(engine, place), node)


def ancestors(root: ast.AST, node: ast.AST) -> list[ast.AST]:
    """The nodes that hold ``node``, outermost first, with ``root`` and the node itself; empty if it is not there."""
    stack: list[tuple[ast.AST, int]] = [(root, 0)]
    way: list[ast.AST] = []
    while stack:
        current, depth = stack.pop()
        del way[depth:]
        way.append(current)
        if current is node:
            return way
        stack.extend((child, depth + 1) for child in children(current))
    return []


def loops_at(place: Place) -> list[Loop]:
    """The ``for`` loops and comprehensions that run the place more than once, outermost first."""
    way = ancestors(place.root, place.node)
    found: list[Loop] = []
    for index, node in enumerate(way[:-1]):
        inside = way[index + 1]
        if isinstance(node, (ast.For, ast.AsyncFor)) and inside is not node.iter and inside not in node.orelse:
            found.append(node)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            found.extend(each for each in node.generators if inside is not node.generators[0])
    return found


def withs_at(place: Place) -> Iterator[ast.withitem]:
    """The context managers that are open at the place."""
    way = ancestors(place.root, place.node)
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
    _known: dict[FunctionInfo, list[Place]] = field(default_factory=dict)

    def paths(self, start: Place) -> list[Path]:
        """The ways out from a place, each as far as callers are known."""
        found: list[Path] = []
        stack: list[Path] = [(start,)]
        while stack and len(found) < _MAX_PATHS:
            path = stack.pop()
            seen = {place.function for place in path}
            outer = [
                caller for caller in self._outward(path[-1]) if caller.function is None or caller.function not in seen
            ]
            if not outer or len(path) > _MAX_DEPTH:
                found.append(path)
            stack.extend((*path, caller) for caller in outer)
        return found

    def _outward(self, place: Place) -> list[Place]:
        return self.of(place.function) if place.function is not None else []

    def of(self, info: FunctionInfo) -> list[Place]:
        if info not in self._known:
            self._known[info] = []  # while it is asked about, for functions that call themselves
            self._known[info] = self._find(info)
        return self._known[info]

    def _find(self, info: FunctionInfo) -> list[Place]:
        if info.name in _CALLED_AS_OBJECT and info.owner is not None:
            return self._calls_of_object(info.owner)
        name = info.owner.name if info.owner is not None and info.name == "__init__" else info.name
        files = self.engine.project.search.calling(name)
        modules = self.engine.project.modules(files) if len(files) <= _MAX_FILES else [info.module]
        found = []
        for module in modules:
            for holder, call in module.calls_named(name):
                place = Place(module, holder, call)
                if holder is not info and self._means(place, call, info):
                    found.append(place)
        return found[:_MAX_CALLERS]

    def _means(self, place: Place, call: ast.Call, info: FunctionInfo) -> bool:
        for option in options(value_at(self.engine, place, call.func)):
            if isinstance(option, Function) and option.info is info:
                return True
            if info.name == "__init__" and isinstance(option, ClassValue) and info.owner is not None:
                if info.owner in self.engine.mro(option.info):
                    return True
        return False

    def _calls_of_object(self, cls: ClassInfo) -> list[Place]:
        """``runner(x)`` for an object of the class."""
        files = self.engine.project.search.mentioning(cls.name)
        found = []
        for module in self.engine.project.modules(files, _MAX_FILES):
            asked = 0
            for name, calls in module.uses.calls.items():
                if name in module.names or not name:
                    continue  # a function, a class or a module: no object
                for holder, call in calls:
                    asked += 1
                    if asked > _MAX_ASKED:
                        break
                    place = Place(module, holder, call)
                    for option in options(value_at(self.engine, place, call.func)):
                        if isinstance(option, Instance) and cls in self.engine.mro(option.site.cls):
                            found.append(place)
                            break
        return found[:_MAX_CALLERS]
