"""Containers whose tensors are made for the capture: ``self.static = [t.clone() for t in example]``.

Nothing need be known of what they are made of: who copies them, and hands all of them to what is captured, has to fill
them in place. ``self.static[i] = arg`` puts another tensor where the graph never looks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from capturelint.lifecycle.life import Life
from capturelint.lifecycle.making import makes_anew, makes_tensors
from capturelint.lifecycle.moments import Moments
from capturelint.lifecycle.places import Place
from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import dotted_name, walk_all


@dataclass(frozen=True, slots=True)
class Binding:
    """A statement that binds ``target``, the name of an input or an entry of a container of inputs, to ``value``."""

    function: FunctionInfo | None
    module: Module
    statement: ast.AST
    target: ast.expr
    value: ast.expr


def holds_tensors(life: Life, place: Place) -> bool:
    """Whether what is bound to a place is a container with tensors that are made there."""
    return any(makes_tensors(each.value) for each in _whole(life, place))


def is_another(value: ast.expr) -> bool:
    """Another container, with something in it."""
    if isinstance(value, ast.Constant):
        return False
    return not (isinstance(value, (ast.List, ast.Tuple)) and not value.elts) and not (
        isinstance(value, ast.Dict) and not value.keys
    )


def rebound(life: Life, moments: Moments, inputs: set[Place]) -> Iterator[Binding]:
    """Entries of such containers, of those that the region reads, that are bound between capture and replay."""
    read = list(_read(life))
    for place in sorted(inputs, key=lambda each: (each.owner.name, each.name)):
        entries = [each for each in _entries(life, place) if each.function not in life.entered]
        if not entries or not any(dotted_name(node) is not None and _last(node) == place.name for node, _ in read):
            continue
        made = holds_tensors(life, place)
        for each in entries:
            key = _key(each.target)
            if not made and not any(_key(other.target) == key and makes_anew(other.value) for other in entries):
                continue
            if makes_anew(each.value) or not _is_read(read, place, key) or isinstance(each.value, ast.Constant):
                continue
            places = life.origins.same(each.function, each.module, each.value).places
            if place in places or moments.between(each.function, each.module, each.statement, lasts=True) is None:
                continue
            yield each


# -- what the region reads -------------------------------------------------------------------------------------------


def _read(life: Life) -> Iterator[tuple[ast.expr, str | None]]:
    """Containers in the region's block, with the key by which an entry is read; None: any of them."""
    for statement in life.declaration.body or ():
        keyed: set[int] = set()
        for node in walk_all(statement):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                keyed.add(id(node.value))
                yield node.value, _key(node)
            elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
                if id(node) not in keyed:
                    yield node, None


def _is_read(read: list[tuple[ast.expr, str | None]], place: Place, key: str | None) -> bool:
    return any(_last(node) == place.name and (theirs is None or key is None or theirs == key) for node, theirs in read)


def _last(node: ast.expr) -> str:
    return (dotted_name(node) or "").rpartition(".")[2]


def _key(node: ast.expr) -> str | None:
    """The key of ``state["x"]`` as text, where it is written out."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return repr(node.slice.value)
    return None


# -- what is bound ---------------------------------------------------------------------------------------------------


def _whole(life: Life, place: Place) -> Iterator[Binding]:
    """Statements that bind the place itself."""
    if isinstance(place.owner, ClassInfo):
        for store in life.origins.stores(place):
            if not store.entry and not store.path and isinstance(store.node, ast.Assign):
                yield Binding(store.function, store.module, store.node, store.node.targets[0], store.value)
    elif isinstance(place.owner, FunctionInfo):
        for node in place.owner.acts:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                if node.targets[0].id == place.name:
                    yield Binding(place.owner, place.owner.module, node, node.targets[0], node.value)


def _entries(life: Life, place: Place) -> Iterator[Binding]:
    """``place[key] = value``, in functions within as well."""
    if isinstance(place.owner, ClassInfo):
        for store in life.origins.stores(place):
            if store.entry and isinstance(store.node, ast.Assign) and isinstance(store.node.targets[0], ast.Subscript):
                if not isinstance(store.node.targets[0].slice, ast.Slice):
                    yield Binding(store.function, store.module, store.node, store.node.targets[0], store.value)
    elif isinstance(place.owner, FunctionInfo):
        for function in _sharing(place.owner, place.name):
            for node in function.acts:
                target = node.targets[0] if isinstance(node, ast.Assign) else None
                if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice):
                    if isinstance(target.value, ast.Name) and target.value.id == place.name:
                        yield Binding(function, function.module, node, target, node.value)  # type: ignore[attr-defined]


def _sharing(owner: FunctionInfo, name: str) -> Iterator[FunctionInfo]:
    """The function whose local it is, and those within that have none of that name."""
    yield owner
    for info in owner.module.inner_functions(owner):
        if name not in info.assigned and name not in {each.arg for each in info.parameters()}:
            yield info
