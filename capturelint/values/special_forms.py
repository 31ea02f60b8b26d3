"""Calls that are about names rather than values: ``super()``, and methods that change a local container."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from capturelint.values import hierarchy, host_writes
from capturelint.values.domain import (
    MISSING,
    UNKNOWN,
    BoundExternal,
    ClassValue,
    External,
    ExternalInstance,
    Function,
    Host,
    Instance,
    Mapping,
    Sequence,
    Value,
    element_of,
    join,
    options,
)
from capturelint.values.frame import Frame
from capturelint.values.lazy import with_element

if TYPE_CHECKING:
    from capturelint.project.definitions import ClassInfo


def special_form(node: ast.Call, callee: Value, frame: Frame) -> Value | None:
    """Calls that are about names rather than values: ``super()``, container methods that change a local container."""
    if isinstance(callee, External) and callee.path == "builtins.super":
        return _super(node, frame)
    if isinstance(callee, BoundExternal) and isinstance(callee.receiver, (Sequence, Mapping)):
        host_writes.note_call(node, callee.receiver, frame)
        return _container_method(node, callee, frame)
    if isinstance(callee, (External, BoundExternal)) and callee.path in _INDEXING:
        return _indexing_call(node, callee, frame)
    return None


_READS = frozenset({"torch.Tensor.__getitem__", "operator.getitem"})
_INDEXING = _READS | {"torch.Tensor.__setitem__", "operator.setitem"}


def _indexing_call(node: ast.Call, callee: External | BoundExternal, frame: Frame) -> Value | None:
    """``x.__getitem__(index)`` and ``operator.getitem(x, index)`` are ``x[index]``, and so for writing."""
    from capturelint.values import indexing
    from capturelint.values.expressions import evaluate

    given = list(node.args)
    if isinstance(callee, BoundExternal) and isinstance(node.func, ast.Attribute):
        given.insert(0, node.func.value)
    reads = callee.path in _READS
    if len(given) != (2 if reads else 3) or any(isinstance(each, ast.Starred) for each in given):
        return None
    item = ast.copy_location(ast.Subscript(given[0], given[1], ast.Load() if reads else ast.Store()), node)
    if reads:
        return indexing.read_item(item, frame)
    indexing.write_item(item, evaluate(given[2], frame), frame, augmented=False)
    return Host(const=None)


def _super(node: ast.Call, frame: Frame) -> Value | None:
    info = frame.function
    while info is not None and info.owner is None:
        info = info.parent
    if info is None or info.owner is None:
        return UNKNOWN
    if len(node.args) == 2:
        from capturelint.values.expressions import evaluate

        owner, subject = evaluate(node.args[0], frame), evaluate(node.args[1], frame)
        found = [
            ExternalInstance("super", (("owner", cls), ("receiver", each)))
            for cls in options(owner)
            for each in options(subject)
            if isinstance(cls, ClassValue) and isinstance(each, (Instance, ClassValue))
        ]
        return join(*found) if found else UNKNOWN
    receiver = frame.receiver
    if receiver is None and info.parameters():
        receiver = frame.scope.lookup(info.parameters()[0].arg)
    found = [
        ExternalInstance("super", (("owner", ClassValue(info.owner)), ("receiver", option)))
        for option in options(receiver)
        if isinstance(option, (Instance, ClassValue))
    ]
    return join(*found) if found else UNKNOWN


def super_attribute(value: ExternalInstance, name: str, frame: Frame) -> Value:
    """``super().name``: looked up behind the class whose method says ``super``, in the receiver's order of bases."""
    owner, receiver = value.argument("owner"), value.argument("receiver")
    assert isinstance(owner, ClassValue)
    cls: ClassInfo = receiver.site.cls if isinstance(receiver, Instance) else owner.info
    if owner.info not in frame.engine.mro(cls):
        cls = owner.info
    method = hierarchy.find_method(frame.engine, cls, name, after=owner.info)
    if method is not None:
        return Function(method, bound=receiver if not method.is_static else None)
    if name == "__init__":
        return External("builtins.object.__init__")
    for entry in frame.engine.mro(cls):
        if isinstance(entry, str):
            return BoundExternal(f"{entry}.{name}", receiver if receiver is not None else UNKNOWN)
    return UNKNOWN


def _container_method(node: ast.Call, callee: BoundExternal, frame: Frame) -> Value | None:
    name = callee.path.rpartition(".")[2]
    receiver = callee.receiver
    if name in ("append", "add", "appendleft", "insert", "extend", "update") and node.args:
        from capturelint.values.expressions import evaluate

        added = [evaluate(argument, frame) for argument in node.args][-1]
        if name in ("extend", "update"):
            added = element_of(added)
        grown = _appended(receiver, added, name)
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and grown is not None:
            if frame.in_region:
                frame.scope.bind(node.func.value.id, grown)
        return Host(const=None)
    if isinstance(receiver, Mapping):
        return _mapping_method(name, receiver, node, frame)
    if name in ("pop", "popleft", "copy"):
        return receiver if name == "copy" else element_of(receiver)
    return None


def _appended(receiver: Value, added: Value, name: str) -> Value | None:
    if isinstance(receiver, Sequence) and receiver.items == () and name == "append":
        return Sequence(receiver.kind, None, added)
    return with_element(receiver, added)


def _mapping_method(name: str, receiver: Mapping, node: ast.Call, frame: Frame) -> Value | None:
    from capturelint.values.expressions import evaluate

    if name in ("get", "pop", "setdefault"):
        given = [evaluate(argument, frame) for argument in node.args]
        if given and isinstance(given[0], Host) and given[0].const is not MISSING:
            known = receiver.get(given[0].const)
            if known is not None:
                return known
        fallback = given[1] if len(given) > 1 else Host(const=None)
        return join(element_of_mapping(receiver), fallback)
    if name == "values":
        return Sequence("list", None, element_of_mapping(receiver))
    if name == "items":
        return Sequence("list", None, Sequence("tuple", (Host(kind="key"), element_of_mapping(receiver))))
    if name == "keys":
        return Sequence("list", None, Host(kind="key"))
    return receiver if name == "copy" else None


def element_of_mapping(value: Mapping) -> Value:
    return join(*(item for _, item in value.items), value.element)
