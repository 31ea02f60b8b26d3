"""Abstract values: what matters about a value is whether it is a tensor, on which device, and whether it can change.

All values are immutable and hashable; ``why`` explains a value and takes no part in equality.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from operator import is_
from typing import TYPE_CHECKING, Any, ClassVar

from capturelint.model import Confidence
from capturelint.values.change import Change, either
from capturelint.values.immutable import immutable
from capturelint.values.inside import ONE, Extent, around, too_much

if TYPE_CHECKING:
    import ast

    from capturelint.project.definitions import ClassInfo, FunctionInfo
    from capturelint.project.module import Module
    from capturelint.values.lazy import LazyScope
    from capturelint.values.scope import Scope
    from capturelint.values.sites import Site


class _Missing(enum.Enum):
    MISSING = 0


MISSING = _Missing.MISSING


class Device(enum.Enum):
    DEVICE = "device"
    HOST = "host"
    UNKNOWN = "unknown"

    __hash__ = object.__hash__


@immutable
class Value:
    """Base class; ``why`` says where the value's type comes from, for ``--verbose``."""

    why: str = field(default="", compare=False, kw_only=True)
    extent: ClassVar[Extent] = ONE


@immutable
class Unknown(Value):
    """Nothing is known. ``parameter`` names the parameter that it came in by; ``tensor_like``: a region's own one.

    ``of_tensors``: what code out of view, such as a model, made of device tensors.
    """

    parameter: str | None = None
    tensor_like: bool = False
    of_tensors: bool = False


@immutable
class Tensor(Value):
    """A tensor. ``confidence`` says how sure ``device`` is; ``rank`` and ``dtype`` are None where not known.

    ``changing`` gives the reason why a host tensor's value can differ between replays. ``stored`` marks a tensor that
    existed before the region began (a static input, a parameter, a buffer). ``layout`` is ``sparse``, ``nested`` or
    ``jagged`` where that is known, and None for strided tensors and those that nothing is known of.
    """

    device: Device = Device.UNKNOWN
    confidence: Confidence = Confidence.CERTAIN
    dtype: str | None = None
    rank: int | None = None
    pinned: bool = False
    changing: Change | None = None
    stored: bool = False
    layout: str | None = None
    #: how many elements it has, where that is written out
    count: int | None = None

    @property
    def on_device(self) -> bool:
        return self.device is Device.DEVICE


@immutable
class Read(Value):
    """A host scalar that was read from the device: the result of ``.item()`` and friends."""

    confidence: Confidence = Confidence.CERTAIN


@immutable
class Host(Value):
    """A host value: a number, a string, None, a dtype. ``const`` is its value where known (hashable).

    ``changing`` gives the reason why it can differ between replays; ``shape`` marks sizes, which are fixed per graph.
    """

    const: Any = MISSING
    changing: Change | None = None
    shape: bool = False
    kind: str | None = None

    @property
    def is_none(self) -> bool:
        return self.const is None

    @property
    def truth(self) -> bool | None:
        return None if self.const is MISSING else bool(self.const)


@immutable
class DeviceValue(Value):
    """A ``torch.device``, or a string or index that names one."""

    device: Device
    confidence: Confidence = Confidence.CERTAIN


@immutable
class DType(Value):
    kind: str | None = None


@immutable
class Sequence(Value):
    """A list, tuple or set. ``items`` where the length is known, ``element`` the join of all."""

    kind: str = "list"
    items: tuple[Value, ...] | None = None
    element: Value | None = None
    changing: Change | None = None
    extent: Extent = field(default=ONE, init=False, compare=False)  # type: ignore[misc]

    def __post_init__(self) -> None:
        self.extent = around((*(self.items or ()), self.element))  # type: ignore[misc]
        if too_much(self.extent):
            self.items, self.element, self.extent = None, UNKNOWN, ONE  # type: ignore[misc]


@immutable
class Mapping(Value):
    """A dictionary; ``items`` holds the entries with constant keys, ``element`` the join of all values."""

    items: tuple[tuple[Any, Value], ...] = ()
    element: Value | None = None
    complete: bool = False
    extent: Extent = field(default=ONE, init=False, compare=False)  # type: ignore[misc]

    def __post_init__(self) -> None:
        self.extent = around((*(value for _, value in self.items), self.element))  # type: ignore[misc]
        if too_much(self.extent):
            self.items, self.element, self.complete = (), UNKNOWN, False  # type: ignore[misc]
            self.extent = ONE  # type: ignore[misc]

    def get(self, key: Any) -> Value | None:
        return next((value for name, value in self.items if name == key and type(name) is type(key)), None)


@immutable
class Instance(Value):
    """An object of a class of the project, made at ``site``. ``exact`` is False where a subclass may be meant."""

    site: Site
    exact: bool = True


@immutable
class MadeAt:
    """Where the code that makes an object stands."""

    module: Module
    node: ast.AST


@immutable
class ExternalInstance(Value):
    """An object of a third-party class, such as ``torch.cuda.Stream``; ``arguments`` as its constructor got them.

    ``made`` tells apart the objects of classes where it matters which one is meant: optimizers and the like.
    """

    cls: str
    arguments: tuple[tuple[str, Value], ...] = ()
    made: MadeAt | None = None

    def argument(self, name: str) -> Value | None:
        return dict(self.arguments).get(name)

    @property
    def extent(self) -> Extent:  # type: ignore[override]
        return around(value for _, value in self.arguments)


@immutable
class External(Value):
    """A module, function, class or constant of a third-party package, by dotted name."""

    path: str


@immutable
class ModuleValue(Value):
    module: Module


@immutable
class ClassValue(Value):
    """A class of the project. ``chosen``: some table of the project names it for such a place."""

    info: ClassInfo
    chosen: bool = False


@immutable
class Function(Value):
    """A function of the project, with the scope that it closes over and the object that it is bound to."""

    info: FunctionInfo
    scope: Scope | LazyScope | None = None
    bound: Value | None = None
    #: what a decorator said of it: ``triton`` for a kernel, otherwise empty
    role: str = ""
    #: one of several overrides that a call may mean
    virtual: bool = False

    @property
    def extent(self) -> Extent:  # type: ignore[override]
        return around((self.bound,))


@immutable
class BoundExternal(Value):
    """A method of a tensor or of a third-party object: ``path`` is ``torch.Tensor.item`` and the like."""

    path: str
    receiver: Value

    @property
    def extent(self) -> Extent:  # type: ignore[override]
        return around((self.receiver,))


@immutable
class Partial(Value):
    function: Value
    arguments: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()

    @property
    def extent(self) -> Extent:  # type: ignore[override]
        return around((self.function, *self.arguments, *(value for _, value in self.keywords)))


@immutable
class Launcher(Value):
    """A Triton kernel with its grid: ``kernel[grid]``."""

    kernel: Value
    grid: Value


@immutable
class Union(Value):
    options: tuple[Value, ...] = ()

    @property
    def extent(self) -> Extent:  # type: ignore[override]
        return around(self.options)


NONE = Host(const=None)
UNKNOWN = Unknown()
HOST = Host()
SIZE = Host(shape=True)
_MAX_OPTIONS = 6
_MAX_CALLABLES = 24


def options(value: Value | None) -> tuple[Value, ...]:
    """The alternatives of a value; a plain value is its own only one."""
    if isinstance(value, Union):
        return value.options
    return (value,) if value is not None else ()


def says_nothing(value: Value) -> bool:
    """Unknown, or an attribute of something unknown: ``request.temperature``."""
    return isinstance(value, Unknown) or (isinstance(value, BoundExternal) and value.path.startswith("?."))


def join(*values: Value | None) -> Value:
    """The least value that covers all of ``values``; more than a handful of alternatives become unknown."""
    if len(values) == 1 and values[0] is not None and values[0].__class__ is not Union:
        return values[0]
    first = values[0] if values else None
    found: list[Value] = []
    for index, value in enumerate(values):
        if index == 0 or value is not first:
            for option in options(value):
                _add(found, option)
    if not found:
        return UNKNOWN
    if len(found) == 1:
        return found[0]
    if first is not None and len(found) == len(options(first)) and all(map(is_, found, options(first))):
        return first
    callables = sum(isinstance(option, (Function, Instance, ClassValue, Partial)) for option in found)
    if len(found) - callables > _MAX_OPTIONS or callables > _MAX_CALLABLES:
        kept = [option for option in found if isinstance(option, (Tensor, Read))]
        return Union((*kept[: _MAX_OPTIONS - 1], UNKNOWN)) if kept else UNKNOWN
    return Union(tuple(found))


def _add(found: list[Value], option: Value) -> None:
    kind = option.__class__
    merge = _MERGERS.get(kind)
    for index, other in enumerate(found):
        if other is option:
            return
        if other.__class__ is kind:  # values of two sorts are neither equal nor one
            if option == other:
                return
            merged = merge(other, option) if merge is not None else None
            if merged is not None:
                found[index] = merged
                return
    found.append(option)


def _either(left: Confidence, right: Confidence) -> Confidence:
    """Of one tensor or another: sure of one of them is likely of both, where the other is only possible."""
    if Confidence.POSSIBLE in (left, right):
        return min(max(left, right), Confidence.LIKELY)
    return min(left, right)


def _merge_tensors(left: Tensor, right: Tensor) -> Value | None:
    if left.device is not right.device:
        return None
    return replace(
        left,
        confidence=_either(left.confidence, right.confidence),
        dtype=left.dtype if left.dtype == right.dtype else None,
        rank=left.rank if left.rank == right.rank else None,
        pinned=left.pinned and right.pinned,
        changing=either(left.changing, right.changing),
        stored=left.stored and right.stored,
        layout=left.layout or right.layout,
        count=left.count if left.count == right.count else None,
    )


def _merge_hosts(left: Host, right: Host) -> Value | None:
    if left.is_none or right.is_none or (isinstance(left.const, str) and isinstance(right.const, str)):
        return None
    return Host(
        changing=either(left.changing, right.changing),
        shape=left.shape and right.shape,
        kind=left.kind if left.kind == right.kind else None,
        why=left.why,
    )


def _merge_sequences(left: Sequence, right: Sequence) -> Value:
    if left.kind == right.kind and not (left.changing or right.changing):
        for bare, full in ((left, right), (right, left)):
            if bare.items is None and bare.element is None:
                return full  # `tuple` as an annotation says nothing of what is inside
    if left.items is not None and right.items is not None and len(left.items) == len(right.items):
        joined = tuple(join(a, b) for a, b in zip(left.items, right.items, strict=True))
        return Sequence(left.kind, joined, None, either(left.changing, right.changing), why=left.why)
    inside = (*(left.items or ()), left.element, *(right.items or ()), right.element)
    element = join(*inside) if any(each is not None for each in inside) else None
    return Sequence(left.kind, None, element, either(left.changing, right.changing), why=left.why)


def _merge_mappings(left: Mapping, right: Mapping) -> Value:
    keys = [key for key, _ in left.items] + [key for key, _ in right.items if left.get(key) is None]
    merged = tuple((key, join(left.get(key), right.get(key))) for key in keys[:64])
    element = join(left.element, right.element) if left.element or right.element else None
    return Mapping(merged, element, left.complete and right.complete, why=left.why)


def _merge_devices(left: DeviceValue, right: DeviceValue) -> Value:
    same = left.device is right.device
    return DeviceValue(left.device if same else Device.UNKNOWN, min(left.confidence, right.confidence))


def _merge_instances(left: Instance, right: Instance) -> Value | None:
    return replace(left, exact=left.exact and right.exact) if left.site is right.site else None


#: one value for two of the same sort; None, or no entry, where both must be kept
_MERGERS: dict[type[Value], Callable[[Any, Any], Value | None]] = {
    Tensor: _merge_tensors,
    Read: lambda left, right: left,
    Host: _merge_hosts,
    Sequence: _merge_sequences,
    Mapping: _merge_mappings,
    DeviceValue: _merge_devices,
    DType: lambda left, right: DType(),
    Instance: _merge_instances,
    Unknown: lambda left, right: Unknown(),
}


def tensors(value: Value | None) -> Iterator[Tensor]:
    """The tensors among a value's alternatives."""
    return (option for option in options(value) if isinstance(option, Tensor))


def on_several_devices(alternatives: Iterable[Value]) -> bool:
    """Whether the way that led here decides where the tensor is."""
    return len({option.device for option in alternatives if isinstance(option, Tensor)}) > 1


def tensor_options(value: Value | None) -> Iterator[Tensor]:
    """The tensors among a value's alternatives, each as sure as it is that it is the one."""
    found = list(tensors(value))
    cap = Confidence.CERTAIN
    if on_several_devices(found):
        cap = Confidence.POSSIBLE
    elif any(isinstance(option, Unknown) for option in options(value)):
        cap = Confidence.LIKELY
    for tensor in found:
        yield tensor if tensor.confidence <= cap else replace(tensor, confidence=cap)


def device_confidence(value: Value | None) -> Confidence | None:
    """How sure it is that ``value`` is a device tensor; None when it is not one as far as is known."""
    found = [option for option in tensors(value) if option.device is Device.DEVICE]
    if found:
        others = [o for o in options(value) if not (isinstance(o, Tensor) and o.on_device) and not is_none(o)]
        best = max((option.confidence for option in found), key=lambda c: c.rank)
        if any(isinstance(o, Unknown) for o in others):
            return min(best, Confidence.LIKELY)
        return min(best, Confidence.POSSIBLE) if others else best
    if any(option.device is Device.UNKNOWN for option in tensors(value)):
        return Confidence.POSSIBLE
    return None


def is_none(value: Value | None) -> bool:
    """Whether a value is Python's ``None``."""
    return isinstance(value, Host) and value.is_none


def changing_reason(value: Value | None) -> Change | None:
    """Why a host value can differ between capture and replay, or None where it cannot as far as is known."""
    found: Change | None = None
    for option in options(value):
        if isinstance(option, Tensor):
            found = either(found, option.changing if option.device is Device.HOST else None)
        elif isinstance(option, (Host, Sequence)) and option.changing:
            found = either(found, option.changing)
        elif isinstance(option, Sequence) and option.items:
            for item in option.items:
                found = either(found, changing_reason(item))
    return found


def changed(value: Value, change: Change) -> Value:
    """A host value (or a container of some) that can differ between replays."""
    if isinstance(value, Host) and not value.is_none:
        return replace(value, changing=either(value.changing, change), const=MISSING)
    if isinstance(value, Tensor) and value.device is Device.HOST:
        return replace(value, changing=either(value.changing, change))
    if isinstance(value, Mapping):
        items = tuple((key, changed(item, change)) for key, item in value.items)
        return Mapping(items, changed(value.element, change) if value.element else None)
    if isinstance(value, Sequence):
        return replace(value, changing=either(value.changing, change))
    return value


def without_none(value: Value) -> Value:
    """``value`` narrowed by ``is not None``."""
    kept = [option for option in options(value) if not is_none(option)]
    return join(*kept) if kept else value


def element_of(value: Value | None) -> Value:
    """What iterating over ``value`` yields."""
    found: list[Value] = []
    for option in options(value):
        if isinstance(option, Sequence):
            if option.items:
                found.extend(option.items)
            if option.element is not None:
                found.append(option.element)
        elif isinstance(option, Tensor):
            found.append(replace(option, rank=option.rank - 1 if option.rank else None, count=None))
        elif isinstance(option, Mapping):
            found.append(Host(kind="key"))
        elif isinstance(option, Host) and option.shape:
            found.append(SIZE)
        elif isinstance(option, Host) and option.const is MISSING and not option.is_none:
            found.append(Host(changing=option.changing))
        elif not is_none(option):
            found.append(Unknown())
    return join(*found) if found else UNKNOWN
