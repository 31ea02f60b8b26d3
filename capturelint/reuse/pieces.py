"""What a result rests on within a file of which not all was looked at, and whether an edited file still has it.

A file's pieces are the bodies of its functions and what stands outside of them. An edit leaves a result as it was when
the code of the pieces that were looked at is the same, and the edited ones still hold nothing of what all of them were
asked for. Comments, empty lines and documentation are no code.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from capturelint.project.forms import FORMS
from capturelint.project.looked import Looked, text_reply
from capturelint.project.outline import Stretch
from capturelint.project.text import Text
from capturelint.reuse.added import added, functions_of
from capturelint.reuse.cut import bodies_of, cut, cut_at, short

#: where each line that a result names is now
Lines = dict[int, int]
#: whether an identifier stands in another file
Elsewhere = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Pieces:
    """``counts``: the digest of all that was looked at. ``others``: those of the other bodies, empty for the rest.

    ``words`` and ``texts``: what was asked of the text. ``named``: each line that the result names, with its piece and
    which of its lines of code it is. ``functions``: the names of all. ``listed``: all functions were asked for.
    """

    counts: str
    others: list[str]
    words: dict[str, list[str]]
    texts: list[tuple[str, str, bool]]
    named: list[tuple[int, int, int]]
    functions: list[str]
    listed: bool

    def as_plain(self) -> list[Any]:
        return [self.counts, self.others, self.words, self.texts, self.named, self.functions, self.listed]


def pieces_of(
    source: str, looked: Looked, lines: Collection[int], bodies: Sequence[Stretch] | None = None
) -> Pieces | None:
    """The pieces of a file of which a result names ``lines``; None where it counts as a whole.

    ``bodies``: the file's, where they are known.
    """
    if looked.wholly:
        return None
    bodies = bodies if bodies is not None else bodies_of(source)
    if bodies is None:
        return None
    whole = cut_at(source, bodies, looked.bodies)
    named: list[tuple[int, int, int]] = []
    for line in sorted(lines):
        where = whole.where(line)
        if where is None or (where[0] % 2 and where[0] // 2 not in looked.bodies):
            return None
        named.append((line, *where))
    others = ["" if place in looked.bodies else short(whole.text_of(place)) for place, _ in enumerate(whole.bodies)]
    words: dict[str, list[str]] = {}
    for word, form in sorted(looked.words):
        words.setdefault(form, []).append(word)
    texts = sorted((kind, text, said) for (kind, text), said in looked.texts.items())
    functions = functions_of(whole) if not looked.listed else []
    return Pieces(whole.digest(looked.bodies), others, words, texts, named, functions, looked.listed)


def moved(pieces: Pieces, source: str, elsewhere: Elsewhere) -> Lines | None:
    """Where lines of an edited file are, if it has all that was looked at and nothing else that was asked for."""
    same = cut(source)
    if same is None or any(text_reply(kind, source, text) != said for kind, text, said in pieces.texts):
        return None
    looked = {place for place, other in enumerate(pieces.others) if not other}
    text = Text(source)
    more = added(same, pieces.functions) if not pieces.listed else None
    if more is not None:
        if more.is_spoken_of(looked, elsewhere) or _holds_any(text, more.places, pieces.words):
            return None
        same = more.rest
    if len(same.bodies) != len(pieces.others) or same.digest(looked) != pieces.counts:
        return None
    edited = [
        (body.begin, body.end)
        for place, (body, other) in enumerate(zip(same.bodies, pieces.others, strict=True))
        if other and short(same.text_of(place)) != other
    ]
    if _holds_any(text, edited, pieces.words):
        return None
    return {line: same.line_at(piece, ordinal) for line, piece, ordinal in pieces.named}


def _holds_any(text: Text, places: Iterable[tuple[int, int]], words: dict[str, list[str]]) -> bool:
    return any(
        text.find(word, FORMS[form], begin, end) >= 0
        for begin, end in places
        for form, asked in words.items()
        for word in asked
    )
