"""Comments and logical lines: which statement a comment stands in, or before, and how far that statement goes."""

from __future__ import annotations

import contextlib
import io
import tokenize
from bisect import bisect_left
from dataclasses import dataclass

from capturelint.model import Span

#: statements that a comment on their first line covers with all that is in them
_SCOPES = ("def", "class")


@dataclass(frozen=True, slots=True)
class Comment:
    text: str
    line: int
    #: from 0, in characters
    column: int
    own_line: bool

    def span(self, start: int, end: int) -> Span:
        return Span(self.line, self.column + start + 1, self.line, self.column + end + 1)


@dataclass(frozen=True, slots=True)
class Statement:
    """One logical line: its first and last line, its first word (``async`` aside), and how deep it is indented."""

    first: int
    last: int
    word: str
    depth: int


class Layout:
    """The comments and logical lines of a source (as ``decode`` returns it), as far as it can be tokenized."""

    def __init__(self, source: str) -> None:
        self.lines = source.split("\n")
        self.comments: list[Comment] = []
        self.statements: list[Statement] = []
        with contextlib.suppress(tokenize.TokenError, SyntaxError):  # the parser reports what is wrong with the file
            self._read(source)
        self._last_lines = [statement.last for statement in self.statements]

    def _read(self, source: str) -> None:
        depth, first, word = 0, 0, ""
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            line = token.start[0]
            if token.type == tokenize.COMMENT:
                self.comments.append(self._comment(token))
            elif token.type == tokenize.INDENT:
                depth += 1
            elif token.type == tokenize.DEDENT:
                depth -= 1
            elif token.type == tokenize.NEWLINE:
                self.statements.append(Statement(first or line, line, word, depth))
                first, word = 0, ""
            elif token.type not in (tokenize.NL, tokenize.ENDMARKER):
                first = first or line
                word = token.string if word in ("", "async") else word

    def _comment(self, token: tokenize.TokenInfo) -> Comment:
        line, column = token.start
        return Comment(token.string, line, column, own_line=not self.lines[line - 1][:column].strip())

    def statement_at(self, line: int) -> Statement | None:
        """The statement that ``line`` belongs to or, between two, comes before."""
        index = self._index(line)
        return None if index is None else self.statements[index]

    def target(self, comment: Comment) -> Statement | None:
        """The statement that a comment is about: the one that it stands in, or comes before on a line of its own.

        Before decorators that is what they decorate.
        """
        index = self._target(comment)
        return None if index is None else self.statements[index]

    def cover(self, comment: Comment) -> tuple[int, int]:
        """The lines that a comment is about: a statement, or all of a function or class, with the decorators."""
        index = self._target(comment)
        if index is None:
            return comment.line, comment.line
        nearest = self.statement_at(comment.line)
        assert nearest is not None
        if self.statements[index].word in _SCOPES:
            return nearest.first, self._end_of_block(index)
        return nearest.first, self.statements[index].last

    def _index(self, line: int) -> int | None:
        index = bisect_left(self._last_lines, line)
        return index if index < len(self.statements) else None

    def _target(self, comment: Comment) -> int | None:
        index = self._index(comment.line)
        if index is not None and comment.line < self.statements[index].first:
            while self.statements[index].word == "@" and index + 1 < len(self.statements):
                index += 1
        return index

    def _end_of_block(self, header: int) -> int:
        last = self.statements[header].last
        for statement in self.statements[header + 1 :]:
            if statement.depth <= self.statements[header].depth:
                break
            last = statement.last
        return last
