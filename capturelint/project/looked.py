"""What was looked at within one module: an edit of the rest of it leaves what was found as it is."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(eq=False, repr=False, slots=True)
class Looked:
    """What stands outside of functions always counts, and so do their headers.

    ``bodies``: those, by their order, that were parsed or found to hold what was asked for. ``words``: what the texts
    of bodies were asked for, each with the name of its form. ``texts``: what the whole text was asked, and its reply.
    ``wholly``: all of the module counts. ``listed``: all functions were gone through, whatever they hold.
    """

    wholly: bool = False
    bodies: set[int] = field(default_factory=set)
    words: set[tuple[str, str]] = field(default_factory=set)
    texts: dict[tuple[str, str], bool] = field(default_factory=dict)
    listed: bool = False

    def add(self, other: Looked) -> None:
        """Counts what another process looked at as well."""
        self.wholly = self.wholly or other.wholly
        self.bodies |= other.bodies
        self.words |= other.words
        self.texts |= other.texts
        self.listed = self.listed or other.listed


HOLDS, REPEATS = "holds", "repeats"


def text_reply(kind: str, source: str, text: str) -> bool:
    """What a module's text replies: whether it holds another, or an identifier more than once."""
    return _REPLIES[kind](source, text)


def _repeats(source: str, name: str) -> bool:
    """Counting text is far faster than matching words, and once is once either way."""
    return source.count(name) > 1 and len(re.findall(rf"\b{re.escape(name)}\b", source)) > 1


_REPLIES: dict[str, Callable[[str, str], bool]] = {
    HOLDS: lambda source, text: text in source,
    REPEATS: _repeats,
}
