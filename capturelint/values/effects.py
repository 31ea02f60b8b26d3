"""Effects of listed operators: a call's arguments by parameter, and the conditions that its effects depend on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capturelint.model import Confidence
from capturelint.rulebook import versions
from capturelint.rulebook.op_spec import LAYOUTS, Condition, OpEffect, OpSpec
from capturelint.values import devices, modes
from capturelint.values.domain import (
    MISSING,
    Device,
    ExternalInstance,
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


#: operators that compare element by element with a few do it in another way with this many, whatever the other size
_MANY = 64


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
        """An argument; ``sequence.enforce_sorted`` is what ``sequence`` got as that argument where it was made."""
        if "." in name:
            owner, _, argument = name.partition(".")
            maker = self.receiver if owner == "self" else self.values.get(owner)
            return maker.argument(argument) if isinstance(maker, ExternalInstance) else None
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


def effects_of(spec: OpSpec, bound: Bound, frame: Frame, *, modes_only: bool = False) -> Iterator[Effect]:
    """What a call does in a region; ``modes_only``: of that what depends on a mode and on no operand."""
    if not frame.in_region:
        return
    for effect in spec.effects:
        if not holds(effect.when, bound) or (modes_only and not (effect.mode and effect.on == ())):
            continue
        sure, operand = _operand(effect, bound)
        cap = _cap(effect, bound, frame) if sure is not None else None
        if sure is None or cap is None:
            continue
        sure = min(sure, cap, key=lambda c: c.rank)
        yield Effect(effect.kind.value, sure, effect.detail, operand, effect.versions, effect.help)


def _cap(effect: OpEffect, bound: Bound, frame: Frame) -> Confidence | None:
    """The highest confidence that an effect can have in a project and its modes; None where it does not happen."""
    caps = [effect.confidence or Confidence.CERTAIN]
    if effect.versions and not versions.holds(effect.versions, frame.engine.torch_version):
        if frame.engine.torch_version is not None:
            return None
        caps.append(Confidence.POSSIBLE)  # with older versions only, and nobody has said which is used
    if effect.mode:
        mode = modes.confidence(effect.mode, bound, frame)
        if mode is None:
            return None
        caps.append(mode)
    return min(caps, key=lambda c: c.rank)


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
    if any(_is_kind(bound.get(name), kind) for name, kind in when.not_kinds):
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
        if any(tensor.dtype in ("bool", "uint8") for tensor in tensors(value)):
            return True
        return any(
            _is_kind(item, kind)
            for option in options(value)
            if isinstance(option, Sequence)
            for item in option.items or ()
        )
    if kind in ("matrix", "batch"):
        ranks = [tensor.rank for tensor in tensors(value) if tensor.rank is not None]
        return any(rank == 2 if kind == "matrix" else rank > 2 for rank in ranks)
    if kind == "many":
        return any(tensor.count is not None and tensor.count >= _MANY for tensor in tensors(value))
    if kind in LAYOUTS:
        return any(tensor.layout == kind for tensor in tensors(value))
    if kind == "cuda":
        device = devices.device_of(value)
        return device is not None and device.device is Device.DEVICE
    return False
