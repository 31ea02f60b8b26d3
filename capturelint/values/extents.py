"""How many elements a tensor has, as far as sizes are written out: some operators choose their way by that."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, prod
from typing import TYPE_CHECKING

from capturelint.values.domain import Host, Sequence, Value, options, tensors

if TYPE_CHECKING:
    from capturelint.values.effects import Bound

#: operators whose result has as many elements as their first tensor
_KEEP = frozenset(
    (
        *("abs", "clone", "contiguous", "detach", "neg", "sort", "flip", "roll", "to", "type_as"),
        *("long", "int", "float", "half", "double", "bool"),
        *("flatten", "ravel", "reshape", "view", "unsqueeze", "squeeze", "transpose", "permute", "t"),
        *("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like"),
    )
)


def count_of(name: str, bound: Bound, made: bool) -> int | None:
    """The number of elements of an operator's result; ``made``: it makes a tensor from sizes."""
    last = name.rpartition(".")[2]
    if last in ("arange", "range"):
        return _range(bound)
    if last in ("linspace", "logspace", "randperm"):
        return _number(bound.get("steps") or bound.get("n"))
    if last in ("repeat", "tile"):
        times = _numbers(bound.get("repeats") or bound.get("dims"))
        known = _first(bound)
        return known * prod(times) if known is not None and times is not None else None
    if last in _KEEP:
        return _first(bound)
    if made:
        sizes = _numbers(bound.get("size"))
        return prod(sizes) if sizes is not None else None
    return None


def _first(bound: Bound) -> int | None:
    counts = {tensor.count for tensor in tensors(bound.first)}
    return counts.pop() if len(counts) == 1 else None


def _range(bound: Bound) -> int | None:
    given = [_number(bound.get(name)) for name in ("start", "end", "step") if bound.get(name) is not None]
    if not given or None in given:
        return None
    numbers = [each for each in given if each is not None]
    start, end = (0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
    step = numbers[2] if len(numbers) > 2 else 1
    return max(0, ceil((end - start) / step)) if step else None


def _numbers(value: Value | None) -> list[int] | None:
    """Sizes given one by one or as one sequence, where all are known."""
    found = list(_flat(value))
    numbers = [number for each in found if (number := _number(each)) is not None]
    return numbers if found and len(numbers) == len(found) else None


def _flat(value: Value | None) -> Iterator[Value | None]:
    for option in options(value):
        if isinstance(option, Sequence):
            for item in option.items or (None,):
                yield from _flat(item) if item is not None else (None,)
        else:
            yield option


def _number(value: Value | None) -> int | None:
    if isinstance(value, Host) and isinstance(value.const, int) and not isinstance(value.const, bool):
        return value.const
    return None
