"""One source line with part of it underlined, as wide as a terminal shows it."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from capturelint.model import Span

TAB = "    "
ELLIPSIS = "..."
#: the widest source line that is shown whole where the terminal's width isn't known
DEFAULT_WIDTH = 160
#: however narrow the terminal, this much of the source is shown
_LEAST_WIDTH = 24
#: how much of a cut line stands before the underline
_LEAD = 12


@dataclass(frozen=True, slots=True)
class Underlined:
    """``text`` as shown, and how many columns of it lie before and under the underline."""

    text: str
    before: int
    under: int


def show_character(character: str) -> tuple[str, int]:
    """What stands for ``character`` on a terminal, and how many columns that takes.

    Control and format characters would move the cursor or turn the text around; ``?`` stands for them.
    """
    if character == "\t":
        return TAB, len(TAB)
    if character == "\f":
        return "", 0
    category = unicodedata.category(character)
    if category in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return "?", 1
    if category in ("Mn", "Me"):
        return character, 0
    return character, 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def display_width(text: str) -> int:
    return sum(show_character(character)[1] for character in text)


def printable(text: str) -> str:
    """``text`` made safe for a terminal: file names and messages can hold anything."""
    return "".join(show_character(character)[0] for character in text)


def shorten(text: str, width: int) -> str:
    """``text`` made safe for a terminal, and cut at its end to ``width`` columns."""
    return _cut([show_character(character) for character in text], 0, width)[0]


def underline(line: str, span: Span, width: int) -> Underlined:
    """Shows ``line``, the span's first, in ``width`` columns; the underline of a longer span ends with the line."""
    line = line.rstrip()
    first = min(max(span.column - 1, 0), len(line))
    last = min(span.end_column - 1, len(line)) if span.end_line == span.line else len(line)
    cells = [show_character(character) for character in line]
    limit = max(width, _LEAST_WIDTH)
    start = _window_start(cells, first, last, limit)
    text, shown = _cut(cells, start, limit)
    lead = len(ELLIPSIS) if start else 0
    before = lead + _columns(cells[start:first])
    under = _columns(cells[first : max(min(last, shown), first)])
    return Underlined(text, before, max(under, 1))


def _columns(cells: list[tuple[str, int]]) -> int:
    return sum(width for _, width in cells)


def _window_start(cells: list[tuple[str, int]], first: int, last: int, limit: int) -> int:
    """The first character to show: 0 when the underlined part fits into a line that starts there."""
    if _columns(cells) <= limit or _columns(cells[:last]) <= limit - len(ELLIPSIS):
        return 0
    start, lead = first, 0
    while start > 0 and lead + cells[start - 1][1] <= _LEAD:
        start -= 1
        lead += cells[start][1]
    return start if start > len(ELLIPSIS) else 0


def _cut(cells: list[tuple[str, int]], start: int, limit: int) -> tuple[str, int]:
    """The text from ``start`` in ``limit`` columns, and the index after the last character in it."""
    head = ELLIPSIS if start else ""
    room = limit - len(head)
    if _columns(cells[start:]) <= room:
        return head + "".join(text for text, _ in cells[start:]), len(cells)
    room -= len(ELLIPSIS)
    end = start
    while end < len(cells) and cells[end][1] <= room:
        room -= cells[end][1]
        end += 1
    return head + "".join(text for text, _ in cells[start:end]) + ELLIPSIS, end
