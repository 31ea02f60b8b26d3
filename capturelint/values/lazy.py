"""Names outside regions, evaluated on demand.

Code around a region is not executed statement by statement: the value of a name is the join of everything that the
function binds to it, each evaluated when asked for. That costs what the question needs, and nothing more.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from capturelint.project.definitions import FunctionInfo, last_name, walk_own
from capturelint.project.module import ImportedName, Module, imported_names
from capturelint.values.domain import UNKNOWN, Mapping, Sequence, Value, element_of, join
from capturelint.values.solver import Solver

if TYPE_CHECKING:
    from capturelint.values.scope import Scope

_MAX_BINDINGS = 12


@dataclass(frozen=True, slots=True)
class Binding:
    """One way that a name gets a value. ``path`` leads into a tuple: ``(1,)`` is the second element."""

    kind: str  # value, iterate, enter, function, class, import, mutate-item, mutate-append, augment
    node: ast.AST
    path: tuple[int, ...] = ()
    imported: ImportedName | None = None


def bindings_of(node: ast.AST) -> dict[str, list[Binding]]:
    """Everything that a function's (or module's) own code binds, by name."""
    found: dict[str, list[Binding]] = {}

    def add(name: str, binding: Binding) -> None:
        found.setdefault(name, []).append(binding)

    def target(part: ast.expr, kind: str, value: ast.AST, path: tuple[int, ...] = ()) -> None:
        if isinstance(part, ast.Name):
            add(part.id, Binding(kind, value, path))
        elif isinstance(part, (ast.Tuple, ast.List)):
            for index, element in enumerate(part.elts):
                target(element, kind, value, (*path, index))
        elif isinstance(part, ast.Starred):
            target(part.value, kind, value, path)

    fallbacks = _fallbacks(node)
    for child in walk_own(node):
        if id(child) in fallbacks:
            continue
        if isinstance(child, ast.Assign):
            for each in child.targets:
                target(each, "value", child.value)
                if isinstance(each, ast.Subscript) and isinstance(each.value, ast.Name):
                    add(each.value.id, Binding("mutate-item", child))
        elif isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name):
            add(child.target.id, Binding("value" if child.value is not None else "annotation", child.value or child))
        elif isinstance(child, ast.AugAssign) and isinstance(child.target, ast.Name):
            add(child.target.id, Binding("augment", child))
        elif isinstance(child, ast.NamedExpr):
            add(child.target.id, Binding("value", child.value))
        elif isinstance(child, (ast.For, ast.AsyncFor)):
            target(child.target, "iterate", child.iter)
        elif isinstance(child, (ast.With, ast.AsyncWith)):
            for item in child.items:
                if item.optional_vars is not None:
                    target(item.optional_vars, "enter", item.context_expr)
        elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            add(child.name, Binding("function", child))
        elif isinstance(child, ast.ClassDef):
            add(child.name, Binding("class", child))
        elif isinstance(child, (ast.Import, ast.ImportFrom)):
            for name, imported in imported_names(child):
                add(name, Binding("import", child, imported=imported))
        elif isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute):
            if child.func.attr in ("append", "add", "appendleft", "extend", "insert", "update", "setdefault"):
                if isinstance(child.func.value, ast.Name):
                    add(child.func.value.id, Binding("mutate-append", child))
    return found


def _fallbacks(node: ast.AST) -> set[int]:
    """Statements that run only where an import fails: a machine that captures has its optional packages."""
    found: set[int] = set()
    for child in walk_own(node):
        if isinstance(child, ast.Try) and any(isinstance(each, (ast.Import, ast.ImportFrom)) for each in child.body):
            for handler in child.handlers:
                names = {last_name(each) for each in _exceptions(handler)}
                if names & {"ImportError", "ModuleNotFoundError", "Exception"} or handler.type is None:
                    found.update(id(each) for statement in handler.body for each in ast.walk(statement))
    return found


def _exceptions(handler: ast.ExceptHandler) -> list[ast.expr]:
    if handler.type is None:
        return []
    return handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]


@dataclass(eq=False, repr=False, slots=True)
class LazyScope:
    """The names of a function (``function`` None: the module) whose code is not executed.

    ``arguments`` binds parameters that are known; others are asked for through ``resolve_parameter``.
    """

    module: Module
    function: FunctionInfo | None
    evaluate: Callable[[LazyScope, Binding], Value]
    resolve_parameter: Callable[[LazyScope, str], Value]
    solver: Solver
    parent: LazyScope | Scope | None = None
    arguments: dict[str, Value] = field(default_factory=dict)
    names: None = None
    _bindings: dict[str, list[Binding]] | None = None
    _bound_names: set[str] | None = None
    #: what nested functions bind with ``nonlocal``
    _bound: dict[str, Value] = field(default_factory=dict)

    @property
    def bindings(self) -> dict[str, list[Binding]]:
        if self._bindings is None:
            node = self.function.node if self.function is not None else self.module.tree
            known = self.module.bindings.get(id(node))
            if known is None:
                known = self.module.bindings[id(node)] = bindings_of(node)
            self._bindings = known
        return self._bindings

    def device_blocks(self) -> list[tuple[int, int, ast.expr]]:
        """``with torch.device(...):`` blocks of the function itself: first line, last line, the device."""
        node = self.function.node if self.function is not None else self.module.tree
        known = self.module.device_blocks.get(id(node))
        if known is None:
            known = self.module.device_blocks[id(node)] = [
                (each.lineno, each.end_lineno or each.lineno, item.context_expr)
                for each in walk_own(node)
                if isinstance(each, (ast.With, ast.AsyncWith))
                for item in each.items
                if "device" in last_name(item.context_expr).lower()
            ]
        return known

    def parameter_names(self) -> set[str]:
        if self.function is None:
            return set()
        arguments = self.function.node.args
        names = {each.arg for each in self.function.parameters()}
        return names | {each.arg for each in (arguments.vararg, arguments.kwarg) if each is not None}

    def binds(self, name: str) -> bool:
        if self._bound_names is None:
            # `torch.add(x, y)` and `CACHE[key] = x` bind nothing: they change (or call) what is bound elsewhere
            self._bound_names = self.parameter_names() | {
                each
                for each, found in self.bindings.items()
                if any(not binding.kind.startswith("mutate") for binding in found)
            }
        return name in self._bound_names or name in self.arguments

    def lookup(self, name: str) -> Value | None:
        """What ``name`` may be bound to in this function or an enclosing one."""
        if not self.binds(name):
            return self.parent.lookup(name) if self.parent is not None else None
        bound = self._bound.get(name)
        value = self.solver.answer((self, name), lambda: self._work_out(name))
        return join(value, bound) if bound is not None else value

    def _work_out(self, name: str) -> Value:
        value: Value | None = None
        if name in self.arguments:
            value = self.arguments[name]
        elif name in self.parameter_names():
            value = self.resolve_parameter(self, name)
        bindings = self.bindings.get(name, [])[:_MAX_BINDINGS]
        if value is not None or any(binding.kind != "augment" for binding in bindings):
            # `x += 1` keeps what x is: a tensor is changed in place, a number stays one
            bindings = [binding for binding in bindings if binding.kind != "augment"]
        for binding in bindings:
            if not binding.kind.startswith("mutate") and binding.kind != "annotation":
                found = self.evaluate(self, binding)
                value = join(value, found) if value is not None else found
        if value is None:
            declared = next((binding for binding in bindings if binding.kind == "annotation"), None)
            value = self.evaluate(self, declared) if declared is not None else None
        for binding in bindings:
            if binding.kind.startswith("mutate"):
                value = mutated(value, binding, lambda node: self.evaluate(self, Binding("value", node)))
        return value if value is not None else UNKNOWN

    def holder_of(self, name: str) -> LazyScope | Scope | None:
        if self.binds(name):
            return self
        return self.parent.holder_of(name) if self.parent is not None else None

    def bind(self, name: str, value: Value) -> None:
        """A nested function's ``nonlocal`` store; the name's value is joined."""
        known = self._bound.get(name)
        self._bound[name] = join(known, value) if known is not None else value


def mutated(value: Value | None, binding: Binding, evaluate: Callable[[ast.expr], Value]) -> Value | None:
    """``value`` after ``xs.append(v)``, ``xs.extend(vs)`` or ``d[k] = v``."""
    node = binding.node
    if binding.kind == "mutate-item" and isinstance(node, ast.Assign):
        added = evaluate(node.value)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        added = evaluate(node.args[-1])
        if node.func.attr in ("extend", "update"):
            added = element_of(added)
    else:
        return value
    return with_element(value, added)


def with_element(value: Value | None, added: Value) -> Value | None:
    """``value`` with one more element, if it is a container."""
    if isinstance(value, Sequence):
        return Sequence(value.kind, None, join(element_of(value), added) if _has_elements(value) else added)
    if isinstance(value, Mapping):
        return Mapping(value.items, join(value.element, added) if value.element else added)
    return value


def _has_elements(value: Sequence) -> bool:
    return bool(value.items) or value.element is not None
