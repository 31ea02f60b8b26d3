"""Reading and writing items: what an index does depends on what it is, and what is written."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from capturelint.model import Confidence
from capturelint.values import dunder
from capturelint.values.change import either
from capturelint.values.domain import (
    MISSING,
    UNKNOWN,
    Device,
    External,
    ExternalInstance,
    Function,
    Host,
    Launcher,
    Mapping,
    Read,
    Sequence,
    Tensor,
    Value,
    changing_reason,
    device_confidence,
    element_of,
    join,
    options,
    tensor_options,
    tensors,
)
from capturelint.values.expressions import evaluate
from capturelint.values.facts import Effect
from capturelint.values.frame import Frame


def read_item(node: ast.Subscript, frame: Frame) -> Value:
    """``base[index]`` as an expression."""
    base = evaluate(node.value, frame)
    index = evaluate(node.slice, frame)
    if changing_reason(index) is not None:
        frame.candidate(node)
    if frame.context is not None:
        effects = list(_read_effects(base, node.slice, index, frame))
        frame.context.record_effects(node, tuple(effects), frame.confidence)
    own = dunder.call_method(base, "__getitem__", (index,), node, frame)
    if own is not None:
        return own
    return join(*(_item(option, node.slice, index, frame) for option in options(base)))


def _item(base: Value, index_node: ast.expr, index: Value, frame: Frame) -> Value:
    if isinstance(base, Tensor):
        return _indexed(base, index_node, index)
    if isinstance(base, Function) and base.role == "triton":
        return Launcher(base, index)
    if isinstance(base, Sequence):
        return _sequence_item(base, index_node, index)
    if isinstance(base, Mapping):
        return _mapping_item(base, index)
    if isinstance(base, ExternalInstance) and isinstance(base.argument("modules"), Sequence):
        modules = base.argument("modules")
        assert isinstance(modules, Sequence)
        return _sequence_item(modules, index_node, index)
    if isinstance(base, ExternalInstance) and base.cls == "numpy.ndarray":
        return join(base, Host(changing=changing_reason(index)))
    if isinstance(base, External):
        return base  # a subscripted class: list[int]
    if isinstance(base, Host) and base.const is not None:
        return Host(changing=either(base.changing, changing_reason(index)))
    return UNKNOWN


def _sequence_item(base: Sequence, index_node: ast.expr, index: Value) -> Value:
    if isinstance(index_node, ast.Slice):
        return Sequence(base.kind, None, element_of(base), base.changing) if base.items != () else base
    if isinstance(index, Host) and isinstance(index.const, int) and base.items is not None:
        if -len(base.items) <= index.const < len(base.items):
            return base.items[index.const]
    value = element_of(base)
    reason = either(base.changing, changing_reason(index))
    if reason is not None and isinstance(value, Host):
        return replace(value, changing=reason)
    return value


def _mapping_item(base: Mapping, index: Value) -> Value:
    if isinstance(index, Host) and index.const is not MISSING:
        known = base.get(index.const)
        if known is not None:
            return known
    value = join(*(item for _, item in base.items), base.element)
    reason = changing_reason(index)
    if reason is not None and isinstance(value, Host):
        return replace(value, changing=reason)
    return value


# -- tensors ---------------------------------------------------------------------------------------------------------


def parts_of(index_node: ast.expr, index: Value) -> Iterator[tuple[ast.expr, Value]]:
    """The parts of an index: ``x[a, b]`` has two, and so has ``x[[a, b]]`` where torch takes the list for a tuple."""
    if isinstance(index, Sequence) and index.items is not None and (index.kind == "tuple" or _acts_as_tuple(index)):
        written = isinstance(index_node, (ast.Tuple, ast.List)) and len(index.items) == len(index_node.elts)
        nodes = index_node.elts if written and isinstance(index_node, (ast.Tuple, ast.List)) else ()
        yield from zip(nodes or [index_node] * len(index.items), index.items, strict=True)
        return
    yield index_node, index


def _acts_as_tuple(index: Sequence) -> bool:
    """A short list that holds a tensor, a slice, None or another list: torch takes it apart as it does a tuple."""
    items = index.items or ()
    return index.kind == "list" and any(
        isinstance(option, (Tensor, Sequence))
        or (isinstance(option, Host) and (option.is_none or option.kind == "slice"))
        for item in items
        for option in options(item)
    )


def _indexed(base: Tensor, index_node: ast.expr, index: Value) -> Value:
    """The tensor that indexing gives: its rank where every part's effect on it is known."""
    rank = base.rank
    result_rank: int | None = rank
    for node, value in parts_of(index_node, index):
        if _is_slice(node, value) or (isinstance(node, ast.Constant) and node.value is Ellipsis):
            continue
        if isinstance(value, Host) and value.is_none:
            result_rank = result_rank + 1 if result_rank is not None else None
        elif (isinstance(value, (Host, Read)) or _is_host_number(value)) and result_rank is not None:
            result_rank = result_rank - 1
        elif isinstance(value, Tensor) and value.dtype in _MASKS and value.rank and result_rank is not None:
            result_rank -= value.rank - 1
        else:
            result_rank = None
    if result_rank is not None and result_rank < 0:
        result_rank = None
    return replace(base, rank=result_rank, count=None)


def _is_slice(node: ast.expr, value: Value) -> bool:
    return isinstance(node, ast.Slice) or (isinstance(value, Host) and value.kind == "slice")


def _is_host_number(value: Value) -> bool:
    """A 0-d CPU tensor, which torch takes for the number in it."""
    return isinstance(value, Tensor) and value.device is Device.HOST and value.rank == 0 and value.dtype != "bool"


def _read_effects(base: Value, index_node: ast.expr, index: Value, frame: Frame) -> Iterator[Effect]:
    base_sure = device_confidence(base)
    if base_sure is None:
        yield from _host_container_effects(base, index_node, index)
        return
    for node, value in parts_of(index_node, index):
        yield from _size_effects(node, frame)
        if isinstance(node, ast.Slice):
            continue
        for effect in _index_effects(value, reads=True):
            yield replace(effect, confidence=min(effect.confidence, base_sure, key=lambda c: c.rank))


def _host_container_effects(base: Value, index_node: ast.expr, index: Value) -> Iterator[Effect]:
    """A device tensor as the index of a list or of a host tensor is read by the CPU."""
    counted = any(isinstance(o, Sequence) or (isinstance(o, Host) and o.kind == "str") for o in options(base))
    if counted and not isinstance(index_node, ast.Slice):
        sure = device_confidence(index)
        if sure is not None:
            yield Effect("host-read", sure, "a list index")


def _size_effects(node: ast.expr, frame: Frame) -> Iterator[Effect]:
    """A device tensor as a slice bound."""
    if not isinstance(node, ast.Slice) or frame.context is None:
        return
    from capturelint.values.facts import span_of

    for bound in (node.lower, node.upper, node.step):
        if bound is None:
            continue
        sure = device_confidence(frame.context.values.get(span_of(bound)))
        if sure is not None:
            yield Effect("size-from-tensor", sure, "a slice bound", "bound")


def _index_effects(value: Value, *, reads: bool) -> Iterator[Effect]:
    """What one part of an index does: a mask, a 0-d tensor, a list, a host tensor."""
    for tensor in tensor_options(value):
        yield from _tensor_index(tensor, reads)
    # where a tensor may be the index too, a list is another way's value
    sure_of_list = Confidence.POSSIBLE if any(True for _ in tensors(value)) else Confidence.CERTAIN
    for option in options(value):
        if isinstance(option, Sequence) and option.kind in ("list", "range"):
            if any(True for _ in tensors(option.element)):
                continue  # a list that torch takes for a tuple, of tensors that are not known one by one
            yield Effect("host-to-device", sure_of_list, f"a {option.kind} as index", "index")
        elif isinstance(option, ExternalInstance) and option.cls == "numpy.ndarray":
            yield Effect("host-to-device", sure_of_list, "a NumPy array as index", "index")


#: what picks elements by its truth: ``uint8`` is what masks were made of before ``bool`` was
_MASKS = ("bool", "uint8")


def _tensor_index(index: Tensor, reads: bool) -> Iterator[Effect]:
    if index.device is Device.HOST:
        if index.rank == 0:
            return  # read on the host, which is at hand
        if index.dtype == "bool":
            return  # counted on the host, and its rows travel through pinned memory
        yield Effect("host-to-device", index.confidence, "a CPU tensor as index", "index")
        return
    sure = index.confidence if index.on_device else Confidence.POSSIBLE
    if index.rank == 0:
        what = "mask" if index.dtype == "bool" else "tensor"
        yield Effect("size-from-tensor", sure, f"a 0-d {what} as index", "index")
    elif index.dtype in _MASKS:
        if reads:
            yield Effect("dynamic-shape", sure, "a boolean mask", "index")


def write_item(target: ast.Subscript, value: Value, frame: Frame, *, augmented: bool) -> None:
    """``base[index] = value``; inside regions the effects are recorded at the target."""
    base = _written(target.value, frame)
    index = evaluate(target.slice, frame)
    if changing_reason(index) is not None or changing_reason(value) is not None:
        frame.candidate(target)
    if frame.context is None:
        return
    dunder.call_method(base, "__setitem__", (index, value), target, frame)
    sure = device_confidence(base)
    if sure is not None:
        effects = list(_write_effects(target, index, value, frame, augmented=augmented))
        capped = tuple(replace(e, confidence=min(e.confidence, sure, key=lambda c: c.rank)) for e in effects)
        frame.context.record_effects(target, capped, frame.confidence)
        if augmented:
            frame.context.record(target, _item(base, target.slice, index, frame))
        return
    effects = list(_host_container_effects(base, target.slice, index))
    if any(t.device is Device.HOST for t in tensors(base)) and not augmented:
        copied = device_confidence(value)
        if copied is not None:
            effects.append(Effect("host-copy", copied, "a device tensor is written into a CPU tensor"))
    frame.context.record_effects(target, tuple(effects), frame.confidence)
    _rebind_container(target, base, index, value, frame)


def _written(node: ast.expr, frame: Frame) -> Value:
    """Evaluates what an item is stored into; that alone does not make it something that the region reads."""
    if frame.context is None:
        return evaluate(node, frame)
    attributes, names = set(frame.context.attributes_read), set(frame.context.names_read)
    value = evaluate(node, frame)
    if not any(True for _ in tensors(value)):
        frame.context.attributes_read &= attributes | {
            read for read in frame.context.attributes_read if read[1] != getattr(node, "attr", None)
        }
        frame.context.names_read &= names | {
            read for read in frame.context.names_read if read[1] != getattr(node, "id", None)
        }
    return value


def _rebind_container(target: ast.Subscript, base: Value, index: Value, value: Value, frame: Frame) -> None:
    """A local list or dictionary after an item was stored in it."""
    if not isinstance(target.value, ast.Name) or frame.scope.holder_of(target.value.id) is not frame.scope:
        return
    if isinstance(base, Mapping):
        if isinstance(index, Host) and index.const is not MISSING:
            items = tuple((key, item) for key, item in base.items if key != index.const)
            frame.scope.bind(target.value.id, Mapping((*items, (index.const, value)), base.element, base.complete))
        else:
            element = join(base.element, value) if base.element is not None else value
            frame.scope.bind(target.value.id, Mapping(base.items, element))
    elif isinstance(base, Sequence):
        frame.scope.bind(target.value.id, Sequence(base.kind, None, join(element_of(base), value)))


def _write_effects(
    target: ast.Subscript, index: Value, value: Value, frame: Frame, *, augmented: bool
) -> Iterator[Effect]:
    parts = list(parts_of(target.slice, index))
    for node, part in parts:
        yield from _size_effects(node, frame)
        if isinstance(node, ast.Slice):
            continue
        yield from _index_effects(part, reads=augmented)
    kinds = [_gathers(part) for _, part in parts]
    advanced = [sure for sure in kinds if sure is not None]
    masks = [
        part
        for _, part in parts
        if any(t.dtype in _MASKS and t.rank != 0 and t.device is not Device.HOST for t in tensors(part))
    ]
    if advanced and not masks and not augmented and _is_number(value):
        sure = min(advanced, key=lambda c: c.rank)
        yield Effect("host-to-device", sure, "a Python number is copied to the device to be scattered", "value")
    element = not masks and not advanced and _picks_element(target, index, frame)
    if element and not augmented and _is_number(value):
        yield Effect("host-to-device", Confidence.CERTAIN, "a Python number is copied into a single element", "value")
    if masks and not augmented and (advanced or len(masks) > 1):
        sure = device_confidence(masks[0]) or Confidence.POSSIBLE
        yield Effect("dynamic-shape", sure, "a boolean mask beside another index tensor", "index")
    elif masks and not augmented:
        yield from _mask_write(masks[0], value)
    for tensor in tensor_options(value):
        if masks:
            break  # one element travels as a number does, and more than one are refused outside a graph too
        if tensor.device is Device.HOST and not augmented and (tensor.rank != 0 or advanced or element):
            unsure = tensor.rank is None and not advanced
            sure = min(tensor.confidence, Confidence.LIKELY if unsure else Confidence.CERTAIN)
            yield Effect("host-to-device", sure, "a CPU tensor is written into a device tensor", "value")


def _picks_element(target: ast.Subscript, index: Value, frame: Frame) -> bool:
    """Whether every dimension is indexed by an integer: ``x1d[0] = 3.0`` copies, ``x2d[0] = 3.0`` fills (measured)."""
    assert frame.context is not None
    from capturelint.values.facts import span_of

    base = frame.context.values.get(span_of(target.value))
    found = [_indexed(tensor, target.slice, index) for tensor in tensors(base)]
    return bool(found) and all(isinstance(each, Tensor) and each.rank == 0 for each in found)


def _gathers(part: Value) -> Confidence | None:
    """How sure it is that an index part is an integer tensor of one dimension or more, on the device.

    A mask on the CPU is turned into one.
    """
    for option in options(part):
        if isinstance(option, Tensor) and option.device is Device.HOST and option.dtype == "bool" and option.rank != 0:
            return option.confidence
        if isinstance(option, Tensor) and option.on_device and option.rank != 0:
            if option.dtype == "int":
                return option.confidence
            if option.dtype is None:
                return Confidence.POSSIBLE
    return None


def _is_number(value: Value) -> bool:
    found = list(options(value))
    return bool(found) and all(isinstance(o, (Host, Read)) and not (isinstance(o, Host) and o.is_none) for o in found)


def _mask_write(mask: Value, value: Value) -> Iterator[Effect]:
    """``x[mask] = number`` (or a 0-d tensor) captures; a longer value makes the mask be counted."""
    sure = device_confidence(mask) or Confidence.POSSIBLE
    for tensor in tensors(value):
        if tensor.device is Device.HOST:
            continue  # a number, or one element; more are refused outside a graph too
        if tensor.rank is not None and (tensor.rank > 0 or tensor.on_device):
            yield Effect("dynamic-shape", sure, "a boolean mask that takes a tensor of values", "index")
        elif tensor.rank is None:
            yield Effect("dynamic-shape", Confidence.POSSIBLE, "a boolean mask that takes a tensor of values", "index")
