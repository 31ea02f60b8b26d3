"""What a result rests on within a file of which not all was looked at, and whether an edited file still has it.

A file's pieces are the bodies of its functions and what stands outside of them. An edit leaves a result as it was when
the pieces that were looked at are the same, and the edited ones still hold nothing of what all of them were asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from capturelint.project.forms import FORMS
from capturelint.project.looked import Looked, text_reply
from capturelint.project.outline import Stretch, outline, without_comments
from capturelint.project.text import Text

#: the lines of a body: its function's header, its first and its last one
Layout = list[tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class Pieces:
    """``counts``: the digest of all that was looked at. ``others``: those of the other bodies, empty for the rest.

    Comments and empty lines count where the result names lines: outside of functions (``exactly``), and within some, of
    which ``layout`` says where they were.
    """

    counts: str
    others: list[str]
    words: dict[str, list[str]]
    texts: list[tuple[str, str, bool]]
    exactly: bool
    layout: Layout

    def as_plain(self) -> list[Any]:
        return [self.counts, self.others, self.words, self.texts, self.exactly, self.layout]


def pieces_of(source: str, looked: Looked, lines: Collection[int]) -> Pieces | None:
    """The pieces of a file of which a result names ``lines``; None where it counts as a whole."""
    stretches = _stretches(source)
    if looked.wholly or stretches is None:
        return None
    layout = [(head, lines_of.first, lines_of.last) for head, lines_of in stretches]
    where = [_where(layout, line) for line in lines]
    if any(kind == _BODY and place not in looked.bodies for kind, place in where):
        return None
    exactly = any(kind == _OUTSIDE for kind, _ in where)
    others = [
        "" if place in looked.bodies else _short(source[body.begin : body.end])
        for place, (_, body) in enumerate(stretches)
    ]
    words: dict[str, list[str]] = {}
    for word, form in sorted(looked.words):
        words.setdefault(form, []).append(word)
    texts = sorted((kind, text, said) for (kind, text), said in looked.texts.items())
    named = layout if lines else []
    counts = _counts(source, stretches, looked.bodies, exactly, bool(named))
    return Pieces(counts, others, words, texts, exactly, named)


def moved(pieces: Pieces, source: str) -> Layout | None:
    """Where the bodies of an edited file are, if it has all that was looked at and nothing else that was asked for."""
    stretches = _stretches(source)
    if stretches is None or len(stretches) != len(pieces.others):
        return None
    bodies = {place for place, other in enumerate(pieces.others) if not other}
    if _counts(source, stretches, bodies, pieces.exactly, bool(pieces.layout)) != pieces.counts:
        return None
    if any(text_reply(kind, source, text) != said for kind, text, said in pieces.texts):
        return None
    text = Text(source)
    for (_, body), other in zip(stretches, pieces.others, strict=True):
        if other and _short(source[body.begin : body.end]) != other and _holds_any(text, body, pieces.words):
            return None
    return [(head, body.first, body.last) for head, body in stretches]


def moved_line(line: int, old: Layout, new: Layout) -> int:
    """Where a line that a result names is now."""
    kind, place = _where(old, line)
    if kind == _HEADER:
        return new[place][0]
    if kind == _BODY:
        return line + new[place][1] - old[place][1]
    return line + new[place][2] - old[place][2] if place >= 0 else line


_HEADER, _BODY, _OUTSIDE = range(3)


def _where(layout: Layout, line: int) -> tuple[int, int]:
    """Whether a line is the first of a header, in a body, or elsewhere; of which one, or behind which one."""
    before = -1
    for place, (head, first, last) in enumerate(layout):
        if line == head:
            return _HEADER, place
        if first <= line <= last:
            return _BODY, place
        if last < line:
            before = place
    return _OUTSIDE, before


def _stretches(source: str) -> list[tuple[int, Stretch]] | None:
    outlined = outline(source)
    return list(outlined.bodies.items()) if outlined is not None else None


def _counts(
    source: str, stretches: Sequence[tuple[int, Stretch]], bodies: Collection[int], exactly: bool, named: bool
) -> str:
    outside: list[str] = []
    looked: list[str] = []
    done = 0
    for place, (_, body) in enumerate(stretches):
        outside += (source[done : body.begin], _BETWEEN)
        if place in bodies:
            text = source[body.begin : body.end]
            looked.append(text if named else without_comments(text))
        done = body.end
    outside.append(source[done:])
    around = "".join(outside)
    return _short(_BETWEEN.join([around if exactly else without_comments(around), *looked]), 16)


#: stands in no source
_BETWEEN = "\0"


def _short(text: str, size: int = 6) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()


def _holds_any(text: Text, body: Stretch, words: dict[str, list[str]]) -> bool:
    return any(
        text.find(word, FORMS[form], body.begin, body.end) >= 0 for form, asked in words.items() for word in asked
    )
