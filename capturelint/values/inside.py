"""How much is in a value: what is too much is not looked into.

Values are compared, hashed and searched as trees, and a few lines make a tree that nothing gets through to its end:
``x = (x, x)``, forty times, is 2**40 values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capturelint.values.domain import Value

#: how many values there are, those within each other counted each time, and how deep they are within each other
Extent = tuple[int, int]
ONE: Extent = (1, 1)
_MAX_VALUES = 2000
_MAX_DEPTH = 50


def around(inside: Iterable[Value | None]) -> Extent:
    """The extent of a value that holds others."""
    size, depth = 1, 0
    for value in inside:
        if value is not None:
            values, levels = value.extent
            size += values
            depth = max(depth, levels)
    return size, depth + 1


def too_much(extent: Extent) -> bool:
    return extent[0] > _MAX_VALUES or extent[1] > _MAX_DEPTH
