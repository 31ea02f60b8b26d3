"""A module's text, by lines and by words."""

from __future__ import annotations

import ast
from array import array
from dataclasses import dataclass
from itertools import accumulate

from capturelint.model import Span
from capturelint.project.forms import Form


@dataclass(eq=False, repr=False, slots=True)
class Text:
    source: str
    #: where each line begins in ``source``; the lines themselves would take twice the memory of the source
    _starts: array[int] | None = None

    @property
    def starts(self) -> array[int]:
        if self._starts is None:
            self._starts = array("I", accumulate((len(each) + 1 for each in self.source.split("\n")), initial=0))
        return self._starts

    def start_of(self, line: int) -> int:
        """Where a line begins; the end of the text for one beyond its last."""
        return self.starts[min(line, len(self.starts)) - 1]

    def line(self, number: int) -> str:
        return self.between(number, number) if 0 < number < len(self.starts) else ""

    def between(self, first: int, last: int) -> str:
        """The lines from the first to the last, without the end of the last one."""
        return self.source[self.start_of(first) : self.start_of(last + 1) - 1]

    def find(self, word: str, form: Form, start: int, stop: int | None = None) -> int:
        """Where an identifier occurs next in a form, -1 where it does not; within a longer one it does not."""
        source = self.source
        if form.anywhere is not None:
            found = form.anywhere.search(source, start, len(source) if stop is None else stop)
            return found.start() if found is not None else -1
        at = source.find(word, start, stop) if word else -1  # `getattr(x, "")` asks for no identifier
        while at >= 0:
            end = at + len(word)
            before, after = source[at - 1 : at], source[end : end + 1]
            if not (before.isalnum() or after.isalnum() or before == "_" or after == "_"):
                if form.fits(source, at, end):
                    return at
            at = source.find(word, end, stop)
        return -1

    def of_span(self, span: Span) -> str:
        """The source text of a finding's span."""
        lines = [self.line(line) for line in range(span.line, span.end_line + 1)]
        if not lines:
            return ""
        lines[-1] = lines[-1][: span.end_column - 1]
        lines[0] = lines[0][span.column - 1 :]
        return "\n".join(lines)

    def of_node(self, node: ast.AST) -> str:
        """The source text of a node, as ``ast.get_source_segment`` gives it, which splits the source at each call."""
        first, last = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        start, end = node.col_offset, node.end_col_offset  # type: ignore[attr-defined]
        lines = [self.line(each).encode() for each in range(first, last + 1)]
        lines[-1] = lines[-1][:end]
        lines[0] = lines[0][start:]
        return b"\n".join(lines).decode()
