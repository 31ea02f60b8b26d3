"""A module's text without the bodies of its functions, found before anything is parsed.

Most functions of a large project are never looked at, and parsing is a large part of a run: what is left of a module
takes a quarter of its time. Strings and comments are told from code; a text that this can't be said of for sure (one
with tabs, say) has no outline and is parsed as a whole.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from capturelint.project.strings import GOES_ON, STRING, comment_in, long_strings

#: a whole header with nothing in it that needs a closer look, which most are
_PLAIN_HEADER = re.compile(r"""[ ]*\w+[ ]*\((?:[^()"'#\\]|\([^()"'#\\]*\))*\)[ ]*(?:->[^()"'#:\n\\]*)?:\n""")
_IN_HEADER = re.compile(rf"{STRING} | \#[^\n]* | [\[\](){{}}:]", re.VERBOSE | re.DOTALL)
#: how far a line is indented is counted in spaces, and one follows each ``def``
_ODD = ("\n\t", "\f", "def\t", "def\\")
#: what may stand behind the colon where the body begins on the next line
_NOTHING = re.compile(r"[ ]*(?:#[^\n]*)?\n")
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


@dataclass(frozen=True, slots=True)
class Stretch:
    """The lines of a body, from the one behind its function's header to its last with code.

    The places in the text where its function's ``def`` line and the first of these begin, and where the last one ends.
    """

    first: int
    last: int
    head: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Outline:
    """``source`` parses to the module's tree, but that each body in ``bodies`` is one expression on its last line.

    ``bodies``: by the line of their function's ``def``.
    """

    source: str
    bodies: dict[int, Stretch]


def outline(source: str) -> Outline | None:
    """What is left of a text whose functions' bodies are taken out; None where these can't be told from the text."""
    if any(odd in source for odd in _ODD):
        return None
    scan = _Scan(f"\n{source}\n")
    text = scan.text
    bodies: dict[int, Stretch] = {}
    parts: list[str] = []
    done, line = 1, 1
    for start, indent, after in scan.definitions():
        if start < done:
            continue  # within a body that is taken out
        begin = scan.body_of(after)
        if begin is None:
            return None
        if not begin:
            continue  # a body on the line of its header
        last, end = scan.end_of(begin, indent)
        if last < begin:
            return None
        at = line + text.count("\n", done, start)
        first = at + text.count("\n", start, begin)
        line = first + text.count("\n", begin, last)
        bodies[at] = Stretch(first, line, start - 1, begin - 1, end - 1)
        parts += (text[done:begin], "\n" * (line - first), scan.placeholder(last, end, indent))
        done = end
    parts.append(text[done:-1])
    return Outline("".join(parts), bodies)


class _Scan:
    """A text that begins and ends with the end of a line; where its long strings and comments are."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._begins, self._ends = long_strings(text)

    def definitions(self) -> Iterator[tuple[int, int, int]]:
        """Each ``def``: where its line begins, how far this is indented, and where the word ends."""
        text = self.text
        at = text.find("def ")
        while at >= 0:
            start = text.rfind("\n", 0, at) + 1
            before = text[start:at]
            bare = before.strip(" ")
            if (not bare or (bare == "async" and before[-1] == " ")) and self._in_string(start) is None:
                yield start, len(before) - len(before.lstrip(" ")), at + 3
            at = text.find("def ", at + 3)

    def body_of(self, after: int) -> int | None:
        """Where the line behind a header begins, 0 where the body is on the header's own, None if it has no end."""
        plain = _PLAIN_HEADER.match(self.text, after)
        if plain is not None:
            return plain.end()
        depth = 0
        for match in _IN_HEADER.finditer(self.text, after):
            part = match[0]
            if part in _OPENING:
                depth += 1
            elif part in _CLOSING:
                depth -= 1
            elif part == ":" and not depth:
                rest = _NOTHING.match(self.text, match.end())
                return rest.end() if rest is not None else 0
        return None

    def end_of(self, begin: int, indent: int) -> tuple[int, int]:
        """Where the last line of a body with code begins, before ``begin`` if there is none; and where it ends."""
        end = self._first_outside(begin, indent)
        while end > begin:
            line = self.text.rfind("\n", 0, end) + 1
            code = self.text[line:end].lstrip(" ")
            if code and (not code.startswith("#") or self._in_string(line) or self.text[line - 2 : line] == GOES_ON):
                return line, end
            end = line - 1
        return -1, end

    def _first_outside(self, begin: int, indent: int) -> int:
        """The end of the last line before one that is indented no further than the header."""
        ends, at = _outdented(indent), begin - 1
        while True:
            match = ends.search(self.text, at)
            if match is None:
                return len(self.text) - 1
            place = match.start()
            string = self._in_string(place)
            if string is None and not self._goes_on(place):
                return place
            at = string or place + 1

    def _in_string(self, at: int) -> int | None:
        """Where the long string ends that holds a place, if one does."""
        place = bisect_left(self._begins, at) - 1
        return self._ends[place] if place >= 0 and at < self._ends[place] else None

    def _goes_on(self, end: int) -> bool:
        """Whether the line that ends at a place goes on with the next one."""
        return self.text[end - 1] == "\\" and self._comment(self.text.rfind("\n", 0, end) + 1, end) is None

    def _comment(self, start: int, end: int) -> int | None:
        """Where a comment begins in a line with the end of a statement, which no long string goes on behind."""
        if self.text.find("#", start, end) < 0:
            return None
        return comment_in(self.text, self._in_string(start) or start, end)

    def placeholder(self, line: int, end: int, indent: int) -> str:
        """Stands for a body, and ends where its code does: spans of what is around it are as they were."""
        code = self.text[line : self._comment(line, end) or end].rstrip(" ")
        return " " * (indent + 1) + "_" * max(len(code.encode()) - indent - 1, 1)


@cache
def _outdented(indent: int) -> re.Pattern[str]:
    """The end of a line before one with code that is indented by ``indent`` spaces at most."""
    return re.compile(rf"\n(?=[ ]{{0,{indent}}}[^ \n#])")
