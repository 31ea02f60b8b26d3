"""What a mistyped name was meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest(word: str, known: Iterable[str]) -> str | None:
    """The one of ``known`` that ``word`` looks most like, letter case and ``_`` for ``-`` aside; None without one."""
    by_plain = {_plain(name): name for name in known}
    close = difflib.get_close_matches(_plain(word), list(by_plain), n=1)
    return by_plain[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of an error message, ``; did you mean 'select'?``, or nothing."""
    found = closest(word, known)
    return f"; did you mean {found!r}?" if found is not None else ""


def _plain(name: str) -> str:
    return name.casefold().replace("_", "-")
