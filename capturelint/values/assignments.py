"""Assignments inside regions: what they bind, and what of that outlives the call."""

from __future__ import annotations

import ast
from dataclasses import replace

from capturelint.values import dunder, host_writes, memo, narrowing
from capturelint.values.change import either
from capturelint.values.domain import (
    Host,
    Instance,
    Mapping,
    Sequence,
    Tensor,
    Unknown,
    Value,
    changing_reason,
    element_of,
    join,
    options,
)
from capturelint.values.expressions import evaluate
from capturelint.values.facts import StoreFact, span_of
from capturelint.values.frame import Frame
from capturelint.values.scope import Scope


def assign(node: ast.Assign, frame: Frame) -> None:
    sure = frame.sure
    if memo.ternary(node):
        frame.doubt([node], memo.RAN_BEFORE)
    value = evaluate(node.value, frame)
    frame.sure = sure
    for target in node.targets:
        store(target, value, node, frame)
        host_writes.note_assigned(target, value, node, frame)


def annotated(node: ast.AnnAssign, frame: Frame) -> None:
    if node.value is not None:
        store(node.target, evaluate(node.value, frame), node, frame)


def store(target: ast.expr, value: Value, statement: ast.stmt, frame: Frame) -> None:
    """Binds a target to a value: a name, an attribute, an item, or the parts of a tuple."""
    if isinstance(target, ast.Name):
        _store_outer(target, value, frame)
        narrowing.bind_target(target, value, frame)
    elif isinstance(target, ast.Attribute):
        _store_attribute(target, value, frame, augmented=False)
    elif isinstance(target, ast.Subscript):
        from capturelint.values.indexing import write_item

        write_item(target, value, frame, augmented=False)
        _store_item(target, value, frame)
    elif isinstance(target, (ast.Tuple, ast.List)):
        from capturelint.values.engine import item_at

        if isinstance(value, Tensor) and value.on_device:
            frame.candidate(target)
        starred = any(isinstance(part, ast.Starred) for part in target.elts)
        for index, part in enumerate(target.elts):
            if isinstance(part, ast.Starred):
                store(part.value, element_of(value), statement, frame)
            else:
                store(part, element_of(value) if starred else item_at(value, index), statement, frame)


def _store_outer(target: ast.Name, value: Value, frame: Frame) -> None:
    """A name declared ``global`` or ``nonlocal`` outlives the call, as an attribute does."""
    scope = executed_scope(frame)
    if frame.context is not None and target.id in scope.global_names | scope.outer_names:
        frame.context.stores[span_of(target)] = StoreFact(Unknown(), target.id, value, outer=True)
        frame.candidate(target)


def _store_item(target: ast.Subscript, value: Value, frame: Frame) -> None:
    """An item of a container that an object holds: ``self.state["h"] = ...``."""
    if frame.context is None or not isinstance(target.value, ast.Attribute):
        return
    container = frame.context.values.get(span_of(target.value))
    if any(isinstance(option, (Mapping, Sequence)) for option in options(container)):
        owner = frame.context.values.get(span_of(target.value.value), Unknown())
        frame.context.stores[span_of(target)] = StoreFact(owner, target.value.attr, value, item=True)
        frame.candidate(target)


def _store_attribute(target: ast.Attribute, value: Value, frame: Frame, *, augmented: bool) -> None:
    owner = evaluate(target.value, frame)
    if frame.context is not None:
        read = any(
            isinstance(each, Instance) and (each.site, target.attr) in frame.context.attributes_read
            for each in options(owner)
        )
        span = span_of(target)
        frame.context.stores[span] = StoreFact(owner, target.attr, value, augmented, read)
        frame.context.candidates.add(span)
    key = narrowing.key_of(target)
    if key is not None:
        executed_scope(frame).forget_attributes(key)
        executed_scope(frame).narrow(key, value)


def augmented(node: ast.AugAssign, frame: Frame) -> None:
    from capturelint.values.tensor_math import arithmetic

    value = evaluate(node.value, frame)
    if changing_reason(value) is not None:
        frame.candidate(node)
    if isinstance(node.target, ast.Subscript):
        from capturelint.values.indexing import write_item

        write_item(node.target, value, frame, augmented=True)
        host_writes.note_augmented(node, _held(node.target, frame), value, frame)
        return
    load: ast.expr = ast.copy_location(_as_load(node.target), node.target)
    before = evaluate(load, frame)
    host_writes.note_augmented(node, before, value, frame)
    rebinds = isinstance(node.op, ast.MatMult)  # tensors have no in-place `@=`
    own = dunder.in_place(node.op, before, value, node.target, frame)
    if own is None:
        own = dunder.binary(node.op, before, value, node.target, frame)
    result = before if _in_place(before) and not rebinds else own or arithmetic(node.op, before, value)
    if isinstance(result, Host):
        result = replace(
            result, changing=either(result.changing, either(changing_reason(before), changing_reason(value)))
        )
    if isinstance(node.target, ast.Name):
        narrowing.bind_target(node.target, result, frame)
    elif isinstance(node.target, ast.Attribute):
        _store_attribute(node.target, result, frame, augmented=True)


def _held(target: ast.Subscript, frame: Frame) -> Value:
    """What the item held that is advanced."""
    held = frame.context.values.get(span_of(target.value)) if frame.context is not None else None
    found: list[Value] = []
    for option in options(held):
        if isinstance(option, Mapping):
            found.extend((*(item for _, item in option.items), *([option.element] if option.element else ())))
        elif isinstance(option, (Sequence, Tensor)):
            found.append(element_of(option))
    return join(*found)


def _in_place(value: Value) -> bool:
    return any(isinstance(option, Tensor) for option in options(value))


def _as_load(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.Name(id=target.id, ctx=ast.Load())
    assert isinstance(target, ast.Attribute)
    return ast.Attribute(value=target.value, attr=target.attr, ctx=ast.Load())


def executed_scope(frame: Frame) -> Scope:
    """The names of code that is executed, as code in regions is."""
    assert isinstance(frame.scope, Scope)
    return frame.scope
