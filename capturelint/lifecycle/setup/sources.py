"""Where a name or an attribute gets its value: assignments, what callers pass, defaults, class bodies."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from capturelint.lifecycle.setup.parameters import binds, default_of, passed_to
from capturelint.lifecycle.setup.points import Callers, Path, Point, value_at
from capturelint.project.bindings import AssignedName
from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.syntax import last_name, walk_own
from capturelint.values.domain import ClassValue, Instance, options
from capturelint.values.engine import Engine


@dataclass(frozen=True, slots=True)
class Source:
    """An expression whose value a name gets. ``path[0]`` is where it stands, the rest the way out from there."""

    path: Path
    node: ast.expr


@dataclass(frozen=True, slots=True)
class Sources:
    engine: Engine
    callers: Callers

    def of(self, path: Path, node: ast.Name | ast.Attribute) -> list[Source]:
        """Every source that is known; empty where none is."""
        if isinstance(node, ast.Attribute):
            return list(self._of_attribute(path, node))
        return list(self._of_name(path, node.id))

    def _of_name(self, path: Path, name: str) -> Iterator[Source]:
        point = path[0]
        function: FunctionInfo | None = point.function
        while function is not None:
            if name in {each.arg for each in function.parameters()}:
                yield from self._of_parameter(path if function is point.function else self._way(path, function), name)
            if binds(function, name):
                yield from self._of_local(path if function is point.function else self._way(path, function), name)
                return
            function = function.parent
        for definition in point.module.names.get(name, ()):
            if isinstance(definition, AssignedName) and isinstance(definition.target, ast.Name):
                yield Source((Point(point.module, None, definition.value),), definition.value)

    def _of_local(self, path: Path, name: str) -> Iterator[Source]:
        """The last assignment to a name, which an earlier one may have fed."""
        found = None
        for node in walk_own(path[0].root):
            target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
            target = node.target if isinstance(node, ast.AnnAssign) else target
            if isinstance(target, ast.Name) and target.id == name:
                value = node.value  # type: ignore[attr-defined]
                itself = value is not None and any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(value))
                if value is not None and not itself:
                    found = value
        if found is not None:
            yield Source((path[0].at(found), *path[1:]), found)

    def _of_parameter(self, path: Path, name: str) -> Iterator[Source]:
        """What the caller on the way passes (or all callers do), else the default."""
        function = path[0].function
        assert function is not None
        ways = [path[1:]] if len(path) > 1 else [(each,) for each in self.callers.of(function)]
        preset = default_of(function, name)
        default = Source((Point(function.module, function.parent, preset),), preset) if preset is not None else None
        for way in ways:
            call = way[0].node
            passed = passed_to(call, function, name) if isinstance(call, ast.Call) else None
            if passed is not None:
                yield Source(way, passed)
            elif default is not None:
                yield default
        if not ways and default is not None:
            yield default

    def _of_attribute(self, path: Path, node: ast.Attribute) -> Iterator[Source]:
        for option in options(value_at(self.engine, path[0], node.value)):
            if isinstance(option, (Instance, ClassValue)):
                cls = option.site.cls if isinstance(option, Instance) else option.info
                yield from self._of_class(path, cls, node.attr)

    def _of_class(self, path: Path, cls: ClassInfo, name: str) -> Iterator[Source]:
        for base in self.engine.mro(cls):
            if isinstance(base, str):
                continue
            stores = base.attribute_stores(name)
            for method, statement in stores:
                value = getattr(statement, "value", None)
                if isinstance(value, ast.expr) and not (isinstance(value, ast.Constant) and value.value is None):
                    yield Source(self._way(path, method, statement), value)
            declared = base.assigned.get(name)
            if declared is not None and not stores:
                yield Source((Point(base.module, None, declared),), unwrapped(declared))
            if stores or declared is not None:
                return

    def _way(self, path: Path, function: FunctionInfo, node: ast.AST | None = None) -> Path:
        """A place in a function with the callers that the way already knows for it."""
        point = Point(function.module, function, node if node is not None else function.node)
        for index, each in enumerate(path):
            if each.function is function:
                return (point, *path[index + 1 :])
        return (point,)


def unwrapped(value: ast.expr) -> ast.expr:
    """``field(default_factory=lambda: [1, 2])`` and ``field(default=(1, 2))`` stand for what they give."""
    if isinstance(value, ast.Call) and last_name(value.func) in ("field", "Field", "ib", "attrib"):
        for keyword in value.keywords:
            if keyword.arg in ("default_factory", "factory") and isinstance(keyword.value, ast.Lambda):
                return keyword.value.body
            if keyword.arg == "default":
                return keyword.value
    return value
