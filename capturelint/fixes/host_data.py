"""CG201: numbers that are filled in on the device instead of copied there."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import libcst as cst

from capturelint.fixes.code import argument, bare, code, receiver
from capturelint.fixes.hoisting import hoisted
from capturelint.fixes.index_dtypes import index_dtype
from capturelint.fixes.keywords import keyword_set
from capturelint.fixes.place import Place, number, sole_index
from capturelint.model import Fix

_FILL = "fill it on the device"
_MAKE = "make it on the device"
_STACK = "pick the rows one by one"
#: constructors from data that take their dtype from it
_CONSTRUCTORS = frozenset(("torch.tensor", "torch.as_tensor", "torch.asarray"))
#: factories whose elements are the same on every device
_FACTORIES = frozenset(("torch.zeros", "torch.ones", "torch.empty", "torch.full", "torch.arange", "torch.eye"))
#: dtypes that `arange` makes
_STEPPED = frozenset(
    (
        *("int8", "int16", "short", "int32", "int", "int64", "long", "uint8"),
        *("float16", "half", "bfloat16", "float32", "float", "float64", "double"),
    )
)
_PLAIN = frozenset(("device", "dtype", "requires_grad"))
#: a float32 holds it; what is larger is refused by some of these functions and made infinite by others
_LARGEST = 3e38
_LARGEST_STEP = 2**24
#: a float16 holds it; an assignment makes what is larger infinite, and `index_fill_` and `fill_` refuse it
_LARGEST_WRITTEN = 65504
_MOST_ROWS = 8


def fix(place: Place) -> Fix | None:
    node = place.node
    if isinstance(node, cst.Call):
        return _constructed(place, node) or _moved(place, node)
    if isinstance(node, cst.Subscript):
        return _written(place, node) if place.assigned() is not None else _picked(place, node)
    return None


# -- constructors ----------------------------------------------------------------------------------------------------


def _constructed(place: Place, node: cst.Call) -> Fix | None:
    """``torch.tensor(3.0, device="cuda")`` to ``torch.full((), 3.0, device="cuda")``, which has the same dtype."""
    callee = place.callee(node)
    if not node.args or not isinstance(node.func, cst.Attribute):
        return None
    data, *rest = node.args
    if data.keyword is not None or data.star:
        return None
    if any(each.keyword is None or each.keyword.value not in _PLAIN for each in rest):
        return None
    name = node.func.attr.value
    if callee in _CONSTRUCTORS:
        function, is_method = node.func.with_changes(attr=cst.Name("full")), False
    elif name == "new_tensor" and place.tensor(node.func.value) is not None:
        function, is_method = node.func.with_changes(attr=cst.Name("new_full")), True
    else:
        return None
    filled = uniform(data.value)
    if filled is not None:
        sizes, value = filled
        return place.fix(_FILL, node, _called(place.detached(node), function, _tuple(sizes), value), safe=True)
    steps = _steps(data.value)
    if steps is not None and not is_method and _takes_steps(rest):
        arange = function.with_changes(attr=cst.Name("arange"))
        return place.fix(_MAKE, node, _called(place.detached(node), arange, *map(str, steps)), safe=True)
    if place.is_host(data.value) and not isinstance(data.value, (cst.List, cst.Tuple)):
        text = _called(place.detached(node), function, "()", argument(data.value))
        return place.fix(_FILL, node, text, safe=place.is_python_number(data.value))
    return hoisted(place, node) if not is_method else None


def _takes_steps(rest: Sequence[cst.Arg]) -> bool:
    """Whether `arange` makes numbers of the dtype that is wanted: of bool, complex and some small ones it does not."""
    dtype = next((each.value for each in rest if each.keyword is not None and each.keyword.value == "dtype"), None)
    name = dtype.attr.value if isinstance(dtype, cst.Attribute) else ""
    return dtype is None or (isinstance(dtype, cst.Name) and dtype.value in ("int", "float")) or name in _STEPPED


def _called(node: cst.Call, function: cst.BaseExpression, *given: str) -> str:
    """The call of another function, with other arguments in place of the first one and the layout of the rest."""
    first, *rest = node.args
    between = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    values = [cst.Arg(cst.parse_expression(text), comma=between) for text in given[:-1]]
    last = first.with_changes(value=cst.parse_expression(given[-1]))
    return bare(node.with_changes(func=function, args=[*values, last, *rest]))


def uniform(node: cst.BaseExpression) -> tuple[tuple[int, ...], str] | None:
    """The sizes and the one number of ``3.0``, ``[0, 0]`` or ``[[1.0, 1.0], [1.0, 1.0]]``."""
    value = number(node)
    if value is not None:
        return ((), bare(node)) if abs(value) < _LARGEST else None
    if not isinstance(node, (cst.List, cst.Tuple)) or not node.elements:
        return None
    rows = [uniform(each.value) if isinstance(each, cst.Element) else None for each in node.elements]
    first = rows[0]
    if first is None or any(row != first for row in rows):
        return None
    return (len(rows), *first[0]), first[1]


def _tuple(sizes: Sequence[int]) -> str:
    return f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(map(str, sizes))})"


def _steps(node: cst.BaseExpression) -> tuple[int, ...] | None:
    """What ``arange`` takes for ``[0, 1, 2]`` or ``[2, 4, 6]``."""
    if not isinstance(node, (cst.List, cst.Tuple)) or len(node.elements) < 2:
        return None
    values = [number(each.value) if isinstance(each, cst.Element) else None for each in node.elements]
    whole = [value for value in values if type(value) is int]
    if len(whole) < len(values):
        return None
    if max(abs(whole[0]), abs(whole[-1])) > _LARGEST_STEP:
        return None  # rounded to a float32 before they are added up
    step = whole[1] - whole[0]
    if step == 0 or any(right - left != step for left, right in pairwise(whole)):
        return None
    end = whole[-1] + (1 if step > 0 else -1)
    if step != 1:
        return (whole[0], end, step)
    return (whole[0], end) if whole[0] else (end,)


def _moved(place: Place, node: cst.Call) -> Fix | None:
    """``torch.zeros(4).to("cuda")`` to ``torch.zeros(4, device="cuda")``."""
    if not isinstance(node.func, cst.Attribute) or not isinstance(node.func.value, cst.Call):
        return None
    made = node.func.value
    callee = place.callee(made)
    if callee == "torch.arange" and not all(
        place.is_whole_number(each.value) for each in made.args if not each.keyword
    ):
        return None  # steps in floating point are rounded in another way on another device
    if callee not in _FACTORIES or any(
        each.star or (each.keyword is not None and each.keyword.value != "dtype") for each in made.args
    ):
        return None
    device = _device(node)
    changed = keyword_set(place.detached(made), "device", device) if device is not None else None
    if changed is None:
        return None
    return place.fix(_MAKE, node, bare(changed), safe=True)


def _device(node: cst.Call) -> cst.BaseExpression | None:
    """Where ``to(device)`` and ``cuda()`` move a tensor; None where they do more than that."""
    assert isinstance(node.func, cst.Attribute)
    given = [each for each in node.args if each.keyword is None or each.keyword.value != "non_blocking"]
    if node.func.attr.value == "cuda" and not given:
        return cst.SimpleString('"cuda"')
    if len(given) != 1 or given[0].star or (given[0].keyword is not None and given[0].keyword.value != "device"):
        return None
    names_device = isinstance(given[0].value, cst.SimpleString) or (
        isinstance(given[0].value, cst.Attribute) and given[0].value.attr.value == "device"
    )
    return given[0].value if node.func.attr.value in ("to", "cuda") and names_device else None


# -- indexes ---------------------------------------------------------------------------------------------------------


def _written(place: Place, node: cst.Subscript) -> Fix | None:
    """``x[idx] = 3.0`` to ``x.index_fill_(0, idx, 3.0)``, and ``x[0] = 3.0`` to ``x[0].fill_(3.0)``."""
    assignment = place.assigned()
    if assignment is None:
        return None
    value = number(assignment.value)
    if value is None and not place.is_host(assignment.value):
        return None
    target = place.tensor(node.value)
    # what a number becomes in a tensor of integers is not the same in both
    fits = value is not None and abs(value) <= _LARGEST_WRITTEN
    keeps = fits and (type(value) is int or (target is not None and target.dtype == "float"))
    text = argument(assignment.value)
    index = sole_index(node)
    tensor = place.tensor(index) if index is not None else None
    if index is not None and tensor is not None:
        if tensor.dtype not in ("int", None):
            return None
        rows = argument(index) if tensor.rank == 1 else f"{receiver(index)}.reshape(-1)"
        dtype = index_dtype(place, index)
        if dtype != "int64":
            rows = f"{receiver(index) if tensor.rank == 1 else rows}.long()"
        new = f"{receiver(node.value)}.index_fill_(0, {rows}, {text})"
        return place.fix(_FILL, assignment, new, safe=keeps and tensor.dtype is not None and dtype is not None)
    if all(_is_fixed(each) for each in node.slice):
        return place.fix(_FILL, assignment, f"{bare(node)}.fill_({text})", safe=keeps)
    return None


def _is_fixed(element: cst.SubscriptElement) -> bool:
    """An index that gives a view: a number, or a slice between numbers."""
    if isinstance(element.slice, cst.Slice):
        bounds = (element.slice.lower, element.slice.upper, element.slice.step)
        return all(bound is None or type(number(bound)) is int for bound in bounds)
    index = element.slice.value if isinstance(element.slice, cst.Index) else None
    return isinstance(index, cst.Ellipsis) or (index is not None and type(number(index)) is int)


def _picked(place: Place, node: cst.Subscript) -> Fix | None:
    """``x[[0, 2]]`` to ``torch.stack((x[0], x[2]))``."""
    index, torch = sole_index(node), place.torch
    if not isinstance(index, cst.List) or torch is None or not 0 < len(index.elements) <= _MOST_ROWS:
        return None
    if place.tensor(node.value) is None or not isinstance(node.value, (cst.Name, cst.Attribute)):
        return None
    if not place.is_read(node):
        return None
    rows = [number(each.value) if isinstance(each, cst.Element) else None for each in index.elements]
    if not all(type(row) is int for row in rows):
        return None
    base = code(node.value)
    picked = ", ".join(f"{base}[{row}]" for row in rows)
    text = f"{torch}.stack(({picked},))" if len(rows) == 1 else f"{torch}.stack(({picked}))"
    return place.fix(_STACK, node, text, safe=True)
