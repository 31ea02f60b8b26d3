"""Functions that were added to a file, and that nothing can speak of: their names stand nowhere else."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from capturelint.project.text import Text
from capturelint.reuse.cut import Cut

_FUNCTION = re.compile(r"[ ]*(?:async +)?def +([A-Za-z]\w*) *\(")
#: the whole of a function on one line
_WHOLE = re.compile(r"[ ]*(?:async +)?def [^#]*\)[^()#]*: *[^ #].*")
#: methods that libraries call, whoever else does
CALLED_BY_LIBRARIES = frozenset(("backward", "forward", "run", "setup_context"))


@dataclass(frozen=True, slots=True)
class Added:
    """``rest``: the file without them. ``places``: where each begins and ends in its text."""

    names: list[str]
    places: list[tuple[int, int]]
    rest: Cut

    def is_spoken_of(self, looked: Collection[int], elsewhere: Callable[[str], bool]) -> bool:
        """Whether one's name stands in code of the file that was looked at, or ``elsewhere``."""
        code = self.rest.counted(looked)
        return any(re.search(rf"\b{name}\b", code) is not None or elsewhere(name) for name in self.names)


def functions_of(whole: Cut) -> list[str]:
    """The names of functions and methods that stand in no other function, each once."""
    texts = whole.lines.texts
    found = (_FUNCTION.match(texts[at]) for lines in whole.pieces[::2] for at in lines)
    return list(dict.fromkeys(match[1] for match in found if match is not None))


def added(whole: Cut, known: Collection[str]) -> Added | None:
    """The functions and methods that are not known, undecorated ones; None where there are none."""
    found = [(name, lines) for name, lines in _functions(whole) if name not in known]
    if not found or not CALLED_BY_LIBRARIES.isdisjoint(name for name, _ in found):
        return None
    rest = whole
    for _, lines in reversed(found):
        rest = rest.without(lines)
    text, numbers = Text(whole.source), [*whole.lines.numbers, sys.maxsize]  # behind the last line the text ends
    places = [(text.start_of(numbers[lines.start]), text.start_of(numbers[lines.stop])) for _, lines in found]
    return Added([name for name, _ in found], places, rest)


def _functions(whole: Cut) -> Iterator[tuple[str, range]]:
    """The functions that have no decorators and stand in no other one, by the ordinals of their lines."""
    texts = whole.lines.texts
    for outside, body in zip(whole.pieces[::2], [*whole.pieces[1::2], None], strict=True):
        for start in outside:
            match = _FUNCTION.match(texts[start])
            if match is None or _is_decorated(texts, start):
                continue
            if _WHOLE.fullmatch(texts[start]):
                yield match[1], range(start, start + 1)
            elif body is not None and not any(_FUNCTION.match(texts[at]) for at in range(start + 1, outside.stop)):
                yield match[1], range(start, body.stop)


def _is_decorated(texts: Sequence[str], start: int) -> bool:
    indent = _indent_of(texts[start])
    above = start - 1
    while above >= 0 and (_indent_of(texts[above]) > indent or texts[above].lstrip(" ")[:1] in _CLOSING):
        above -= 1
    return above >= 0 and texts[above].lstrip(" ").startswith("@")


#: how lines begin that belong to what begins above them; documentation has no indent here
_CLOSING = (")", "]", "}", '"', "'", "")


def _indent_of(text: str) -> int:
    return len(text) - len(text.lstrip(" "))
