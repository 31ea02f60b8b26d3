"""Makes a module's index from its tree."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING

from capturelint.project.bindings import AssignedName, Definition, imported_names
from capturelint.project.bodies import Bodies, Body, put_aside
from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.syntax import CHILDLESS, children

if TYPE_CHECKING:
    from capturelint.project.module import Module
    from capturelint.project.outline import Stretch

_NONE: Mapping[int, Stretch] = MappingProxyType({})


class Indexer:
    """Registers what a module defines; bodies of functions are put aside, to be gone through when they are needed."""

    def __init__(self, module: Module, stretches: Mapping[int, Stretch] = _NONE) -> None:
        self.module = module
        self._stretches = stretches
        self._bodies: list[Body] = []
        self._within = False

    def run(self) -> None:
        module = self.module
        self._statements(module.top.body)
        self._functions([module.top], "", None)
        module.bodies = Bodies(module.text, self._bodies, module.looked)
        module.top_classes = tuple(module.classes.values())

    def within(self, body: Body) -> None:
        """Registers what stands in a function whose body has come."""
        if not self.module.bodies.may_define(body):
            return
        functions, classes = len(self.module.functions), len(self.module.classes)
        node = body.function.head
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        self._within = True
        self._functions(node.body, f"{body.function.qualname}.<locals>.", body.function)
        body.inner.extend(islice(self.module.functions.values(), functions, None))
        body.classes.extend(islice(self.module.classes.values(), classes, None))

    def _bind(self, name: str, definition: Definition) -> None:
        self.module.names.setdefault(name, []).append(definition)

    def _statements(self, body: list[ast.stmt]) -> None:
        """Top-level bindings, also those under ``if``, ``try``, ``with`` and loops."""
        for statement in body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._bind(statement.name, self._function(FunctionInfo(statement, self.module, statement.name)))
            elif isinstance(statement, ast.ClassDef):
                self._bind(statement.name, self._class(statement, ""))
            elif isinstance(statement, (ast.Import, ast.ImportFrom)):
                for name, imported in imported_names(statement):
                    if name == "*":
                        self.module.star_imports.append(imported)
                    else:
                        self._bind(name, imported)
            elif isinstance(statement, ast.Assign):
                for target in statement.targets:
                    self._assigned(target, target, statement.value)
            elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
                self._assigned(statement.target, statement.target, statement.value)
            for inner in ("body", "orelse", "finalbody"):
                nested = getattr(statement, inner, None)
                if nested and not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    self._statements(nested)
            for handler in getattr(statement, "handlers", ()):
                self._statements(handler.body)

    def _assigned(self, part: ast.expr, target: ast.expr, value: ast.expr) -> None:
        if isinstance(part, ast.Name):
            self._bind(part.id, AssignedName(target, value))
        elif isinstance(part, (ast.Tuple, ast.List)):
            for element in part.elts:
                self._assigned(element, target, value)

    def _class(self, node: ast.ClassDef, prefix: str) -> ClassInfo:
        info = ClassInfo(node, self.module, prefix + node.name)
        self.module.classes[id(node)] = info
        self._class_body(info, node.body)
        return info

    def _class_body(self, info: ClassInfo, body: list[ast.stmt]) -> None:
        for statement in body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                qualname = f"{info.qualname}.{statement.name}"
                method = self._function(FunctionInfo(statement, self.module, qualname, owner=info))
                if statement.name not in info.methods or not method.has_decorator("setter", "overload", "deleter"):
                    info.methods[statement.name] = method
            elif isinstance(statement, ast.ClassDef):
                info.nested[statement.name] = self._class(statement, info.qualname + ".")
            elif isinstance(statement, ast.Assign):
                for target in statement.targets:
                    if isinstance(target, ast.Name):
                        info.assigned[target.id] = statement.value
            elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                info.assigned.setdefault(statement.target.id, None)
                if statement.value is not None:
                    info.assigned[statement.target.id] = statement.value
                info.annotations[statement.target.id] = statement.annotation
            elif isinstance(statement, (ast.If, ast.Try, ast.With)):
                self._class_body(info, statement.body)
                self._class_body(info, getattr(statement, "orelse", []))

    def _function(self, info: FunctionInfo) -> FunctionInfo:
        self.module.functions[id(info.head)] = info
        if not self._within:
            self.module.order.append(info)
        stretch = self._stretches.get(info.line)
        if stretch is not None and not info.is_lambda:
            info.later = put_aside(info, stretch)
            self._bodies.append(info.later)
        return info

    def _functions(self, roots: Sequence[ast.AST], prefix: str, parent: FunctionInfo | None) -> None:
        """Registers every function, lambda and class that is not registered yet, with its parent."""
        stack: list[tuple[ast.AST | Body, str, FunctionInfo | None]] = [(root, prefix, parent) for root in roots]
        lambdas = "lambda" in self.module.text.source  # without one, expressions hold no functions
        while stack:
            current, prefix, parent = stack.pop()
            if isinstance(current, Body):
                self.module.order.append(current)
                continue
            aside: Body | None = None
            if isinstance(current, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                info = self.module.functions.get(id(current))
                if info is None:
                    label = current.name if not isinstance(current, ast.Lambda) else "<lambda>"
                    info = self._function(FunctionInfo(current, self.module, prefix + label, parent=parent))
                info.parent, aside = parent, info.later
                parent, prefix = info, f"{info.qualname}.<locals>."
            elif isinstance(current, ast.ClassDef):
                if id(current) not in self.module.classes:
                    self._class(current, prefix)
                prefix = self.module.classes[id(current)].qualname + "."
            below: list[ast.AST | Body] = [*(children(current) if lambdas else _blocks(current))]
            if aside is not None:
                below.insert(1 if lambdas else 0, aside)  # behind the parameters
            stack.extend([(child, prefix, parent) for child in below if child.__class__ not in CHILDLESS])


def _blocks(node: ast.AST) -> list[ast.AST]:
    """The statements below a statement, with the handlers and cases that hold some."""
    return [each for name in _BLOCKS for each in getattr(node, name, ())]


_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")
