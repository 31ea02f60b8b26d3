"""Where tensors live and how they move: device arguments, ``.to``, ``.copy_``, constructors from host data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from capturelint.model import Confidence
from capturelint.rulebook import versions
from capturelint.values.domain import (
    MISSING,
    BoundExternal,
    Device,
    DeviceValue,
    DType,
    External,
    ExternalInstance,
    Host,
    Instance,
    Sequence,
    Tensor,
    Unknown,
    Value,
    device_confidence,
    join,
    options,
    tensor_options,
    tensors,
)
from capturelint.values.facts import Effect
from capturelint.values.frame import Arguments, Frame

if TYPE_CHECKING:
    from capturelint.values.effects import Bound

Handler = Callable[["Bound", Arguments, Frame, "list[Effect]"], Value]

_BOOL, _INT, _FLOAT, _BYTE = "bool", "int", "float", "uint8"
_DTYPE_NAMES = {
    "bool": _BOOL, "uint8": _BYTE, "long": _INT, "short": _INT, "half": _FLOAT, "double": _FLOAT, "bfloat16": _FLOAT,
    "int": _INT, "float": _FLOAT, "cfloat": "complex", "cdouble": "complex",
}  # fmt: skip
_LEGACY = {"FloatTensor": _FLOAT, "HalfTensor": _FLOAT, "LongTensor": _INT, "IntTensor": _INT, "BoolTensor": _BOOL,
           "ByteTensor": _BYTE, "DoubleTensor": _FLOAT, "BFloat16Tensor": _FLOAT}  # fmt: skip


#: a copy from or into pinned memory is captured; the effect's detail says which operand is that memory
PINNED_COPY = "pinned-copy"


def dtype_of(value: Value | None) -> str | None:
    """``bool``, ``int``, ``uint8`` or ``float`` for a dtype value such as ``torch.float16``."""
    for option in options(value):
        if isinstance(option, DType):
            return option.kind
        if isinstance(option, External):
            name = option.path.rpartition(".")[2]
            if name in _DTYPE_NAMES:
                return _DTYPE_NAMES[name]
            for prefix, kind in (("uint", _INT), ("int", _INT), ("float", _FLOAT), ("complex", "complex")):
                if name.startswith(prefix):
                    return kind
    return None


def is_dtype(value: Value | None) -> bool:
    return any(
        isinstance(o, DType) or (isinstance(o, External) and o.path.startswith("torch.") and dtype_of(o) is not None)
        for o in options(value)
    )


def device_of(value: Value | None) -> DeviceValue | None:
    """The device that an argument names; None where it is absent or None. An unknown device is likely the GPU."""
    found: list[DeviceValue] = []
    for option in options(value):
        if isinstance(option, DeviceValue):
            known = option.device is not Device.UNKNOWN
            found.append(option if known else DeviceValue(Device.DEVICE, Confidence.LIKELY))
        elif isinstance(option, Host):
            if option.is_none:
                continue
            found.append(_named(option))
        elif isinstance(option, (Unknown, ExternalInstance, External, BoundExternal)):
            found.append(DeviceValue(Device.DEVICE, Confidence.LIKELY))
    if not found:
        return None
    on_device = [each for each in found if each.device is Device.DEVICE]
    if len(on_device) == len(found):
        return min(on_device, key=lambda each: each.confidence.rank)
    if on_device:
        return DeviceValue(Device.DEVICE, Confidence.LIKELY)
    return found[0]


def _named(value: Host) -> DeviceValue:
    if isinstance(value.const, str):
        name = value.const.partition(":")[0]
        if name in ("cpu", "meta"):
            return DeviceValue(Device.HOST)
        return DeviceValue(Device.DEVICE)
    if isinstance(value.const, int) and not isinstance(value.const, bool):
        return DeviceValue(Device.DEVICE)
    return DeviceValue(Device.DEVICE, Confidence.LIKELY)


def _flag(value: Value | None) -> bool | None:
    """A boolean argument; None where it is given but unknown, False where it is absent."""
    if value is None:
        return False
    return value.truth if isinstance(value, Host) else None


def _device(bound: Bound, given: Arguments, frame: Frame, effects: list[Effect]) -> Value:
    first = given.positional[0] if given.positional else given.keyword("type")
    return device_of(first) or DeviceValue(Device.UNKNOWN)


def _to(bound: Bound, given: Arguments, frame: Frame, effects: list[Effect]) -> Value:
    """``tensor.to(...)``: a device, a dtype, another tensor, or several of these."""
    target: DeviceValue | None = device_of(given.keyword("device"))
    dtype = dtype_of(given.keyword("dtype"))
    non_blocking = given.keyword("non_blocking")
    for index, value in enumerate(given.positional):
        if is_dtype(value):
            dtype = dtype_of(value)
        elif (other := next(tensors(value), None)) is not None:
            target = DeviceValue(other.device, other.confidence) if other.device is not Device.UNKNOWN else None
            dtype = other.dtype
        elif isinstance(value, Host) and isinstance(value.const, bool):
            if non_blocking is None:
                non_blocking = value
        elif target is None and index == 0:
            target = device_of(value)
    return _moved(bound.first, target, dtype, _flag(non_blocking), frame, effects)


def _cuda(bound: Bound, given: Arguments, frame: Frame, effects: list[Effect]) -> Value:
    return _moved(bound.first, DeviceValue(Device.DEVICE), None, _flag(given.keyword("non_blocking")), frame, effects)


def _cpu(bound: Bound, given: Arguments, frame: Frame, effects: list[Effect]) -> Value:
    return _moved(bound.first, DeviceValue(Device.HOST), None, False, frame, effects, listed=True)


def _moved(
    source: Value | None,
    target: DeviceValue | None,
    dtype: str | None,
    non_blocking: bool | None,
    frame: Frame,
    effects: list[Effect],
    *,
    listed: bool = False,
) -> Value:
    """A tensor after a move; what the move does is added to ``effects`` (``listed``: the table says it already)."""
    found: list[Value] = []
    sure = iter(tensor_options(source))
    for option in options(source):
        if isinstance(option, (Instance, ExternalInstance)):
            found.append(option)
            continue
        if not isinstance(option, Tensor):
            if target is None:
                found.append(option)
                continue
            found.append(Tensor(device=target.device, confidence=target.confidence, dtype=dtype))
            continue
        if target is None:
            next(sure)
            found.append(replace(option, dtype=dtype, stored=False) if dtype else option)
            continue
        settled = next(sure)
        if frame.in_region and not listed:
            effects.extend(
                effect
                for effect in _copy_effects(settled, target, non_blocking)
                if versions.holds(effect.versions, frame.engine.torch_version)
            )
        same = option.device is target.device
        found.append(
            Tensor(
                device=target.device,
                confidence=option.confidence if same else target.confidence,
                dtype=dtype or option.dtype,
                rank=option.rank,
                changing=option.changing if target.device is Device.HOST else None,
                stored=option.stored and same,
                why=option.why if same else "moved there",
            )
        )
    return join(*found)


#: earlier versions recorded a copy from pageable memory that does not block
_REFUSED_NON_BLOCKING = ">=2.10"


def _copy_effects(source: Tensor, target: DeviceValue, non_blocking: bool | None) -> list[Effect]:
    sure = min(source.confidence, target.confidence, key=lambda c: c.rank)
    if source.device is Device.HOST and target.device is Device.DEVICE:
        if source.pinned and non_blocking is not False:
            return [Effect(PINNED_COPY, sure, "source")] if non_blocking else []
        detail = (
            "a pinned tensor copied without `non_blocking=True`" if source.pinned else "a copy from pageable memory"
        )
        return [Effect("host-to-device", sure, detail, "self", _REFUSED_NON_BLOCKING if non_blocking else "")]
    if source.device is Device.DEVICE and target.device is Device.HOST:
        if non_blocking is False:
            return [Effect("host-copy", sure, "", "self")]
        return [Effect(PINNED_COPY, sure, "result")] if non_blocking else []
    if source.device is Device.UNKNOWN:
        kind = "host-to-device" if target.device is Device.DEVICE else "host-copy"
        if (kind == "host-copy" and non_blocking is False) or (kind == "host-to-device" and source.changing):
            return [Effect(kind, Confidence.POSSIBLE, "", "self")]
    return []


def _type(bound: Bound, given: Arguments, frame: Frame, effects: list[Effect]) -> Value:
    value = given.get(0, "dtype")
    for option in options(value):
        text = option.path if isinstance(option, External) else option.const if isinstance(option, Host) else ""
        if isinstance(text, str) and text.rpartition(".")[2] in _LEGACY:
            device = Device.DEVICE if ".cuda." in text else Device.HOST
            kind = _LEGACY[text.rpartition(".")[2]]
            return _moved(bound.first, DeviceValue(device), kind, _flag(given.get(1, "non_blocking")), frame, effects)
    return _moved(bound.first, None, dtype_of(value), None, frame, effects)


def _type_as(bound: Bound, given: Arguments, frame: Frame, effects: list[Effect]) -> Value:
    other = next(tensors(given.get(0, "other")), None)
    target = DeviceValue(other.device, other.confidence) if other and other.device is not Device.UNKNOWN else None
    return _moved(bound.first, target, other.dtype if other else None, False, frame, effects)


def _copy_in(bound: Bound, given: Arguments, frame: Frame, effects: list[Effect]) -> Value:
    """``destination.copy_(source)``."""
    source, destination = given.get(0, "src"), bound.first
    non_blocking = _flag(given.get(1, "non_blocking"))
    if frame.in_region:
        for into in tensor_options(destination):
            for out_of in tensor_options(source):
                effects.extend(_copy_in_effects(into, out_of, non_blocking))
    return destination if destination is not None else Unknown()


def _copy_in_effects(into: Tensor, out_of: Tensor, non_blocking: bool | None) -> list[Effect]:
    sure = min(into.confidence, out_of.confidence, key=lambda c: c.rank)
    if into.device is Device.HOST and out_of.on_device and not (into.pinned and non_blocking is not False):
        return [Effect("host-copy", sure, "`copy_` into a CPU tensor", "src")]
    if into.on_device and out_of.device is Device.HOST and not (out_of.pinned and non_blocking is not False):
        return [Effect("host-to-device", sure, "`copy_` from a CPU tensor", "src")]
    if non_blocking and Device.UNKNOWN not in (into.device, out_of.device) and into.device is not out_of.device:
        return [Effect(PINNED_COPY, sure, "destination" if into.pinned else "source")]
    return []


def _tensor_from(bound: Bound, given: Arguments, frame: Frame, effects: list[Effect]) -> Value:
    """``torch.tensor(data, device=...)`` and friends: the data is host data unless it is a tensor."""
    data = given.get(0, "data") or given.keyword("obj")
    device = device_of(given.keyword("device"))
    copies = bound.spec.name == "torch.tensor"
    pin = given.keyword("pin_memory")
    pinned = pin is not None and not (isinstance(pin, Host) and pin.truth is False)
    return _from_data(data, device, dtype_of(given.keyword("dtype")), frame, effects, copies=copies, pinned=pinned)


def _new_tensor(bound: Bound, given: Arguments, frame: Frame, effects: list[Effect]) -> Value:
    device = device_of(given.keyword("device"))
    own = next(tensors(bound.first), None)
    if device is None and own is not None:
        device = DeviceValue(own.device, own.confidence)
    return _from_data(given.get(0, "data"), device, dtype_of(given.keyword("dtype")), frame, effects, copies=True)


def _from_data(
    data: Value | None,
    device: DeviceValue | None,
    dtype: str | None,
    frame: Frame,
    effects: list[Effect],
    *,
    copies: bool,
    pinned: bool = False,
) -> Value:
    source = next(tensors(data), None)
    if source is not None:
        return _moved(data, device, dtype, False, frame, effects)
    target = device or DeviceValue(frame.default_device)
    if frame.in_region:
        inside = _tensor_inside(data)
        if inside is not None:
            effects.append(Effect("host-read", inside, "each tensor in the list is read on the host", "data"))
        # the compiler makes literals constants of the graph
        compiled = frame.context is not None and frame.context.compiled
        copied = not compiled and not (isinstance(data, Sequence) and data.items == ())
        if target.device is Device.DEVICE and copied and not (isinstance(data, Unknown) and not copies):
            sure = target.confidence if not isinstance(data, Unknown) else min(target.confidence, Confidence.LIKELY)
            effects.append(Effect("host-to-device", sure, "host data becomes a device tensor", "data"))
    changing = None
    for option in options(data):
        if isinstance(option, (Host, Sequence)) and option.changing:
            changing = option.changing
    return Tensor(
        device=target.device,
        confidence=target.confidence,
        dtype=dtype or _data_dtype(data),
        rank=_data_rank(data),
        changing=changing if target.device is Device.HOST else None,
        pinned=pinned and target.device is Device.HOST,
        why="made from host data",
    )


def _tensor_inside(data: Value | None) -> Confidence | None:
    for option in options(data):
        if isinstance(option, Sequence):
            for item in (*(option.items or ()), option.element):
                sure = device_confidence(item)
                if sure is not None:
                    return sure
    return None


def _data_dtype(data: Value | None) -> str | None:
    for option in options(data):
        if isinstance(option, Host) and option.const is not MISSING:
            return {bool: _BOOL, int: _INT, float: _FLOAT}.get(type(option.const))
        if isinstance(option, Sequence) and option.items:
            kinds = {_data_dtype(item) for item in option.items}
            return kinds.pop() if len(kinds) == 1 else _FLOAT if _FLOAT in kinds else None
    return None


def _data_rank(data: Value | None) -> int | None:
    for option in options(data):
        if isinstance(option, Host):
            return 0 if (option.const is not MISSING and not isinstance(option.const, str)) or option.kind else None
        if isinstance(option, Sequence):
            inner = option.items[0] if option.items else option.element
            rank = _data_rank(inner) if inner is not None else None
            return rank + 1 if rank is not None else None
    return None


def _legacy(bound: Bound, given: Arguments, frame: Frame, effects: list[Effect]) -> Value:
    """``torch.cuda.FloatTensor([1.0])``; with sizes it only allocates."""
    path = bound.spec.name
    name = path.rpartition(".")[2]
    device = DeviceValue(Device.DEVICE if path.startswith("torch.cuda.") else Device.HOST)
    first = given.positional[0] if given.positional else None
    if isinstance(first, (Sequence, ExternalInstance)):
        return _from_data(first, device, _LEGACY.get(name), frame, effects, copies=True)
    return Tensor(device=device.device, dtype=_LEGACY.get(name))


def _pin(bound: Bound, given: Arguments, frame: Frame, effects: list[Effect]) -> Value:
    found = [
        replace(option, pinned=True, device=Device.HOST, stored=False) if isinstance(option, Tensor) else option
        for option in options(bound.first)
    ]
    return join(*found)


def _parameter(bound: Bound, given: Arguments, frame: Frame, effects: list[Effect]) -> Value:
    """``nn.Parameter(t)``: it moves with its module, so made on the CPU it is still likely on the device later."""
    source = next(tensors(given.get(0, "data")), None)
    if source is not None and source.on_device:
        return replace(source, stored=True)
    if frame.in_region and source is not None:
        return source
    return Tensor(
        device=Device.DEVICE,
        confidence=Confidence.LIKELY,
        dtype=source.dtype if source else None,
        rank=source.rank if source else None,
        stored=True,
        why="a parameter",
    )


def _index_put(bound: Bound, given: Arguments, frame: Frame, effects: list[Effect]) -> Value:
    """A CPU tensor of values is copied, even a 0-d one (measured on an H200)."""
    values, own = bound.get("values"), device_confidence(bound.get("self"))
    if frame.in_region and own is not None:
        for option in tensor_options(values):
            if option.device is Device.HOST:
                sure = min(own, option.confidence, key=lambda c: c.rank)
                effects.append(Effect("host-to-device", sure, "a CPU tensor among the values", "values"))
    return bound.get("self") or Unknown()


def _where(bound: Bound, given: Arguments, frame: Frame, effects: list[Effect]) -> Value:
    """``torch.where(mask, a, b)``: a CPU tensor among them is copied, even a 0-d one (measured on an H200)."""
    from capturelint.values.tensor_math import combined

    if (
        frame.in_region
        and len(bound.all) >= 3
        and any(device_confidence(v) not in (None, Confidence.POSSIBLE) for v in bound.all)
    ):
        for value in bound.all:
            for option in tensor_options(value):
                if option.device is Device.HOST:
                    effects.append(Effect("host-to-device", option.confidence, "a CPU tensor in `where`"))
    if len(bound.all) < 3:
        return Sequence("tuple", None, combined(bound.all, dtype="int"))
    branches = bound.all[:1] + bound.all[2:] if bound.receiver is not None else bound.all[1:]
    kinds = {tensor.dtype for value in branches for tensor in tensors(value)}
    return combined(bound.all, dtype=kinds.pop() if len(kinds) == 1 else None)


def _converted(kind: str) -> Handler:
    """``t.long()``: another dtype, same device and shape."""

    def handler(bound: Bound, given: Arguments, frame: Frame, effects: list[Effect]) -> Value:
        return _moved(bound.first, None, kind, None, frame, effects)

    return handler


HANDLERS: dict[str, Handler] = {
    **{f"torch.Tensor.{name}": _converted(kind) for name, kind in _DTYPE_NAMES.items() if kind != "complex"},
    "torch.Tensor.byte": _converted(_BYTE),
    "torch.Tensor.char": _converted(_INT),
    "torch.index_put": _index_put,
    "torch.Tensor.index_put": _index_put,
    "torch.Tensor.index_put_": _index_put,
    "torch.where": _where,
    "torch.Tensor.where": _where,
    "torch.device": _device,
    "torch.Tensor.to": _to,
    "torch.Tensor.cuda": _cuda,
    "torch.Tensor.cpu": _cpu,
    "torch.Tensor.type": _type,
    "torch.Tensor.type_as": _type_as,
    "torch.Tensor.copy_": _copy_in,
    "torch.tensor": _tensor_from,
    "torch.as_tensor": _tensor_from,
    "torch.asarray": _tensor_from,
    "torch.Tensor.new_tensor": _new_tensor,
    "torch.Tensor.pin_memory": _pin,
    "torch.nn.Parameter": _parameter,
    "torch.nn.Buffer": _parameter,
    **{f"torch.{prefix}{name}": _legacy for prefix in ("", "cuda.") for name in _LEGACY},
}
