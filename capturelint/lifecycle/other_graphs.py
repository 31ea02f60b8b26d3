"""Whether two replays are of different graphs, though one region captured both.

A place is told by name and class: two runners of one class are one there. Which object replays says more: two that are
made by different calls have a graph each, and so have the elements of a list that a loop takes in turn.
"""

from __future__ import annotations

import ast

from capturelint.lifecycle.life import Life, Replay
from capturelint.lifecycle.order import Order
from capturelint.project.syntax import contains, dotted_name, store_targets, walk_own


def are_different(life: Life, first: Replay, second: Replay) -> bool:
    """Whether the objects that replay differ, as far as one can see where both are called by one function."""
    ours, theirs = _receiver(first), _receiver(second)
    if ours is None or theirs is None or ast.dump(ours) == ast.dump(theirs):
        return False
    if isinstance(ours, ast.Subscript) and isinstance(theirs, ast.Subscript):
        same_container = ast.dump(ours.value) == ast.dump(theirs.value)
        return same_container and isinstance(ours.slice, ast.Constant) and isinstance(theirs.slice, ast.Constant)
    if dotted_name(ours) is None or dotted_name(theirs) is None:
        return False
    return _traces(life, first, ours).isdisjoint(_traces(life, second, theirs))


def take_turns(order: Order, replay: Replay, loop: ast.AST) -> bool:
    """Whether the next turn of a loop replays by another object: ``slots[i % 2].run(x)``, ``for slot in slots:``."""
    receiver = _receiver(replay)
    if receiver is None:
        return False
    names = {each.id for each in ast.walk(receiver) if isinstance(each, ast.Name)}
    if isinstance(loop, (ast.For, ast.AsyncFor)):
        chosen = receiver.id if isinstance(receiver, ast.Name) else None
        if any(isinstance(target, ast.Name) and target.id == chosen for target in store_targets(loop)):
            return True
    indexes = [each.slice for each in ast.walk(receiver) if isinstance(each, ast.Subscript)]
    if any(_goes_round(index) for index in indexes):
        return True
    spelled = {name for index in indexes for part in ast.walk(index) if (name := dotted_name(part)) is not None}
    return any(_moves_on(node, spelled, names) for node in walk_own(order.root) if contains(loop, node))


def _receiver(replay: Replay) -> ast.expr | None:
    """The object that replays: it has the method that is called, or is called itself; None for plain functions."""
    func = replay.call.func
    if replay.via is None:
        return func.value if isinstance(func, ast.Attribute) and func.attr == "replay" else None
    if replay.via.owner is not None and isinstance(func, ast.Attribute) and func.attr == replay.via.name:
        return func.value
    return func if replay.via.owner is not None or replay.via.parent is not None else None


def _traces(life: Life, replay: Replay, receiver: ast.expr) -> set[object]:
    """The places an object may be kept in, and the calls that may have made it; not those inside of its maker."""
    origin = life.origins.same(replay.function, replay.module, receiver)
    maker = replay.via.parent if replay.via is not None else None
    found: set[object] = {place for place in origin.places if maker is None or place.owner is not maker}
    found.update(
        key
        for key, node in origin.nodes.items()
        if isinstance(node, ast.Call) and (maker is None or not contains(maker.node, node))
    )
    return found


def _moves_on(node: ast.AST, indexes: set[str], names: set[str]) -> bool:
    """``turn ^= 1``, ``turn = (turn + 1) % 2``, and ``front, back = back, front``."""
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.BitXor) and dotted_name(node.target) in indexes
    if not isinstance(node, ast.Assign):
        return False
    target = node.targets[0]
    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
        left, right = ([dotted_name(each) for each in side.elts] for side in (target, node.value))
        return left != right and set(left) == set(right) and not names.isdisjoint(each for each in left if each)
    return dotted_name(target) in indexes and _goes_round(node.value)


def _goes_round(node: ast.expr) -> bool:
    """``i % 2``, ``1 - turn``, ``turn ^ 1``, ``not turn``."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    if not isinstance(node, ast.BinOp):
        return False
    flips = isinstance(node.op, ast.Sub) and isinstance(node.left, ast.Constant)
    return flips or isinstance(node.op, (ast.Mod, ast.BitXor))
