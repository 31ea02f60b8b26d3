"""Functions and classes as the index knows them: nodes with their module, and nothing evaluated."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from capturelint.project.forms import CHANGED, STORED_OR_REGISTERED, Form
from capturelint.project.packed import with_packed
from capturelint.project.syntax import last_name, mutations_of, store_targets, walk_own

if TYPE_CHECKING:
    from capturelint.project.bodies import Body
    from capturelint.project.module import Module

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_REGISTERING = frozenset(
    ("register_buffer", "register_parameter", "add_module", "register_module", "__setattr__", "setattr")
)
_ACTS = with_packed((ast.Call, ast.Expr, ast.Assign, ast.AugAssign, ast.Delete, ast.Subscript, ast.If))


@dataclass(eq=False, repr=False, slots=True)
class FunctionInfo:
    """A function, method or lambda. Identity is the object: one per node.

    ``head`` is its node for those who look at its name, signature and decorators alone: it may lack its body, which
    comes where ``node`` is asked for (see ``bodies``).
    """

    head: FunctionNode
    module: Module
    qualname: str
    owner: ClassInfo | None = None
    parent: FunctionInfo | None = None
    #: the body, as long as nobody has asked for it
    later: Body | None = None
    _assigned: dict[str, list[ast.expr]] | None = None
    _acts: tuple[ast.AST, ...] | None = None
    _bound: AttributeUses | None = None

    def __repr__(self) -> str:
        return f"<function {self.qualname} at {self.module.display}:{self.line}>"

    @property
    def node(self) -> FunctionNode:
        if self.later is not None:
            self.module.load(self.later)
        return self.head

    @property
    def is_lambda(self) -> bool:
        return isinstance(self.head, ast.Lambda)

    @property
    def name(self) -> str:
        return self.head.name if not isinstance(self.head, ast.Lambda) else "<lambda>"

    @property
    def line(self) -> int:
        return self.head.lineno

    @property
    def decorators(self) -> list[ast.expr]:
        return [] if isinstance(self.head, ast.Lambda) else self.head.decorator_list

    @property
    def body(self) -> list[ast.stmt]:
        node = self.node
        if isinstance(node, ast.Lambda):
            return [ast.copy_location(ast.Return(value=node.body), node.body)]
        return node.body

    @property
    def bound(self) -> AttributeUses:
        """What the code of a method, with all that stands in it, binds to attributes of its first parameter."""
        if self._bound is None:
            self._bound = AttributeUses()
            if self.parameters() and not self.is_static:
                receiver = self.parameters()[0].arg
                nodes = [node for node in walk_own(self.node, into_nested=True) if isinstance(node, _BINDING)]
                for attribute, node in _bindings_of(nodes, receiver):
                    self._bound.stores.setdefault(attribute, []).append(node)
                for attribute, node in mutations_of(nodes, receiver):
                    self._bound.mutations.setdefault(attribute, []).append(node)
        return self._bound

    @property
    def assigned(self) -> dict[str, list[ast.expr]]:
        """What the function's own plain assignments bind local names to."""
        if self._assigned is None:
            self._assigned = {}
            for node in walk_own(self.node):
                if isinstance(node, ast.Assign):
                    for target in node.targets:
                        if isinstance(target, ast.Name):
                            self._assigned.setdefault(target.id, []).append(node.value)
        return self._assigned

    @property
    def acts(self) -> tuple[ast.AST, ...]:
        """The calls, assignments, subscripts and branches of the function's own code, in its order."""
        if self._acts is None:
            self._acts = tuple(each for each in walk_own(self.node) if each.__class__ in _ACTS)
        return self._acts

    def has_decorator(self, *names: str) -> bool:
        """Whether a decorator's last name is one of ``names`` (``functools.wraps(f)`` counts as ``wraps``)."""
        return any(last_name(d) in names for d in self.decorators)

    @property
    def is_static(self) -> bool:
        return self.owner is not None and (self.has_decorator("staticmethod") or self.name == "__new__")

    @property
    def is_class_method(self) -> bool:
        return self.owner is not None and self.has_decorator("classmethod")

    @property
    def is_property(self) -> bool:
        return self.owner is not None and self.has_decorator("property", "cached_property")

    def parameters(self) -> list[ast.arg]:
        arguments = self.head.args
        return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


@dataclass(eq=False, repr=False, slots=True)
class ClassInfo:
    node: ast.ClassDef
    module: Module
    qualname: str
    methods: dict[str, FunctionInfo] = field(default_factory=dict)
    #: class-level bindings: the value, or None where there is only an annotation
    assigned: dict[str, ast.expr | None] = field(default_factory=dict)
    annotations: dict[str, ast.expr] = field(default_factory=dict)
    nested: dict[str, ClassInfo] = field(default_factory=dict)
    _stores: dict[str, list[tuple[FunctionInfo, ast.AST]]] = field(default_factory=dict)
    _mutations: dict[str, list[tuple[FunctionInfo, ast.AST]]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<class {self.qualname} at {self.module.display}:{self.node.lineno}>"

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def decorators(self) -> list[ast.expr]:
        return self.node.decorator_list

    @property
    def is_dataclass(self) -> bool:
        return any(last_name(d) in ("dataclass", "define", "frozen", "attrs") for d in self.decorators)

    def all_methods(self) -> Collection[FunctionInfo]:
        """For those who go through all of them, whatever they are: a method that is added is one of these too."""
        self.module.looked.listed = True
        return self.methods.values()

    def attribute_stores(self, name: str) -> list[tuple[FunctionInfo, ast.AST]]:
        """What binds ``self.name`` in this class's own methods: statements, or calls such as ``register_buffer``."""
        return self._in_methods(name, STORED_OR_REGISTERED, self._stores, lambda bound: bound.stores)

    def attribute_mutations(self, name: str) -> list[tuple[FunctionInfo, ast.AST]]:
        """What adds to the container ``self.name`` in this class's own methods."""
        return self._in_methods(name, CHANGED, self._mutations, lambda bound: bound.mutations)

    def attribute_names(self) -> list[str]:
        """The attributes that the class's own code binds or declares on its objects."""
        bound = (name for method in self.all_methods() for name in method.bound.stores)
        return list(dict.fromkeys((*bound, *self.annotations)))

    def _in_methods(
        self,
        name: str,
        form: Form,
        known: dict[str, list[tuple[FunctionInfo, ast.AST]]],
        uses: Callable[[AttributeUses], dict[str, list[ast.AST]]],
    ) -> list[tuple[FunctionInfo, ast.AST]]:
        """Asks the methods whose text speaks of a name in a form, once."""
        if name not in known:
            speaking = (each for each in self.methods.values() if self.module.may_speak_of(each, name, form))
            known[name] = [(method, node) for method in speaking for node in uses(method.bound).get(name, ())]
        return known[name]


@dataclass(eq=False, repr=False, slots=True)
class AttributeUses:
    """What binds an attribute, and what adds to the container in one, by the attribute."""

    stores: dict[str, list[ast.AST]] = field(default_factory=dict)
    mutations: dict[str, list[ast.AST]] = field(default_factory=dict)


#: statements with targets, and calls, which may store and change too
_BINDING = (ast.Call, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor, ast.With, ast.AsyncWith)


def _bindings_of(nodes: Iterable[ast.AST], receiver: str) -> Iterator[tuple[str, ast.AST]]:
    for node in nodes:
        for target in store_targets(node):
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == receiver:
                yield target.attr, node
        if isinstance(node, ast.Call) and len(node.args) >= 2 and last_name(node.func) in _REGISTERING:
            named = node.args[1] if last_name(node.func) == "setattr" else node.args[0]
            if isinstance(named, ast.Constant) and isinstance(named.value, str) and _speaks_of(node, receiver):
                yield named.value, node


def _speaks_of(call: ast.Call, receiver: str) -> bool:
    """Whether ``self.register_buffer(...)`` or ``setattr(self, ...)`` is about the method's own object."""
    subject = call.func.value if isinstance(call.func, ast.Attribute) else call.args[0]
    return isinstance(subject, ast.Name) and subject.id == receiver


def calls_within(info: FunctionInfo) -> Iterator[ast.Call]:
    """The calls in a function's own code."""
    return (node for node in walk_own(info.node) if isinstance(node, ast.Call))
