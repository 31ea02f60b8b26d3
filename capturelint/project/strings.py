"""Where strings and comments are in a text, told from code without parsing it."""

from __future__ import annotations

import re

STRING = r"""
    \"{3}(?:[^"\\]|\\.|"(?!""))*\"{3} | '{3}(?:[^'\\]|\\.|'(?!''))*'{3}
    | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*'
"""
LEXED = re.compile(rf"{STRING} | \#[^\n]*", re.VERBOSE | re.DOTALL)
GOES_ON = "\\\n"
_SINGLE, _DOUBLE = "'" * 3, '"' * 3


def comment_in(text: str, start: int, end: int) -> int | None:
    """Where the comment begins that a stretch of text ends with, which begins in no string."""
    return next((each.start() for each in LEXED.finditer(text, start, end) if each[0][0] == "#"), None)


def long_strings(text: str) -> tuple[list[int], list[int]]:
    """Where the strings in triple quotes begin and end."""
    found = _plain_long_strings(text)
    if found is not None:
        return found
    begins, ends = [], []
    for match in LEXED.finditer(text):
        start = match.start()
        if text[start] != "#" and text.startswith(text[start] * 3, start):
            begins.append(start)
            ends.append(match.end())
    return begins, ends


def _plain_long_strings(text: str) -> tuple[list[int], list[int]] | None:
    """The same in a fraction of the time where nothing around them can be mistaken for a quote, otherwise None."""
    begins: list[int] = []
    ends: list[int] = []
    if _SINGLE in text:
        return None
    at = text.find(_DOUBLE)
    while at >= 0:
        line = text.rfind("\n", 0, at) + 1
        before = text[line:at]
        end = text.find(_DOUBLE, at + 3)
        if end < 0 or text[end - 1] == "\\" or "#" in before or "'" in before or '"' in before:
            return None
        if text[line - 2 : line] == GOES_ON:
            return None  # a string of the line before may go on here
        begins.append(at)
        ends.append(end + 3)
        at = text.find(_DOUBLE, end + 3)
    return begins, ends
