"""What Python does with device tensors in containers: it compares them, counts by them, and takes their truth."""

from __future__ import annotations

import ast

from capturelint.model import Confidence
from capturelint.values.domain import (
    MISSING,
    Host,
    Sequence,
    Value,
    device_confidence,
    element_of,
    options,
)
from capturelint.values.facts import Effect
from capturelint.values.frame import Frame


def membership(node: ast.Compare, left: Value, right: Value, frame: Frame) -> None:
    """``3 in t`` reads the device; ``t in [..]`` compares ``t`` with each element and takes the truth of it."""
    if frame.context is None:
        return
    sure = device_confidence(right)
    if sure is None and any(isinstance(option, Sequence) and option.items != () for option in options(right)):
        sure = device_confidence(left)
        if isinstance(right, Sequence) and right.items and sure is None:
            inside = [device_confidence(item) for item in right.items]
            if not isinstance(left, Host) or left.const is MISSING:
                sure = next((each for each in inside if each is not None), None)
    if sure is not None:
        frame.context.record_effects(node, (Effect("host-read", sure, "membership test"),), frame.confidence)


def compares(node: ast.Compare, left: Value, right: Value, frame: Frame) -> None:
    """``[a, b] == [c, d]`` takes the truth of ``a == c``, unless they are one object."""
    if frame.context is None:
        return
    sure = [
        confidence
        for one in options(left)
        for other in options(right)
        if isinstance(one, Sequence) and isinstance(other, Sequence) and one.kind == other.kind
        for confidence in [_element_comparison(one, other)]
        if confidence is not None
    ]
    if sure:
        effect = Effect("host-read", max(sure, key=lambda each: each.rank), "compares the elements")
        frame.context.record_effects(node, (effect,), frame.confidence)


def _element_comparison(left: Sequence, right: Sequence) -> Confidence | None:
    if left.items is None or right.items is None:
        found = [device_confidence(element_of(each)) for each in (left, right)]
        return Confidence.POSSIBLE if any(found) else None
    if len(left.items) != len(right.items):
        return None
    for one, other in zip(left.items, right.items, strict=True):
        sure = device_confidence(one) or device_confidence(other)
        if sure is not None:
            return sure
    return None


def repeats(node: ast.BinOp, left: Value, right: Value, frame: Frame) -> None:
    """``[0] * t`` asks the tensor for a Python number."""
    if frame.context is None:
        return
    for container, count in ((left, right), (right, left)):
        sure = device_confidence(count)
        if sure is not None and all(
            isinstance(option, Sequence) or (isinstance(option, Host) and option.kind == "str")
            for option in options(container)
        ):
            frame.context.record_effects(
                node, (Effect("host-read", sure, "a number of repetitions"),), frame.confidence
            )
