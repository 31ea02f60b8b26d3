"""Whether what a text writes there may be bound: the target of an assignment, a loop or ``with``, before it is parsed.

What can't be told counts as a target: whoever asks looks at the syntax then.
"""

from __future__ import annotations

import re

#: behind a name: spaces, and a line that goes on
_BESIDE = re.compile(r"(?:[ \t]|\\\n)*")
#: how an assignment may begin, and what else may stand behind a target (``in`` behind that of a loop)
_MAY_ASSIGN = "=+-*/@|&^%<>"
_MAY_FOLLOW = ",)]:#\ni"
_ASSIGNS = re.compile(r"=(?!=)|(?:[-+*/@|&^%]|//|\*\*|<<|>>)=")
#: brackets closed behind a name, or a line that goes on, and then a key
_KEY_LATER = re.compile(r"(?:[ \t\n\\)]|#[^\n]*\n)*\[")
_NAMED_AS = re.compile(r"\bas(?:[ \t]|\s*[(\[])")
_LOOPS = re.compile(r"\bfor\b(?:(?!\bin\b)[^:])*\Z")
_LOOPS_OVER_KEYS = re.compile(r"[ ]*(?:async +)?for\b[^\n]*[\[{]")
#: statements that begin so bind nothing
_BINDS_NOTHING = re.compile(r"\s*(?:return|if|elif|while|assert|raise|yield|await|not|del|lambda)\b")
_SPACED = re.compile(r"[ \t,]")
#: how far back and ahead is looked
_REACH = 200
_LONG = 400
_OPENING, _CLOSING = "([{", ")]}"
_OPERATORS = "+-/%@&|^~<>!;"


def may_be_bound(source: str, start: int, end: int) -> bool:
    """Whether ``x.name``, of which ``name`` stands between two places, may get another value there."""
    at = _behind_spaces(source, end)
    char = source[at : at + 1]
    if char in _MAY_ASSIGN:  # the end of the text is in each, and in none of the targets
        return _ASSIGNS.match(source, at) is not None
    if char not in _MAY_FOLLOW:
        return False
    first = source.rfind("\n", 0, start) + 1
    if start - first > _LONG:
        return True
    before = source[max(0, first - _REACH) : start]
    if _NAMED_AS.search(before) or _LOOPS.search(before) or _LOOPS_OVER_KEYS.match(source, first, start):
        return True
    if char == "i":
        return False
    told = _opened(source[first:start])
    if told is None:
        return True
    opened, closed, of_call, statement = told
    if of_call or _BINDS_NOTHING.match(statement):
        return False
    if statement.lstrip()[:1] in (",", ")", "]"):
        return True
    plain = _SPACED.search(statement.lstrip(" \t(")) is None
    goes_on = _goes_on(source, first)
    within = opened + max(0, 1 - closed)
    return (goes_on is not False and _is_reached(source, at, within, plain=plain)) or (
        goes_on is not True and _is_reached(source, at, opened, plain=plain)
    )


def may_set_item(source: str, start: int, end: int) -> bool:
    """The same for an entry of what the name stands for: ``x.name[key] = ...``."""
    at = _behind_spaces(source, end)
    if source[at : at + 1] != "[":
        return _KEY_LATER.match(source, at) is not None
    closed = _behind_brackets(source, at)
    return closed is None or may_be_bound(source, start, closed)


def _behind_spaces(source: str, at: int) -> int:
    if source[at : at + 1] not in (" ", "\t", "\\"):
        return at
    behind = _BESIDE.match(source, at)
    return behind.end() if behind is not None else at


def _is_reached(source: str, at: int, opened: int, *, plain: bool) -> bool:
    """Whether an assignment follows the other targets, outside of all brackets; ``plain``: no other stands before."""
    depth = -opened  # of brackets around the name: it takes part in an assignment behind the last of them
    inside = 0
    stop = min(len(source), at + _LONG)
    while at < stop:
        char = source[at]
        if char in _OPENING:
            inside += 1
        elif char in _CLOSING:
            if inside:
                inside -= 1
            else:
                depth += 1
        elif char == "#":
            at = source.find("\n", at)
            if at < 0:
                return False
            continue
        elif char in "\"'":
            return True
        elif not inside:
            if char == "=":
                return depth >= 0 and source[at + 1 : at + 2] != "="
            if char == ":":
                return depth >= 0 and plain
            if char in _OPERATORS or (char == "\n" and depth >= 0 and source[at - 1] != "\\"):
                return False
            if char == ",":
                plain = False
        at += 1
    return stop < len(source)


def _opened(line: str) -> tuple[int, int, bool, str] | None:
    """What stands before a name on its line; None where that can't be told.

    How many brackets are open at the end, how many it closes that it does not open, whether one that is open is a
    call's or a key's, and its last statement.
    """
    opened: list[bool] = []
    closed = begins = at = 0
    while at < len(line):
        char = line[at]
        if char in _OPENING:
            opened.append(char == "{" or (at > 0 and (line[at - 1].isalnum() or line[at - 1] in "_)]")))
        elif char in _CLOSING:
            if opened:
                opened.pop()
            else:
                closed += 1
        elif char in "\"'":
            at = line.find(char, at + 1)
            if at < 0:
                return None
        elif char in ";:" and not opened:
            begins = at + 1
        at += 1
    return len(opened), closed, any(opened), line[begins:]


def _goes_on(source: str, first: int) -> bool | None:
    """Whether the line above ends inside brackets; None for one with a comment, which does not tell."""
    end = first
    while end and source[end - 1] in " \t\n":
        end -= 1
    if "#" in source[source.rfind("\n", 0, end) + 1 : end]:
        return None
    return source[end - 1 : end] in (",", "(", "[", "{")


def _behind_brackets(source: str, at: int) -> int | None:
    """Where what a bracket opens has ended; None where that is not told from the line alone."""
    depth = 0
    stop = min(len(source), at + _LONG)
    while at < stop:
        char = source[at]
        if char in "\n#\\":
            return None
        if char in "\"'":
            at = source.find(char, at + 1, stop)
            if at < 0:
                return None
        elif char in _OPENING:
            depth += 1
        elif char in _CLOSING:
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return None
