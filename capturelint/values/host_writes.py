"""Host state that captured code changes for the next pass to find: counters, and containers that grow.

What is set to the same at each pass needs no replay: the write of capture time stands. What is advanced or appended to
stops there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capturelint.values.change import Source
from capturelint.values.domain import (
    Host,
    Instance,
    Mapping,
    Read,
    Sequence,
    Tensor,
    Unknown,
    Value,
    changing_reason,
    options,
)
from capturelint.values.scope import Scope

if TYPE_CHECKING:
    from capturelint.values.frame import Frame

#: methods of lists, sets and dictionaries after which another number of things is in them
GROWING = ("append", "appendleft", "add", "extend", "insert", "update", "setdefault", "pop", "popleft", "remove")
_SHRINKING = ("pop", "popleft", "remove")
#: what happens to the state, as a message says it
ADVANCED, GROWS, SHRINKS, SET = "is advanced", "grows", "shrinks", "is set"


@dataclass(frozen=True, slots=True)
class HostWrite:
    """``name`` is the attribute or the name that holds the state, ``text`` how the code speaks of it.

    ``owner`` is the object whose attribute it is, None for a name of the module or of an enclosing function.
    """

    name: str
    text: str
    how: str
    owner: Value | None = None


def note_augmented(node: ast.AugAssign, before: Value, value: Value, frame: Frame) -> None:
    """``self.steps += 1``, ``STATE["n"] += 1``, and ``LOG += [entry]``. A tensor is changed in place, or rebound."""
    if any(isinstance(option, (Tensor, Instance)) for each in (before, value) for option in options(each)):
        return
    grows = any(isinstance(option, Sequence) for option in options(before))
    _note(node.target, node, GROWS if grows else ADVANCED, frame)


def note_assigned(target: ast.expr, value: Value, node: ast.stmt, frame: Frame) -> None:
    """``self.steps = self.steps + 1``, and what a clock or an iterator gave."""
    if frame.context is None or not all(isinstance(option, (Host, Read, Unknown)) for option in options(value)):
        return
    stored = getattr(node, "value", None)
    if not any(isinstance(option, (Host, Read)) for option in options(value)) and not _counts(stored):
        return
    name = ast.dump(_plain(target))
    carried = stored is not None and any(
        isinstance(each, (ast.Attribute, ast.Name, ast.Subscript)) and ast.dump(_plain(each)) == name
        for each in (*_used(stored), *_looked_up(stored))
    )
    change = changing_reason(value)
    if carried:
        _note(target, node, ADVANCED, frame)
    elif change is not None and change.first.source is Source.CALL:
        _note(target, node, SET, frame)


def note_call(node: ast.Call, receiver: Value, frame: Frame) -> None:
    """``self.history.append(entry)``."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in GROWING:
        if any(isinstance(option, (Sequence, Mapping)) for option in options(receiver)):
            _note(node.func.value, node, SHRINKS if node.func.attr in _SHRINKING else GROWS, frame)


def _note(target: ast.expr, node: ast.AST, how: str, frame: Frame) -> None:
    context = frame.context
    if context is None or context.compiled or not context.is_call:
        return  # dynamo plays side effects back; a region's own block is there to run once
    holder = target
    while isinstance(holder, ast.Subscript):
        holder = holder.value
    if isinstance(holder, ast.Attribute):
        from capturelint.values.facts import span_of

        owner = context.values.get(span_of(holder.value))
        if owner is None or not _lasts(owner):
            return
        context.writes[span_of(node)] = HostWrite(holder.attr, frame.module.segment(target, 48), how, owner)
        context.candidate(node)
    elif isinstance(holder, ast.Name) and _is_outer(holder.id, frame):
        from capturelint.values.facts import span_of

        context.writes[span_of(node)] = HostWrite(holder.id, frame.module.segment(target, 48), how)
        context.candidate(node)


def _lasts(owner: Value) -> bool:
    return any(isinstance(option, Instance) and option.site.lasting for option in options(owner))


def _is_outer(name: str, frame: Frame) -> bool:
    """A name of the module, or of a function around this one that has not been called in the region."""
    scope = frame.scope
    if not isinstance(scope, Scope):
        return False
    if name in scope.global_names:
        return True
    holder = scope.holder_of(name)
    return not isinstance(holder, Scope)


def _used(node: ast.AST) -> Iterator[ast.AST]:
    """What a value is made of; the test of a conditional expression only chooses."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.IfExp) and child is node.test):
            yield from _used(child)


def _counts(node: ast.AST | None) -> bool:
    """``seen[key] + 1``, whatever is kept there."""
    return isinstance(node, ast.BinOp) and any(
        isinstance(side, ast.Constant) and isinstance(side.value, int) for side in (node.left, node.right)
    )


def _looked_up(node: ast.AST) -> Iterator[ast.AST]:
    """``seen[key]`` for each ``seen.get(key, 0)`` that a value is made of."""
    for each in _used(node):
        if (
            isinstance(each, ast.Call)
            and isinstance(each.func, ast.Attribute)
            and each.func.attr == "get"
            and each.args
        ):
            yield ast.Subscript(value=each.func.value, slice=each.args[0], ctx=ast.Load())


def _plain(node: ast.expr) -> ast.expr:
    """The node as it is read, so that a target compares equal to what reads it."""
    if isinstance(node, ast.Name):
        return ast.Name(id=node.id, ctx=ast.Load())
    if isinstance(node, ast.Attribute):
        return ast.Attribute(value=_plain(node.value), attr=node.attr, ctx=ast.Load())
    if isinstance(node, ast.Subscript):
        return ast.Subscript(value=_plain(node.value), slice=node.slice, ctx=ast.Load())
    return node


def reads(node: ast.AST, write: HostWrite) -> bool:
    """Whether a node reads what was written, by its name."""
    if write.owner is None:
        return isinstance(node, ast.Name) and node.id == write.name and isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.Attribute) and node.attr == write.name and isinstance(node.ctx, ast.Load)
