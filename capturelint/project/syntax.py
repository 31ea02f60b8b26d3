"""What the syntax tree itself tells: children, targets, names. Nothing here knows modules or functions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from capturelint.project.packed import SILENT, WITHOUT_NODES, by_class, with_packed

_MUTATORS = ("append", "add", "appendleft", "extend", "insert", "update", "setdefault", "append_module")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


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


_NODES = with_packed(
    cls
    for cls in vars(ast).values()
    if isinstance(cls, type) and issubclass(cls, ast.AST) and not issubclass(cls, SILENT)
)
CHILDLESS = with_packed(
    (ast.Name, ast.Constant, ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal, ast.alias)
)
ATTRIBUTES = with_packed((ast.Attribute,))
#: lists that hold None or text among or in place of nodes
_MIXED_LISTS = frozenset(("keys", "kw_defaults", "kwd_attrs", "type_ignores"))
#: a class's fields that can hold nodes
_FIELDS = {
    cls: tuple((each, each in _MIXED_LISTS) for each in cls._fields if each not in WITHOUT_NODES) for cls in _NODES
}

#: the same for the most common nodes, spelled out: the time of walks is spent here
_PARTS: dict[type[ast.AST], Callable[[Any], list[ast.AST]]] = by_class(
    {
        ast.Attribute: lambda node: [node.value],
        ast.Call: lambda node: [node.func, *node.args, *node.keywords],
        ast.keyword: lambda node: [node.value],
        ast.Expr: lambda node: [node.value],
        ast.Assign: lambda node: [*node.targets, node.value],
        ast.Subscript: lambda node: [node.value, node.slice],
        ast.BinOp: lambda node: [node.left, node.right],
        ast.Compare: lambda node: [node.left, *node.comparators],
        ast.BoolOp: lambda node: [*node.values],
        ast.Tuple: lambda node: [*node.elts],
        ast.If: lambda node: [node.test, *node.body, *node.orelse],
    }
)


def children(node: ast.AST) -> list[ast.AST]:
    """A node's child nodes in order, without contexts and operators; several times as fast as ``ast``'s own."""
    parts_of = _PARTS.get(node.__class__)
    if parts_of is not None:
        return parts_of(node)
    if node.__class__ in CHILDLESS:
        return []
    found: list[ast.AST] = []
    for name, mixed in _FIELDS[node.__class__]:
        value = getattr(node, name, None)
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
        if child.__class__ in ATTRIBUTES:  # the most common of all
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
