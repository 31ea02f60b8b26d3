"""A function that was added to a file, and that nothing can speak of: its name stands nowhere else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from capturelint.reuse.cut import Cut

_FUNCTION = re.compile(r"(?:async +)?def +([A-Za-z]\w*) *\(")


@dataclass(frozen=True, slots=True)
class Added:
    """``rest``: the file without it, which stands from ``begin`` to ``end``."""

    name: str
    begin: int
    end: int
    rest: Cut


def added_functions(whole: Cut, bodies: int, is_same: Callable[[Cut], bool]) -> Added | None:
    """The function with ``bodies`` bodies in it without which a file is the same, if there is one.

    It stands at the top of the module, undecorated, and its name occurs in it alone.
    """
    if bodies not in (0, 1):  # the body of a function, or one on the line of its header
        return None
    for name, lines in _functions(whole):
        rest = whole.without(lines)
        if len(whole.bodies) - len(rest.bodies) != bodies or not is_same(rest):
            continue
        begin, end = _begin_of(whole, lines.start), _begin_of(whole, lines.stop)
        named = re.compile(rf"\b{name}\b")
        if named.search(whole.source, 0, begin) or named.search(whole.source, end):
            return None
        return Added(name, begin, end, rest)
    return None


def _functions(whole: Cut) -> Iterator[tuple[str, range]]:
    """The functions at the top of a module without decorators, by the ordinals of their lines."""
    texts = whole.lines.texts
    for start, text in enumerate(texts):
        match = _FUNCTION.match(text)
        if match is None or _is_decorated(texts, start):
            continue
        stop = start + 1
        while stop < len(texts) and _goes_on(texts[stop]):
            stop += 1
        yield match[1], range(start, stop)


def _is_decorated(texts: Sequence[str], start: int) -> bool:
    above = start - 1
    while above > 0 and _goes_on(texts[above]):
        above -= 1
    return above >= 0 and texts[above].startswith("@")


def _goes_on(text: str) -> bool:
    """Whether a line belongs to what begins above it: it is indented, closes a bracket, or is documentation."""
    return not text or text[0] in " )]}\"'"


def _begin_of(whole: Cut, ordinal: int) -> int:
    """Where a line of code begins in the text, its end for one behind the last."""
    numbers = whole.lines.numbers
    if ordinal >= len(numbers):
        return len(whole.source)
    at = 0
    for _ in range(numbers[ordinal] - 1):
        at = whole.source.index("\n", at) + 1
    return at
