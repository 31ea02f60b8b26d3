"""The lines of a text that hold code, without comments and documentation: what else stands there changes no result."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from capturelint.project.strings import comment_in, long_strings

#: what may stand on the lines of documentation before and behind it
_BEFORE = re.compile(r"[ ]*[rRuU]?")
_BEHIND = re.compile(r"[ ]*(?:#.*)?")
#: the line above documentation, where that says so: the header of a function or class, or its end
_HEADER = re.compile(r"[ ]*(?:(?:async +)?def|class) .*:|[ ]*\)[ ]*->.*:")
_NOTHING = '""'
_NO_LINES: Mapping[int, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class CodeLines:
    """``numbers`` of the lines, ascending, and their ``texts``."""

    numbers: list[int]
    texts: list[str]

    def ordinal(self, line: int) -> int | None:
        """Which one of them a line is."""
        place = bisect_right(self.numbers, line) - 1
        return place if place >= 0 and self.numbers[place] == line else None


def code_lines(source: str, begins: Sequence[int] = (), but: Mapping[int, int] = _NO_LINES) -> CodeLines:
    """The lines of a text without tabs that hold code. ``begins``: those that bodies of functions begin at, ascending.

    Trailing comments are cut off, and of documentation there is one empty string on the line where it begins. ``but``:
    lines that are left out, whole statements, each first one with the last that follows it.
    """
    lines = source.split("\n")
    within = _strings_by_line(source, lines)
    found = CodeLines([], [])
    numbers, texts = found.numbers, found.texts
    last, goes_on, at = 0, False, 0
    while at < len(lines):
        if at + 1 in but:
            at, goes_on = but[at + 1], False
            continue
        line, string = lines[at], within.get(at)
        if string is None:
            at += 1
            text = line if goes_on else _without_comment(line) if "#" in line else line.rstrip(" ")
            if text or goes_on:
                numbers.append(at)
                texts.append(text)
                last = at
            goes_on = text[-1:] == "\\"
            continue
        end = string.last
        documents = not goes_on and string.alone and _is_documented(found, at + 1, last, begins)
        for each in range(at, at + 1 if documents else end + 1):
            numbers.append(each + 1)
            texts.append(_NOTHING if documents else lines[each])
        last = end + 1
        goes_on = not documents and lines[end].endswith("\\")
        at = end + 1
    return found


@dataclass(frozen=True, slots=True)
class _OnLines:
    """The long strings that begin on a line, or on one on which such a one ends; ``alone``: just one."""

    last: int
    alone: bool


def _strings_by_line(source: str, lines: Sequence[str]) -> dict[int, _OnLines]:
    begins, ends = long_strings(f"\n{source}\n")
    found: dict[int, _OnLines] = {}
    line, done, first = 0, 0, -1
    for begin, end in zip(begins, ends, strict=True):
        begin, end = begin - 1, end - 1
        line += source.count("\n", done, begin)
        last = line + source.count("\n", begin, end)
        start = source.rfind("\n", 0, begin) + 1
        stop = source.find("\n", end)
        alone = (
            _BEFORE.fullmatch(source, start, begin) is not None
            and _BEHIND.fullmatch(source, end, stop if stop >= 0 else len(source)) is not None
        )
        if first >= 0 and line <= found[first].last:
            found[first] = _OnLines(last, alone=False)
        else:
            first = line
            found[first] = _OnLines(last, alone)
        line, done = last, end
    return found


def _without_comment(line: str) -> str:
    return line[: comment_in(line, 0, len(line))].rstrip(" ")


def _is_documented(found: CodeLines, line: int, last: int, begins: Sequence[int]) -> bool:
    """Whether what begins at ``line``, with code last on ``last``, is the first statement of a module or definition."""
    if not found.numbers:
        return True
    place = bisect_right(begins, line) - 1
    if place >= 0 and last < begins[place]:
        return True
    return _HEADER.fullmatch(found.texts[-1]) is not None
