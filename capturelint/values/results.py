"""Results of listed operators: what a function, method or attribute gives, by the kind that the table names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from capturelint.model import Confidence
from capturelint.rulebook.op_spec import OpSpec, Returns
from capturelint.values import devices
from capturelint.values.change import Change, Source, because
from capturelint.values.domain import (
    HOST,
    NONE,
    SIZE,
    UNKNOWN,
    Device,
    DeviceValue,
    DType,
    External,
    ExternalInstance,
    Host,
    Read,
    Sequence,
    Tensor,
    Unknown,
    Value,
    changed,
    join,
    options,
    tensors,
)
from capturelint.values.extents import count_of
from capturelint.values.frame import Frame
from capturelint.values.tensor_math import combined

if TYPE_CHECKING:
    pass

from capturelint.values.effects import Bound, absent, is_const


def result_of(
    spec: OpSpec,
    receiver: Value | None,
    values: tuple[Value, ...],
    bound: Bound | None = None,
    frame: Frame | None = None,
) -> Value:
    """The value that a listed function, method or attribute gives."""
    bound = bound if bound is not None else Bound(spec, {}, values, receiver)
    out = bound.get("out")
    if out is not None and not absent(out):
        return out
    return _described(_result(spec, receiver, values, bound, frame), spec, bound)


def _described(value: Value, spec: OpSpec, bound: Bound) -> Value:
    """``value`` with the layout and the number of elements that its tensors have."""
    count = count_of(spec.name, bound, spec.returns.kind == "factory")
    layout = spec.layout
    if layout == "nested" and not absent(bound.get("layout")):
        layout = "jagged"  # strided is the default, so a layout that is given is the other one
    if (count is None and layout is None) or not any(True for _ in tensors(value)):
        return value
    return join(
        *(
            replace(option, layout=layout or option.layout, count=count) if isinstance(option, Tensor) else option
            for option in options(value)
        )
    )


def _result(
    spec: OpSpec, receiver: Value | None, values: tuple[Value, ...], bound: Bound, frame: Frame | None
) -> Value:
    returns = spec.returns
    first = receiver if receiver is not None else (values[0] if values else None)
    kind = returns.kind
    if kind in ("tensor", "tensors", "reduce", "reduce-or-pair", "same"):
        return _tensor_result(returns, first, values, bound)
    if kind == "self":
        return first if first is not None else UNKNOWN
    if kind in ("factory", "like"):
        return _made(spec, returns, first, bound, frame)
    if kind in ("read", "reads"):
        read = _read(first if first is not None else UNKNOWN)
        return read if kind == "read" else Sequence("list", None, read)
    if kind == "shape":
        return _shape(spec, first, bound)
    if kind == "device":
        return _device_of_tensor(first)
    if kind == "join":
        return join(*values) if values else UNKNOWN
    if kind == "instance":
        assert returns.target is not None
        named = tuple((name, value) for name, value in bound.values.items())
        if frame is not None and frame.in_region and returns.target in frame.engine.ops.module_classes:
            if bound.get("device") is None and frame.default_device is not Device.DEVICE:
                named = (*named, ("<made in region>", Host(const=True)))
        return ExternalInstance(returns.target, named)
    if kind in ("changing", "environment"):
        return _from_outside(kind, spec, frame)
    return _plain(returns)


def _from_outside(kind: str, spec: OpSpec, frame: Frame | None) -> Value:
    """A clock, chance, the environment. What code outside regions keeps of them stays as it is."""
    if frame is None or not frame.in_region:
        return HOST
    if kind == "environment":
        reason = f"`{spec.name}` gives what the environment says at the time"
        return Host(changing=because(reason, Confidence.POSSIBLE, Source.ENVIRONMENT))
    return Host(changing=_new_each_time(spec))


def _new_each_time(spec: OpSpec) -> Change:
    return because(f"`{spec.name}` gives another value at each call", source=Source.CALL)


def drawn(spec: OpSpec, value: Value, frame: Frame) -> Value:
    """Random numbers of the CPU's generator are host values; on the device the generator's state is replayed on."""
    if not spec.random or not frame.in_region:
        return value
    return join(*(changed(option, _new_each_time(spec)) for option in options(value)))


def _plain(returns: Returns) -> Value:
    kind = returns.kind
    if kind == "host-tensor":
        return Tensor(device=Device.HOST, dtype=returns.dtype)
    if kind == "ndarray":
        return ExternalInstance("numpy.ndarray")
    if kind == "host":
        return HOST
    if kind == "dtype":
        return DType()
    if kind == "none":
        return NONE
    if kind == "module":
        assert returns.target is not None
        return External(returns.target)
    return UNKNOWN


def _tensor_result(returns: Returns, first: Value | None, values: tuple[Value, ...], bound: Bound) -> Value:
    kind = returns.kind
    if kind == "same":
        found = [replace(t, stored=t.stored and bound.spec.view, count=None) for t in tensors(first)]
        return join(*found) if found else (first if isinstance(first, Unknown) else UNKNOWN)
    operands = list(_flat(values))
    if not any(True for value in operands for _ in tensors(value)):
        if any(isinstance(value, Unknown) for value in operands):
            likely = any(isinstance(value, Unknown) and value.tensor_like for value in operands)
            return Unknown(tensor_like=True) if likely else UNKNOWN
        return Tensor(device=Device.UNKNOWN, confidence=Confidence.POSSIBLE, dtype=returns.dtype)
    rank: int | None = 0 if returns.rank0 else None
    dtype = returns.dtype
    if kind == "reduce-or-pair":
        dim, pair = bound.get("dim"), bound.get("other")
        if pair is not None:
            return combined(operands)
        if dim is None or absent(dim):
            return combined(operands, dtype=_kept_dtype(operands), rank=0)
        value = combined(operands, dtype=_kept_dtype(operands), rank=None)
        return Sequence("tuple", (value, replace(value, dtype="int")))
    if kind == "reduce":
        rank = _reduced_rank(first, bound)
        dtype = dtype or _reduced_dtype(bound.spec.name, _kept_dtype(operands))
    if bound.spec.name.rpartition(".")[2] in _SCANS:
        own = next(tensors(first), None)
        return combined(
            operands, dtype=_reduced_dtype("sum", own.dtype if own else None), rank=own.rank if own else None
        )
    if kind == "tensors":
        value = combined(operands, rank=None)
        if returns.count is None:
            return Sequence("tuple", None, replace(value, dtype=_kept_dtype(operands)))
        return Sequence("tuple", tuple(value for _ in range(returns.count)))
    name = bound.spec.name.rpartition(".")[2]
    if dtype is None and name in _REARRANGE and not any(devices.is_dtype(value) for value in values):
        dtype = _kept_dtype(list(_flat((first or UNKNOWN,))))
    if name in _RESHAPE:
        rank = _rank_of_size(bound.get("size") or bound.get("shape"))
    return combined(operands, dtype=dtype, rank=rank)


#: operators that give their first operand's elements another shape, order or number: a mask remains a mask
_REARRANGE = frozenset({
    "broadcast_to", "cat", "concat", "concatenate", "diagonal", "dstack", "expand", "expand_as", "flatten", "gather",
    "hstack", "index_select", "narrow", "ravel", "repeat", "reshape", "reshape_as", "select", "squeeze", "stack",
    "take", "take_along_dim", "tile", "unflatten", "unfold", "unsqueeze", "view", "view_as", "vstack",
})  # fmt: skip
#: those of them that are given the whole new shape
_RESHAPE = frozenset({"broadcast_to", "expand", "reshape", "view"})


#: operators that keep the shape and count in integers, as ``sum`` does
_SCANS = frozenset({"cumsum", "cumprod", "cumsum_", "cumprod_"})


def _reduced_rank(first: Value | None, bound: Bound) -> int | None:
    """0 without a dimension; with one, one less than the operand's, if that is known and ``keepdim`` is not given."""
    dim, keep = bound.get("dim"), bound.get("keepdim")
    if dim is None or absent(dim):
        return 0
    own = next(tensors(first), None)
    if (
        own is None
        or own.rank is None
        or not isinstance(dim, Host)
        or (keep is not None and not is_const(keep, (False,)))
    ):
        return None
    return max(own.rank - 1, 0)


def _reduced_dtype(name: str, kind: str | None) -> str | None:
    """Sums and products of booleans and integers are integers."""
    last = name.rpartition(".")[2]
    if last in ("sum", "prod"):
        return "int" if kind in ("bool", "int", "uint8") else kind
    return kind if last in ("amax", "amin", "max", "min") else None


def _kept_dtype(operands: list[Value]) -> str | None:
    kinds = {tensor.dtype for value in operands for tensor in tensors(value)}
    return kinds.pop() if len(kinds) == 1 else None


def _flat(values: tuple[Value, ...], depth: int = 0) -> Iterator[Value]:
    for value in values:
        for option in options(value):
            if isinstance(option, Sequence) and depth < 2:
                inner = option.items if option.items is not None else (option.element,)
                yield from _flat(tuple(each for each in inner if each is not None), depth + 1)
            else:
                yield option


def _made(spec: OpSpec, returns: Returns, first: Value | None, bound: Bound, frame: Frame | None) -> Value:
    dtype = devices.dtype_of(bound.get("dtype")) or returns.dtype
    given = devices.device_of(bound.get("device"))
    if given is None and returns.kind == "like":
        source = next(tensors(first), None)
        if source is None:
            return Unknown()
        rank = source.rank if "_like" in spec.name else None
        return Tensor(
            device=source.device, confidence=source.confidence, dtype=dtype or source.dtype, rank=rank, why=source.why
        )
    default = frame.default_device if frame is not None else Device.HOST
    if given is None and bound.open:
        default = Device.UNKNOWN
    device = given if given is not None else DeviceValue(default)
    pinned = bound.get("pin_memory")
    return Tensor(
        device=device.device,
        confidence=device.confidence,
        dtype=dtype,
        rank=_made_rank(spec, bound),
        pinned=isinstance(pinned, Host) and pinned.truth is not False,
        why=f"made by {spec.name}",
    )


def _made_rank(spec: OpSpec, bound: Bound) -> int | None:
    if spec.name in ("torch.arange", "torch.linspace", "torch.randperm", "torch.logspace"):
        return 1
    if spec.name == "torch.scalar_tensor":
        return 0
    return _rank_of_size(bound.get("size"))


def _rank_of_size(size: Value | None) -> int | None:
    for option in options(size):
        if isinstance(option, Sequence) and option.items is not None:
            if len(option.items) == 1 and isinstance(option.items[0], Sequence):
                inner = option.items[0].items
                return len(inner) if inner is not None else None
            if all(isinstance(item, (Host, Read)) for item in option.items):
                return len(option.items)
    return None


def _read(value: Value) -> Value:
    """The host scalar that reading ``value`` gives."""
    found: list[Value] = []
    for option in options(value):
        if isinstance(option, Tensor) and option.device is Device.HOST:
            found.append(Host(changing=option.changing))
        elif isinstance(option, Tensor):
            found.append(Read(option.confidence if option.on_device else Confidence.POSSIBLE))
        elif isinstance(option, (Host, Read)):
            found.append(option)
    return join(*found) if found else HOST


def _shape(spec: OpSpec, first: Value | None, bound: Bound) -> Value:
    if spec.name.rpartition(".")[2] in ("shape", "size", "stride"):
        if bound.get("dim") is not None and not absent(bound.get("dim")):
            return SIZE
        rank = next((tensor.rank for tensor in tensors(first)), None)
        return Sequence("tuple", (SIZE,) * rank if rank is not None else None, SIZE)
    return SIZE


def _device_of_tensor(value: Value | None) -> Value:
    found = [DeviceValue(tensor.device, tensor.confidence) for tensor in tensors(value)]
    return join(*found) if found else DeviceValue(Device.UNKNOWN)
