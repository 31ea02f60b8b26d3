"""Functions that were added to a file, and that nothing can speak of: their names stand nowhere else."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from capturelint.reuse.cut import Cut

_FUNCTION = re.compile(r"(?:async +)?def +([A-Za-z]\w*) *\(")


@dataclass(frozen=True, slots=True)
class Added:
    """``rest``: the file without them. ``places``: where each begins and ends in its text."""

    names: list[str]
    places: list[tuple[int, int]]
    rest: Cut

    def is_spoken_of(self, elsewhere: Callable[[str], bool]) -> bool:
        """Whether one's name stands outside of them, in the file or ``elsewhere``."""
        done, around = 0, []
        for begin, end in self.places:
            around.append(self.rest.source[done:begin])
            done = end
        around.append(self.rest.source[done:])
        text = "\n".join(around)
        return any(re.search(rf"\b{name}\b", text) is not None or elsewhere(name) for name in self.names)


def functions_at_top(whole: Cut) -> list[str]:
    """The names of a module's functions, whether decorated or not."""
    return [match[1] for text in whole.lines.texts if (match := _FUNCTION.match(text))]


def added(whole: Cut, known: Collection[str]) -> Added | None:
    """The functions at the top of a module that are not known, undecorated ones; None where there are none."""
    found = [(name, lines) for name, lines in _functions(whole) if name not in known]
    if not found:
        return None
    rest = whole
    for _, lines in reversed(found):
        rest = rest.without(lines)
    places = [(_begin_of(whole, lines.start), _begin_of(whole, lines.stop)) for _, lines in found]
    return Added([name for name, _ in found], places, rest)


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
