"""Functions and classes as the index knows them: nodes with their module, and nothing evaluated."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from capturelint.project.forms import CHANGED, STORED_OR_REGISTERED, Form

if TYPE_CHECKING:
    from capturelint.project.bodies import Body
    from capturelint.project.module import Module

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_MUTATORS = ("append", "add", "appendleft", "extend", "insert", "update", "setdefault", "append_module")
_REGISTERING = frozenset(
    ("register_buffer", "register_parameter", "add_module", "register_module", "__setattr__", "setattr")
)
_ACTS = frozenset((ast.Call, ast.Expr, ast.Assign, ast.AugAssign, ast.Delete, ast.Subscript, ast.If))
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


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

    def attribute_stores(self, name: str) -> list[tuple[FunctionInfo, ast.AST]]:
        """What binds ``self.name`` in this class's own methods: statements, or calls such as ``register_buffer``."""
        known = self._stores.get(name)
        if known is None:
            methods = self._speaking_of(name, STORED_OR_REGISTERED)
            known = [(method, node) for method in methods for node in method.bound.stores.get(name, ())]
            self._stores[name] = known
        return known

    def attribute_mutations(self, name: str) -> list[tuple[FunctionInfo, ast.AST]]:
        """What adds to the container ``self.name`` in this class's own methods."""
        known = self._mutations.get(name)
        if known is None:
            methods = self._speaking_of(name, CHANGED)
            known = [(method, node) for method in methods for node in method.bound.mutations.get(name, ())]
            self._mutations[name] = known
        return known

    def attribute_names(self) -> list[str]:
        """The attributes that the class's own code binds or declares on its objects."""
        bound = (name for method in self.methods.values() for name in method.bound.stores)
        return list(dict.fromkeys((*bound, *self.annotations)))

    def _speaking_of(self, name: str, form: Form) -> list[FunctionInfo]:
        return [method for method in self.methods.values() if self.module.may_speak_of(method, name, form)]


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


def store_targets(statement: ast.AST) -> list[ast.expr]:
    """The targets that a statement binds, tuples unpacked."""
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor)):
        targets = [statement.target]
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        targets = [item.optional_vars for item in statement.items if item.optional_vars is not None]
    else:
        return []
    flat: list[ast.expr] = []
    stack = list(reversed(targets))
    while stack:
        target = stack.pop()
        if isinstance(target, (ast.Tuple, ast.List)):
            stack.extend(reversed(target.elts))
        elif isinstance(target, ast.Starred):
            stack.append(target.value)
        else:
            flat.append(target)
    return flat


#: nodes that say nothing by themselves: contexts and operators
_SILENT = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
_NODES = frozenset(
    cls
    for cls in vars(ast).values()
    if isinstance(cls, type) and issubclass(cls, ast.AST) and not issubclass(cls, _SILENT)
)
CHILDLESS = frozenset((ast.Name, ast.Constant, ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal, ast.alias))
#: fields that hold text, numbers or silent nodes, whatever the class
_PLAIN_FIELDS = frozenset(
    ("ctx", "op", "ops", "attr", "id", "arg", "type_comment", "kind", "level", "module", "is_async", "conversion")
)
#: lists that hold None or text among or in place of nodes
_MIXED_LISTS = frozenset(("keys", "kw_defaults", "kwd_attrs", "type_ignores"))
#: a class's fields that can hold nodes; looking at these only takes half the time of going through ``__dict__``
_FIELDS = {
    cls: tuple((each, each in _MIXED_LISTS) for each in cls._fields if each not in _PLAIN_FIELDS) for cls in _NODES
}


def children(node: ast.AST) -> list[ast.AST]:
    """A node's child nodes in order, without contexts and operators; several times as fast as ``ast``'s own."""
    if node.__class__ in CHILDLESS:
        return []
    found: list[ast.AST] = []
    held = node.__dict__
    for name, mixed in _FIELDS[node.__class__]:
        value = held.get(name)
        if value.__class__ is list:
            if mixed:
                found += [item for item in value if item.__class__ in _NODES]
            elif value:
                found += value
        elif value.__class__ in _NODES:
            found.append(value)
    return found


def walk_own(node: ast.AST, *, into_nested: bool = False) -> Iterator[ast.AST]:
    """Walks a function's own code; nested functions and classes are yielded, and entered only if asked."""
    stack: list[ast.AST] = children(node)[::-1]
    while stack:
        child = stack.pop()
        yield child
        if child.__class__ is ast.Attribute:  # the most common of all
            stack.append(child.value)
        elif child.__class__ not in CHILDLESS and (into_nested or not isinstance(child, _SCOPES)):
            below = children(child)
            below.reverse()
            stack += below


def walk_all(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, as ``ast.walk`` gives them but in the order of the source, and faster."""
    yield node
    yield from walk_own(node, into_nested=True)


def keyword_value(call: ast.Call, name: str) -> ast.expr | None:
    """What a call gives by a keyword, where that is spelled out."""
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def calls_within(info: FunctionInfo) -> Iterator[ast.Call]:
    """The calls in a function's own code."""
    return (node for node in walk_own(info.node) if isinstance(node, ast.Call))


def contains(outer: ast.AST, inner: ast.AST) -> bool:
    """Whether a node is another one, or stands in it."""
    return outer is inner or any(node is inner for node in walk_all(outer))


def last_name(node: ast.expr) -> str:
    """The last identifier of a dotted name or of what is called: ``a.b.c(x)`` gives ``c``."""
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def dotted_name(node: ast.AST) -> str | None:
    """``a.b.c`` for a chain of plain attributes, otherwise None."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    parts.append(node.id)
    return ".".join(reversed(parts))


def mutations_of(nodes: Iterable[ast.AST], receiver: str) -> Iterator[tuple[str, ast.AST]]:
    """Nodes that change a container in an attribute: ``self.xs.append(v)`` and ``self.d[k] = v``."""

    def attribute(node: ast.expr) -> str | None:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == receiver:
            return node.attr
        return None

    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript) and (name := attribute(target.value)):
                    yield name, node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MUTATORS:
            if name := attribute(node.func.value):
                yield name, node
