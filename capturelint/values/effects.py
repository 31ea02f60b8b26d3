"""Effects of listed operators: a call's arguments by parameter, and the conditions that its effects depend on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capturelint.model import Confidence
from capturelint.rulebook.op_spec import Condition, OpEffect, OpSpec
from capturelint.values import devices
from capturelint.values.domain import (
    MISSING,
    Device,
    Host,
    Mapping,
    Sequence,
    Value,
    device_confidence,
    is_none,
    options,
    tensors,
)
from capturelint.values.facts import Effect
from capturelint.values.frame import Arguments, Frame

if TYPE_CHECKING:
    from collections.abc import Mapping as Dict


@dataclass(frozen=True, slots=True)
class Bound:
    """A call's arguments by the parameter names of an operator's spec."""

    spec: OpSpec
    values: Dict[str, Value]
    all: tuple[Value, ...]
    receiver: Value | None
    #: ``**kwargs`` of unknown content were passed too
    open: bool = False

    def get(self, name: str) -> Value | None:
        if name == "self" and "self" not in self.values and self.spec.params:
            return self.values.get(self.spec.params[0])
        return self.values.get(name)

    @property
    def first(self) -> Value | None:
        return self.receiver if self.receiver is not None else (self.all[0] if self.all else None)


def bind(spec: OpSpec, receiver: Value | None, given: Arguments) -> Bound:
    positional = given.positional if receiver is None else (receiver, *given.positional)
    values: dict[str, Value] = {}
    for index, name in enumerate(spec.params):
        if name.startswith("*"):
            values[name[1:]] = Sequence("tuple", positional[index:])
            break
        if index < len(positional):
            values[name] = positional[index]
    for name, value in given.keywords:
        values[name] = value
    return Bound(spec, values, (*positional, *(v for _, v in given.keywords)), receiver, given.open_keywords)


def effects_of(spec: OpSpec, bound: Bound, frame: Frame) -> Iterator[Effect]:
    if not frame.in_region:
        return
    for effect in spec.effects:
        if not holds(effect.when, bound):
            continue
        sure, operand = _operand(effect, bound)
        if sure is None:
            continue
        if effect.confidence is not None:
            sure = min(sure, effect.confidence, key=lambda c: c.rank)
        yield Effect(effect.kind.value, sure, effect.detail, operand, effect.versions, effect.help)


def _operand(effect: OpEffect, bound: Bound) -> tuple[Confidence | None, str]:
    if effect.on == ():
        return Confidence.CERTAIN, ""
    if effect.on is None:
        found = [deep_confidence(value) for value in bound.all]
        sure = [each for each in found if each is not None]
        return (max(sure, key=lambda c: c.rank), "") if sure else (None, "")
    best: tuple[Confidence | None, str] = (None, "")
    for name in effect.on:
        sure_of = deep_confidence(bound.get(name))
        if sure_of is not None and (best[0] is None or sure_of > best[0]):
            best = (sure_of, name)
    return best


def deep_confidence(value: Value | None, depth: int = 0) -> Confidence | None:
    """How sure it is that ``value`` is a device tensor or a container that holds one."""
    direct = device_confidence(value)
    if direct is not None or depth > 2:
        return direct
    found: list[Confidence] = []
    for option in options(value):
        inner: tuple[Value | None, ...] = ()
        if isinstance(option, Sequence):
            inner = (*(option.items or ()), option.element)
        elif isinstance(option, Mapping):
            inner = (*(item for _, item in option.items), option.element)
        found.extend(c for c in (deep_confidence(each, depth + 1) for each in inner) if c is not None)
    return max(found, key=lambda c: c.rank) if found else None


def holds(when: Condition, bound: Bound) -> bool:
    if when.always:
        return True
    if any(absent(bound.get(name)) for name in when.given):
        return False
    if any(not _left_out(bound, name) for name in when.not_given):
        return False
    for name, values in when.const:
        if not is_const(bound.get(name), values):
            return False
    for name, values in when.not_const:
        if is_const(bound.get(name), values):
            return False
    return all(_is_kind(bound.get(name), kind) for name, kind in when.kinds)


def absent(value: Value | None) -> bool:
    return value is None or is_none(value)


def _left_out(bound: Bound, name: str) -> bool:
    """Not passed at all: what is passed and looks like None here may well be something else in another call."""
    return name not in bound.values and not bound.open


def is_const(value: Value | None, values: tuple[object, ...]) -> bool:
    return isinstance(value, Host) and value.const is not MISSING and value.const in values


def _is_kind(value: Value | None, kind: str) -> bool:
    if kind == "tensor":
        return any(True for _ in tensors(value))
    if kind == "mask":
        if any(tensor.dtype == "bool" for tensor in tensors(value)):
            return True
        return any(
            _is_kind(item, kind)
            for option in options(value)
            if isinstance(option, Sequence)
            for item in option.items or ()
        )
    if kind == "cuda":
        device = devices.device_of(value)
        return device is not None and device.device is Device.DEVICE
    return False
