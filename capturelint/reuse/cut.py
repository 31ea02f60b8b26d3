"""A file cut in pieces: the bodies of its functions, and what stands between them, each as its lines of code."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from capturelint.project.code_lines import CodeLines, code_lines
from capturelint.project.outline import Stretch, outline

#: stands in no source
_BETWEEN = "\0"


@dataclass(frozen=True, slots=True)
class Cut:
    """``pieces``: the first and the last of ``lines`` in each, beginning with what is above all bodies.

    Bodies and what is between them take turns: the body at place ``n`` is piece ``2 * n + 1``.
    """

    source: str
    bodies: Sequence[Stretch]
    lines: CodeLines
    pieces: list[range]

    def where(self, line: int) -> tuple[int, int] | None:
        """The piece that a line of code is in, and which of its lines it is; None for a line without code."""
        ordinal = self.lines.ordinal(line)
        if ordinal is None:
            return None
        piece = next(place for place, lines in enumerate(self.pieces) if ordinal in lines)
        return piece, ordinal - self.pieces[piece].start

    def line_at(self, piece: int, ordinal: int) -> int:
        return self.lines.numbers[self.pieces[piece][ordinal]]

    def counted(self, looked: Collection[int]) -> str:
        """The code of all that counts: what is outside of bodies, and those that were looked at."""
        counts = (lines for place, lines in enumerate(self.pieces) if place % 2 == 0 or place // 2 in looked)
        return _BETWEEN.join("\n".join(self.lines.texts[each.start : each.stop]) for each in counts)

    def digest(self, looked: Collection[int]) -> str:
        return short(self.counted(looked), 16)

    def text_of(self, place: int) -> str:
        body = self.bodies[place]
        return self.source[body.begin : body.end]

    def without(self, gone: range) -> Cut:
        """The same without some lines, by their ordinals, with which bodies go that are in them as a whole."""
        numbers, texts = self.lines.numbers, self.lines.texts
        first, last = numbers[gone.start], numbers[gone.stop - 1]
        lines = CodeLines(numbers[: gone.start] + numbers[gone.stop :], texts[: gone.start] + texts[gone.stop :])
        bodies = [each for each in self.bodies if not first <= each.first <= last]
        return Cut(self.source, bodies, lines, _pieces(bodies, lines))


def cut(source: str) -> Cut | None:
    """The pieces of a text; None where it has no outline."""
    bodies = bodies_of(source)
    return cut_at(source, bodies) if bodies is not None else None


def cut_at(source: str, bodies: Sequence[Stretch], looked: Collection[int] | None = None) -> Cut:
    """The pieces of a text with these bodies, of which those that were looked at have lines, or all."""
    but = {each.first: each.last for place, each in enumerate(bodies) if looked is not None and place not in looked}
    lines = code_lines(source, [each.first for each in bodies], but)
    return Cut(source, bodies, lines, _pieces(bodies, lines))


def bodies_of(source: str) -> list[Stretch] | None:
    """The bodies of a text; None where it has no outline."""
    outlined = outline(source)
    return list(outlined.bodies.values()) if outlined is not None else None


def _pieces(bodies: Iterable[Stretch], lines: CodeLines) -> list[range]:
    found: list[range] = []
    done = 0
    for body in bodies:
        begin, end = bisect_left(lines.numbers, body.first), bisect_left(lines.numbers, body.last + 1)
        found += (range(done, begin), range(begin, end))
        done = end
    found.append(range(done, len(lines.numbers)))
    return found


def short(text: str, size: int = 6) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()
