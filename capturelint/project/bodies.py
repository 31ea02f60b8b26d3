"""Bodies of functions: left out when a module is parsed, parsed when somebody needs one.

Trees are most of the memory that a run takes, some 0.4 KB for a line of code, and most functions of a large project
are never looked at. Which of them a question is about, their text tells.
"""

from __future__ import annotations

import ast
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.forms import FIRST, MENTIONED, Form
from capturelint.project.looked import Looked
from capturelint.project.outline import Stretch
from capturelint.project.uses import Uses

if TYPE_CHECKING:
    from capturelint.project.text import Text


@dataclass(eq=False, repr=False, slots=True)
class Body:
    """The body of a function that stands in no other one. Its tree holds the bodies of all functions within.

    ``first`` is the line that the function begins at, a decorator's where it has one. ``place`` counts those of the
    module in the order of its text. ``rank``: where a walk over the
    whole module comes by. ``inner`` and ``classes`` are those within.
    """

    function: FunctionInfo
    first: int
    lines: Stretch
    place: int = 0
    rank: int = 0
    inner: list[FunctionInfo] = field(default_factory=list)
    classes: list[ClassInfo] = field(default_factory=list)
    uses: Uses | None = None


def put_aside(function: FunctionInfo, stretch: Stretch) -> Body:
    """Takes what stands for a function's body out of its module's tree."""
    node = function.head
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    node.body = []
    first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
    return Body(function, first, stretch)


class Bodies:
    """The bodies of a module, in the order of its text."""

    def __init__(self, text: Text, bodies: Iterable[Body], looked: Looked) -> None:
        self._text = text
        self._looked = looked
        self.all = sorted(bodies, key=lambda body: body.first)
        for place, body in enumerate(self.all):
            body.place = place
        self._firsts = array("I", (body.first for body in self.all))
        self._starts = array("I", (self._start_of(body) for body in self.all))
        self._begins = array("I", (body.lines.begin for body in self.all))
        self._ends = array("I", (body.lines.end for body in self.all))

    def _start_of(self, body: Body) -> int:
        """Where a function begins, decorators included."""
        start = body.lines.head
        for _ in range(body.function.line - body.first):
            start = self._text.source.rfind("\n", 0, start - 1) + 1
        return start

    def at(self, line: int) -> Body | None:
        """The one of the function that holds a line."""
        place = bisect_right(self._firsts, line) - 1
        return self.all[place] if place >= 0 and line <= self.all[place].lines.last else None

    def mentioning(self, words: Iterable[str], form: Form = MENTIONED, *, whole: bool = False) -> list[Body]:
        """Those in which one of some words occurs in a form; ``whole``: decorators and signatures count too."""
        found: set[int] = set()
        for word in words:
            found.update(self._holding(word, form, whole))
            self._looked.words.add((word, form.name))
        self._looked.bodies |= found
        return [self.all[place] for place in sorted(found)]

    def with_classes(self) -> list[Body]:
        """Those in which a line begins with ``class``."""
        return self.mentioning(("class",), FIRST)

    def may_hold(self, body: Body, word: str, form: Form) -> bool:
        self._looked.words.add((word, form.name))
        holds = self._text.find(word, form, body.lines.begin, body.lines.end) >= 0
        if holds:
            self._looked.bodies.add(body.place)
        return holds

    def may_define(self, body: Body) -> bool:
        """Whether there may be functions or classes in a body."""
        source, start, end = self._text.source, body.lines.begin, body.lines.end
        return any(source.find(word, start, end) >= 0 for word in ("def ", "def\t", "class", "lambda", "def\\"))

    def _holding(self, word: str, form: Form, whole: bool) -> Iterator[int]:
        text, starts, begins = self._text, self._starts, self._starts if whole else self._begins
        at = text.find(word, form, 0)
        while at >= 0:
            place = bisect_right(starts, at) - 1
            if place >= 0 and begins[place] <= at < self._ends[place]:
                yield place
                at = text.find(word, form, self._ends[place])
            else:
                at = text.find(word, form, at + 1)
