"""Names outside regions, evaluated on demand.

Code around a region is not executed statement by statement: the value of a name is the join of everything that the
function binds to it, each evaluated when asked for. That costs what the question needs, and nothing more.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from capturelint.project.bindings import ImportedName, imported_names
from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import CHILDLESS, last_name, walk_own
from capturelint.values import machine
from capturelint.values.domain import UNKNOWN, Host, Mapping, Sequence, Value, element_of, join, options
from capturelint.values.machine import Guard
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
    guard: Guard | None = None


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class OwnCode:
    """What the own code of a function (or module) says, whatever it is called with; found in one walk.

    ``bindings``: all that binds or changes a name. ``names``: what is bound, parameters included. ``leaving``: its
    ``return`` and ``yield``. ``device_blocks``: ``with torch.device(...)``, as first line, last line and the device.
    ``guards``: the ``isinstance`` test that a ``return`` stands behind, by the identity of the ``return``.
    ``on_machines``: the tests of the platform that a statement stands behind, by the identity of the statement.
    """

    bindings: dict[str, list[Binding]]
    parameters: frozenset[str]
    names: frozenset[str]
    leaving: list[ast.AST]
    device_blocks: list[tuple[int, int, ast.expr]]
    guards: dict[int, ast.Call]
    on_machines: dict[int, Guard]


def own_code(module: Module, function: FunctionInfo | None) -> OwnCode:
    node = function.node if function is not None else module.top
    known: OwnCode | None = module.own_code.get(id(node))
    if known is None:
        known = module.own_code[id(node)] = _read(node, function)
    return known


def _read(node: ast.AST, function: FunctionInfo | None) -> OwnCode:
    nodes = [each for each in walk_own(node) if each.__class__ not in CHILDLESS]
    on_machines = machine.guards(node, nodes)
    bindings = bindings_of(nodes, on_machines)
    parameters: frozenset[str] = frozenset()
    if function is not None:
        given = function.head.args
        extra = (each.arg for each in (given.vararg, given.kwarg) if each is not None)
        parameters = frozenset((*(each.arg for each in function.parameters()), *extra))
    # `torch.add(x, y)` and `CACHE[key] = x` bind nothing: they change (or call) what is bound elsewhere
    bound = (name for name, ways in bindings.items() if any(not way.kind.startswith("mutate") for way in ways))
    return OwnCode(
        bindings,
        parameters,
        parameters.union(bound),
        [each for each in nodes if isinstance(each, (ast.Return, ast.Yield, ast.YieldFrom))],
        [
            (each.lineno, each.end_lineno or each.lineno, item.context_expr)
            for each in nodes
            if isinstance(each, (ast.With, ast.AsyncWith))
            for item in each.items
            if "device" in last_name(item.context_expr).lower()
        ],
        {
            id(inner): node.test
            for node in nodes
            if isinstance(node, ast.If) and isinstance(node.test, ast.Call) and last_name(node.test) == "isinstance"
            for inner in node.body
            if isinstance(inner, ast.Return) and len(node.test.args) == 2
        },
        on_machines,
    )


def bindings_of(nodes: list[ast.AST], on_machines: dict[int, Guard]) -> dict[str, list[Binding]]:
    """Everything that a function's (or module's) own code binds, by name."""
    found: dict[str, list[Binding]] = {}
    guard: Guard | None = None

    def add(name: str, binding: Binding) -> None:
        found.setdefault(name, []).append(replace(binding, guard=guard) if guard is not None else binding)

    def target(part: ast.expr, kind: str, value: ast.AST, path: tuple[int, ...] = ()) -> None:
        if isinstance(part, ast.Name):
            add(part.id, Binding(kind, value, path))
        elif isinstance(part, (ast.Tuple, ast.List)):
            for index, element in enumerate(part.elts):
                target(element, kind, value, (*path, index))
        elif isinstance(part, ast.Starred):
            target(part.value, kind, value, path)

    fallbacks = _fallbacks(nodes)
    for child in nodes:
        if not isinstance(child, _BINDING) or id(child) in fallbacks:
            continue
        guard = on_machines.get(id(child))
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


_BINDING = (
    ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.For, ast.AsyncFor, ast.With, ast.AsyncWith, ast.Call,
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom,
)  # fmt: skip


def _fallbacks(nodes: list[ast.AST]) -> set[int]:
    """Statements that run only where an import fails: a machine that captures has its optional packages."""
    found: set[int] = set()
    for child in nodes:
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
    _code: OwnCode | None = None
    #: what nested functions bind with ``nonlocal``
    _bound: dict[str, Value] = field(default_factory=dict)

    @property
    def code(self) -> OwnCode:
        if self._code is None:
            self._code = own_code(self.module, self.function)
        return self._code

    def binds(self, name: str) -> bool:
        return name in self.code.names or name in self.arguments

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
        elif name in self.code.parameters:
            value = self.resolve_parameter(self, name)
        bindings = self.code.bindings.get(name, [])[:_MAX_BINDINGS]
        if value is not None or any(binding.kind != "augment" for binding in bindings):
            # `x += 1` keeps what x is: a tensor is changed in place, a number stays one
            bindings = [binding for binding in bindings if binding.kind != "augment"]
        for binding in bindings:
            if not binding.kind.startswith("mutate") and binding.kind != "annotation" and self.runs(binding.guard):
                found = self.evaluate(self, binding)
                value = join(value, found) if value is not None else found
        if value is None:
            declared = next((binding for binding in bindings if binding.kind == "annotation"), None)
            value = self.evaluate(self, declared) if declared is not None else None
        for binding in bindings:
            if binding.kind.startswith("mutate"):
                value = mutated(value, binding, lambda node: self.evaluate(self, Binding("value", node)))
        return value if value is not None else UNKNOWN

    def runs(self, guard: Guard | None) -> bool:
        """Whether the machine that captures may come to what stands behind ``guard``."""
        return guard is None or all(self._truth(test) in (None, holds) for test, holds in guard.tests)

    def always_runs(self, guard: Guard) -> bool:
        """Whether it surely does, each time that the function is called."""
        return guard.alone and all(self._truth(test) is holds for test, holds in guard.tests)

    def _truth(self, test: ast.expr) -> bool | None:
        found = {
            option.truth if isinstance(option, Host) else None
            for option in options(self.evaluate(self, Binding("value", test)))
        }
        return found.pop() if len(found) == 1 else None

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
