"""Calls of third-party functions and methods: effects and results from the operator tables."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from capturelint.model import Confidence
from capturelint.rulebook.op_spec import Condition, EffectKind, OpEffect, OpSpec, Returns
from capturelint.values import devices, library
from capturelint.values.domain import (
    HOST,
    MISSING,
    NONE,
    SIZE,
    UNKNOWN,
    Device,
    DeviceValue,
    DType,
    External,
    ExternalInstance,
    Host,
    Instance,
    Mapping,
    Read,
    Sequence,
    Tensor,
    Unknown,
    Value,
    device_confidence,
    join,
    options,
    tensors,
)
from capturelint.values.facts import Effect
from capturelint.values.frame import Arguments, Frame
from capturelint.values.tensor_math import combined

if TYPE_CHECKING:
    from collections.abc import Mapping as Dict

#: what only a tensor has, so that a receiver of unknown type says something by being asked for it
_TELLING = frozenset({EffectKind.HOST_READ, EffectKind.HOST_COPY, EffectKind.DYNAMIC_SHAPE})
#: third-party modules whose functions do nothing to a GPU; an unknown function of theirs is no gap worth reporting
_HARMLESS = frozenset(
    [
        "builtins",
        "typing",
        "typing_extensions",
        "math",
        "os",
        "sys",
        "time",
        "logging",
        "functools",
        "itertools",
        "collections",
        "dataclasses",
        "enum",
        "re",
        "json",
        "abc",
        "contextlib",
        "warnings",
        "copy",
        "inspect",
        "operator",
        "random",
        "string",
        "types",
        "pathlib",
        "threading",
        "weakref",
        "gc",
        "traceback",
        "torch.distributed.get_rank",
        "torch.distributed.get_world_size",
        "einops",
        "packaging",
        "platform",
        "uuid",
        "datetime",
    ]
)


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


def call_external(
    path: str, receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame, effects: list[Effect]
) -> Value:
    """The result of calling something third-party; what it does to the device is added to ``effects``."""
    engine = frame.engine
    if path.startswith("?."):
        return _call_unknown(path[2:], receiver, given, node, frame, effects)
    known = _predicate(path, frame)
    if known is not None:
        return known
    if frame.in_region and _from_vocabulary(path, frame, effects):
        return HOST if engine.vocabulary.matches(path, engine.vocabulary.reads_device) else UNKNOWN
    spec = engine.ops.lookup(path)
    if spec is not None:
        bound = bind(spec, receiver, given)
        effects.extend(_effects(spec, bound, frame))
    else:
        bound = bind(OpSpec(path), receiver, given)
    for spelling in (path, bound.spec.name):  # as written, then as the tables name it
        handled = library.result(spelling, receiver, given, node, frame)
        if handled is not None:
            return handled
        if spelling in devices.HANDLERS:
            return devices.HANDLERS[spelling](bound, given, frame, effects)
    if spec is None:
        return _unlisted(path, receiver, given, node, frame)
    return result_of(spec, receiver, bound.all, bound, frame)


def _predicate(path: str, frame: Frame) -> Value | None:
    predicate = frame.engine.ops.predicate(path)
    if predicate is not None and not predicate.attribute:
        known = predicate.outside
        if frame.context is not None:
            known = predicate.in_compile if frame.context.compiled else predicate.in_region
        return Host(const=known.value, kind="bool") if known is not None else Host(kind="bool")
    if frame.in_region:
        value = frame.engine.vocabulary.predicate(path)
        if value is not None:
            return Host(const=value, kind="bool")
    return None


def _from_vocabulary(path: str, frame: Frame, effects: list[Effect]) -> bool:
    """What config says of a third-party name comes before what the tables say."""
    vocabulary = frame.engine.vocabulary
    if vocabulary.matches(path, vocabulary.capture_safe):
        return True
    for kind, names in (("synchronize", vocabulary.synchronizes), ("host-read", vocabulary.reads_device)):
        if vocabulary.matches(path, names):
            effects.append(Effect(kind, Confidence.CERTAIN, f"`{path}` (config)"))
            return True
    return False


def _call_unknown(
    name: str, receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame, effects: list[Effect]
) -> Value:
    """A method of something unknown: ``.item()`` still says that it is a tensor."""
    spec = frame.engine.ops.lookup(f"torch.Tensor.{name}")
    telling = spec is not None and any(effect.kind in _TELLING for effect in spec.effects)
    if spec is not None and telling:
        sure = Confidence.LIKELY if isinstance(receiver, Unknown) and receiver.tensor_like else Confidence.POSSIBLE
        assumed = Tensor(device=Device.DEVICE, confidence=sure, why="only a tensor has this method")
        bound = bind(spec, assumed, given)
        effects.extend(_effects(spec, bound, frame))
        return result_of(spec, assumed, bound.all, bound, frame)
    if name in ("synchronize", "query") and frame.in_region:
        effects.append(Effect("synchronize", Confidence.POSSIBLE, f"`.{name}()` of something unknown"))
    if isinstance(receiver, Unknown) and receiver.tensor_like and spec is not None:
        return Unknown(tensor_like=True)
    if frame.in_region:
        frame.engine.unresolved(frame, node, f"the object that has `.{name}` is unknown")
    return UNKNOWN


# -- effects ---------------------------------------------------------------------------------------------------------


def _effects(spec: OpSpec, bound: Bound, frame: Frame) -> Iterator[Effect]:
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
        yield Effect(effect.kind.value, sure, effect.detail, operand, effect.versions)


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
    if any(_absent(bound.get(name)) for name in when.given):
        return False
    if any(not _left_out(bound, name) for name in when.not_given):
        return False
    for name, values in when.const:
        if not _is_const(bound.get(name), values):
            return False
    for name, values in when.not_const:
        if _is_const(bound.get(name), values):
            return False
    return all(_is_kind(bound.get(name), kind) for name, kind in when.kinds)


def _absent(value: Value | None) -> bool:
    return value is None or (isinstance(value, Host) and value.is_none)


def _left_out(bound: Bound, name: str) -> bool:
    """Not passed at all: what is passed and looks like None here may well be something else in another call."""
    return name not in bound.values and not bound.open


def _is_const(value: Value | None, values: tuple[object, ...]) -> bool:
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


# -- results ---------------------------------------------------------------------------------------------------------


def result_of(
    spec: OpSpec,
    receiver: Value | None,
    values: tuple[Value, ...],
    bound: Bound | None = None,
    frame: Frame | None = None,
) -> Value:
    """The value that a listed function, method or attribute gives."""
    returns = spec.returns
    first = receiver if receiver is not None else (values[0] if values else None)
    bound = bound if bound is not None else Bound(spec, {}, values, receiver)
    out = bound.get("out")
    if out is not None and not _absent(out):
        return out
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
    return _plain(returns, spec)


def _plain(returns: Returns, spec: OpSpec) -> Value:
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
    if kind == "changing":
        return Host(changing=f"`{spec.name}` gives another value at each call")
    if kind == "module":
        assert returns.target is not None
        return External(returns.target)
    return UNKNOWN


def _tensor_result(returns: Returns, first: Value | None, values: tuple[Value, ...], bound: Bound) -> Value:
    kind = returns.kind
    if kind == "same":
        found = [replace(t, stored=t.stored and bound.spec.view) for t in tensors(first)]
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
        if dim is None or _absent(dim):
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
    if kind == "tensor" and rank is None and dtype is None:
        return combined(operands, dtype=None, rank=None)
    return combined(operands, dtype=dtype, rank=rank)


#: operators that keep the shape and count in integers, as ``sum`` does
_SCANS = frozenset({"cumsum", "cumprod", "cumsum_", "cumprod_"})


def _reduced_rank(first: Value | None, bound: Bound) -> int | None:
    """0 without a dimension; with one, one less than the operand's, if that is known and ``keepdim`` is not given."""
    dim, keep = bound.get("dim"), bound.get("keepdim")
    if dim is None or _absent(dim):
        return 0
    own = next(tensors(first), None)
    if (
        own is None
        or own.rank is None
        or not isinstance(dim, Host)
        or (keep is not None and not _is_const(keep, (False,)))
    ):
        return None
    return max(own.rank - 1, 0)


def _reduced_dtype(name: str, kind: str | None) -> str | None:
    """Sums and products of booleans and integers are integers."""
    last = name.rpartition(".")[2]
    if last in ("sum", "prod"):
        return "int" if kind in ("bool", "int") else kind
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
            return Tensor(device=Device.UNKNOWN, confidence=Confidence.POSSIBLE, dtype=dtype)
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
    size = bound.get("size")
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
        if bound.get("dim") is not None and not _absent(bound.get("dim")):
            return SIZE
        rank = next((tensor.rank for tensor in tensors(first)), None)
        return Sequence("tuple", (SIZE,) * rank if rank is not None else None, SIZE)
    return SIZE


def _device_of_tensor(value: Value | None) -> Value:
    found = [DeviceValue(tensor.device, tensor.confidence) for tensor in tensors(value)]
    return join(*found) if found else DeviceValue(Device.UNKNOWN)


# -- what is not listed ----------------------------------------------------------------------------------------------


def _unlisted(path: str, receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    engine = frame.engine
    if path in engine.ops.module_classes:
        return ExternalInstance(path, tuple(given.keywords))
    if isinstance(receiver, Instance) and path.startswith("torch.nn."):
        return _module_method(path, receiver)
    if isinstance(receiver, ExternalInstance) and path.startswith("torch.nn.Module."):
        return _module_method(path, receiver)
    if isinstance(receiver, Tensor):
        return Tensor(device=receiver.device, confidence=Confidence.POSSIBLE)
    if frame.in_region and not _harmless(path):
        engine.unresolved(frame, node, f"`{path}` is not part of the project")
    if path.rpartition(".")[2][:1].isupper() and not path.startswith("builtins."):
        return ExternalInstance(path, tuple(given.keywords))
    return UNKNOWN


def _module_method(path: str, receiver: Value) -> Value:
    if path.rpartition(".")[2] in ("cuda", "to", "eval", "train", "half", "float", "bfloat16", "requires_grad_", "cpu"):
        return receiver
    return UNKNOWN


def _harmless(path: str) -> bool:
    parts = path.split(".")
    return any(".".join(parts[:count]) in _HARMLESS for count in range(1, len(parts) + 1))


#: modules with weights of their own: what they give is where their weights are
_WEIGHTED = (
    "Linear",
    "Bilinear",
    "Conv",
    "Embedding",
    "LayerNorm",
    "RMSNorm",
    "BatchNorm",
    "GroupNorm",
    "InstanceNorm",
)


def call_module(
    target: ExternalInstance, given: Arguments, node: ast.AST, frame: Frame, effects: list[Effect]
) -> Value:
    """The call of a third-party object: one of torch's modules, or something unknown."""
    spec = frame.engine.ops.lookup(f"{target.cls}.__call__") or frame.engine.ops.lookup(f"{target.cls}.forward")
    if spec is None:
        if frame.in_region:
            frame.engine.unresolved(frame, node, f"`{target.cls}` is not part of the project")
        return UNKNOWN
    bound = bind(spec, target, given)
    effects.extend(_effects(spec, bound, frame))
    result = result_of(spec, given.positional[0] if given.positional else None, bound.all, bound, frame)
    if isinstance(result, Unknown) and target.cls.rpartition(".")[2].startswith(_WEIGHTED):
        return Tensor(device=Device.DEVICE, confidence=Confidence.LIKELY, why="made by a module with weights")
    return result
