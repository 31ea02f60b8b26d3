"""CG501 in an entry that is looked up: ``entry = self.entries[n]; entry.ids = ids; entry.graph.replay()``.

The entry holds the graph together with the tensors that it reads. Which of many records is meant is told from the
replay: what is bound anew belongs to the very entry whose graph is replayed after it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.findings import Around
from capturelint.lifecycle import container_entries, story
from capturelint.lifecycle.life import Life, Replay
from capturelint.lifecycle.making import makes_anew
from capturelint.lifecycle.moments import Moments
from capturelint.lifecycle.order import Order
from capturelint.lifecycle.places import Place
from capturelint.model import Confidence
from capturelint.project.definitions import FunctionInfo
from capturelint.project.syntax import store_targets, walk_all, walk_own
from capturelint.values.changing import IN_PLACE
from capturelint.values.domain import Tensor, Unknown, options
from capturelint.values.effects import deep_confidence


def find(life: Life, moments: Moments, inputs: set[Place]) -> Iterator[Around]:
    for replay in life.replays:
        if replay.depth == 0 and replay.function is not None and isinstance(replay.call.func, ast.Attribute):
            for node, target in _bound_before(replay, moments):
                if _is_input(life, replay, inputs, target) and _is_another(life, replay, inputs, node, target):
                    if moments.between(replay.function, replay.module, node, lasts=True) is not None:
                        yield _report(life, replay, target)


def _report(life: Life, replay: Replay, target: ast.expr) -> Around:
    text = replay.module.segment(target, 48)
    return story.finding(
        life, "CG501", replay.function, replay.module, target,
        f"`{text}` is bound to another tensor, but the graph captured at {story.where(life)} reads the one that was "
        "looked up",
        "the graph keeps the old tensor", Confidence.LIKELY,
        help=f"write into the tensor that the graph reads: `{text}.copy_(...)`",
    )  # fmt: skip


def _bound_before(replay: Replay, moments: Moments) -> Iterator[tuple[ast.Assign, ast.expr]]:
    """What is bound of the entry, or of the names that it was unpacked to, before its graph is replayed."""
    assert replay.function is not None and isinstance(replay.call.func, ast.Attribute)
    graph, order = replay.call.func.value, moments.order(replay.function, replay.module)
    entry = _holder(graph)
    beside = set(_unpacked_with(replay.function, graph))
    for node in replay.function.acts:
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if isinstance(target, ast.Name):
                named = target.id in beside or _is_drawn(order, node, target.id)
                if named and order.may_follow(node, replay.call) and not _filled(replay, target.id):
                    yield node, target
            elif not {*beside, *([entry] if entry is not None else [])}.isdisjoint(_holders(target)):
                if order.may_follow(node, replay.call):
                    yield node, target


def _is_drawn(order: Order, node: ast.AST, name: str) -> bool:
    """``for static, new in zip(self.static, inputs): static = new``"""
    return any(
        isinstance(each, ast.Name) and each.id == name
        for loop in order.loops(node)
        if isinstance(loop, ast.For)
        for each in walk_all(loop.target)
    )


def _holder(node: ast.expr) -> str | None:
    """``entry`` of ``entry.graph`` and ``entry["graph"]``; ``self`` holds no entry."""
    if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.value, ast.Name):
        return node.value.id if node.value.id not in ("self", "cls") else None
    return None


def _holders(target: ast.expr) -> Iterator[str]:
    """``entry`` of ``entry.inputs["x"]``."""
    while isinstance(target, (ast.Attribute, ast.Subscript)):
        target = target.value
        if isinstance(target, ast.Name):
            yield target.id


def _unpacked_with(function: FunctionInfo, graph: ast.expr) -> Iterator[str]:
    """``x`` and ``y``, where the graph comes from ``graph, x, y = entry``."""
    for node in function.acts if isinstance(graph, ast.Name) else ():
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Tuple, ast.List)):
            names = [each.id for each in node.targets[0].elts if isinstance(each, ast.Name)]
            if graph.id in names:  # type: ignore[attr-defined]
                yield from names


def _filled(replay: Replay, name: str) -> bool:
    """``x.copy_(new)``, ``x[:n] = new``: in place, and the name may be used for something else then."""
    assert replay.function is not None
    for node in walk_own(replay.function.node):
        part: ast.expr | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in IN_PLACE:
            part = node.func.value
        elif isinstance(node, ast.Assign) and any(isinstance(each, ast.Subscript) for each in node.targets):
            part = store_targets(node)[0]
        while isinstance(part, ast.Subscript):
            part = part.value
        if isinstance(part, ast.Name) and part.id == name:
            return True
    return False


def _is_input(life: Life, replay: Replay, inputs: set[Place], target: ast.expr) -> bool:
    places = _places_by_key(life, replay, target)
    if places is None:
        places = life.origins.same(replay.function, replay.module, target).places
    return not places.isdisjoint(inputs) and places.isdisjoint(life.outputs)


def _places_by_key(life: Life, replay: Replay, target: ast.expr) -> set[Place] | None:
    """The places of what was put under the key of ``entry["inputs"]``, where the capture makes the entry as a dict."""
    path = target
    while isinstance(path, (ast.Attribute, ast.Subscript)) and not isinstance(path.value, ast.Name):
        path = path.value
    if not isinstance(path, ast.Subscript) or not isinstance(path.slice, ast.Constant):
        return None
    entries = life.origins.same(replay.function, replay.module, path.value).nodes
    found: set[Place] = set()
    for info in life.surroundings.capturing:
        for node in walk_own(info.node):
            if isinstance(node, ast.Dict) and id(node) in entries:
                for key, value in zip(node.keys, node.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value == path.slice.value:
                        found |= life.origins.same(info, info.module, value).places
    return found or None


def _is_another(life: Life, replay: Replay, inputs: set[Place], node: ast.Assign, target: ast.expr) -> bool:
    """A tensor, or what may be one in the place of one, that comes from somewhere else."""
    scope = life.engine.scope_of(replay.function, replay.module)
    found = list(options(life.engine.evaluate_in(scope, node.value)))
    if not all(isinstance(option, Tensor) for option in found):
        held = deep_confidence(life.engine.evaluate_in(scope, target)) not in (None, Confidence.POSSIBLE)
        if not held and not _is_made(life, replay, inputs, target):
            return False
        if not all(isinstance(option, (Tensor, Unknown)) for option in found):
            return False
    return inputs.isdisjoint(life.origins.same(replay.function, replay.module, node.value).places)


def _is_made(life: Life, replay: Replay, inputs: set[Place], target: ast.expr) -> bool:
    """A copy that the capture made of something, or an element of a container of such copies."""
    origin = life.origins.same(replay.function, replay.module, target)
    return any(isinstance(node, ast.Call) and makes_anew(node) for node in origin.nodes.values()) and any(
        container_entries.holds_tensors(life, place) for place in origin.places & inputs
    )
