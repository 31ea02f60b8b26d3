"""Inline suppressions: comments that say why a finding does not count.

``# capturelint: ignore[CG101, host-scalar-read] reason``
    at the end of a line covers the statement that the line belongs to, all its lines; on a line of its own it covers
    the next statement. Of a compound statement (``if``, ``for``, ``with``, ``class``) that is the header alone. On, or
    above, a ``def`` (and above its decorators) it covers the whole function.
``# capturelint: file-ignore[CG1]``
    anywhere covers the file.
``# noqa: CG101``
    at the end of a line is understood too, for CG codes; an unused one is not reported.

Selectors are codes, code prefixes and rule names. Only comments count: a string with such text suppresses nothing.
"""

from __future__ import annotations

import contextlib
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field

from capturelint.model import Span
from capturelint.suggest import closest

_DIRECTIVE = re.compile(r"#\s*capturelint:\s*(?P<word>[\w-]*)\s*(?P<list>\[[^\]#]*\])?(?P<reason>[^#]*)")
_NOQA = re.compile(r"#\s*noqa\s*:\s*(?P<codes>[A-Z]+[0-9]+(?:[\s,]+[A-Z]+[0-9]+)*)", re.IGNORECASE)
_SEPARATOR = re.compile(r"[\s,]+")
_CODE = re.compile(r"CG[0-9]*")
_IGNORE, _FILE_IGNORE, _REGION = "ignore", "file-ignore", "region"


@dataclass(slots=True)
class SuppressionEntry:
    """One comment. ``kind`` is ``ignore``, ``file-ignore`` or ``noqa``; ``span`` is the directive within its file.

    ``first_line`` to ``last_line`` are the lines covered. ``used`` holds the selectors that have matched a finding.
    """

    kind: str
    span: Span
    codes: tuple[str, ...]
    reason: str | None
    first_line: int
    last_line: int
    used: set[str] = field(default_factory=set)

    def covers(self, line: int) -> bool:
        return self.first_line <= line <= self.last_line

    def match(self, code: str, name: str) -> bool:
        """Whether a selector of this entry takes the rule; marks those that do as used."""
        hits = {selector for selector in self.codes if _selects(selector, code, name)}
        self.used |= hits
        return bool(hits)

    @property
    def unused_codes(self) -> tuple[str, ...]:
        return tuple(selector for selector in self.codes if selector not in self.used)


@dataclass(frozen=True, slots=True)
class MalformedSuppression:
    """A directive that comes to nothing; ``message`` says what is wrong with it."""

    span: Span
    message: str


@dataclass(frozen=True, slots=True)
class SuppressionSet:
    """The suppressions of one file, in the order of the file. Matching marks entries as used."""

    entries: tuple[SuppressionEntry, ...] = ()
    malformed: tuple[MalformedSuppression, ...] = ()

    def match(self, finding_code: str, finding_name: str, line: int) -> SuppressionEntry | None:
        """The entry that takes a finding whose span starts on ``line``; the narrowest one when there are several."""
        covering = [entry for entry in self.entries if entry.covers(line)]
        covering.sort(key=lambda entry: entry.last_line - entry.first_line)
        for entry in covering:
            if entry.match(finding_code, finding_name):
                return entry
        return None

    def unused(self) -> list[SuppressionEntry]:
        """Entries with a selector that matched nothing (``unused_codes``), once every finding was matched."""
        return [entry for entry in self.entries if entry.kind != "noqa" and entry.unused_codes]


def parse_suppressions(source: str) -> SuppressionSet:
    """Reads the comments of ``source`` (as ``decode`` returns it). Never raises: what can't be tokenized ends it."""
    if "capturelint:" not in source and not ("CG" in source and ("noqa" in source or "NOQA" in source)):
        return SuppressionSet()
    entries: list[SuppressionEntry] = []
    malformed: list[MalformedSuppression] = []
    layout = _Layout(source)
    for comment in layout.comments:
        for parsed in _parse_comment(comment, layout):
            if isinstance(parsed, SuppressionEntry):
                entries.append(parsed)
            else:
                malformed.append(parsed)
    return SuppressionSet(tuple(entries), tuple(malformed))


def _selects(selector: str, code: str, name: str) -> bool:
    return selector == name or (_CODE.fullmatch(selector) is not None and code.startswith(selector))


@dataclass(frozen=True, slots=True)
class _Comment:
    text: str
    line: int
    #: from 0, in characters
    column: int
    own_line: bool

    def span(self, start: int, end: int) -> Span:
        return Span(self.line, self.column + start + 1, self.line, self.column + end + 1)


_Cover = tuple[int, int]


def _parse_comment(comment: _Comment, layout: _Layout) -> Iterator[SuppressionEntry | MalformedSuppression]:
    for match in _DIRECTIVE.finditer(comment.text):
        span = comment.span(match.start(), match.start() + len(match.group().rstrip()))
        word = match["word"]
        if word not in (_IGNORE, _FILE_IGNORE):
            yield from _unknown_directive(word, span)
            continue
        codes = tuple(_SEPARATOR.split((match["list"] or "").strip("[], \t")))
        if codes == ("",):
            yield MalformedSuppression(span, f"name the rules that it is about: `{word}[CG101]`")
            continue
        first, last = (1, len(layout.lines)) if word == _FILE_IGNORE else layout.cover(comment)
        yield SuppressionEntry(word, span, codes, match["reason"].lstrip(" \t:-").rstrip() or None, first, last)
    noqa = None if comment.own_line else _NOQA.search(comment.text)
    if noqa:
        ours = tuple(code for code in _SEPARATOR.split(noqa["codes"].upper()) if _CODE.fullmatch(code))
        if ours:
            yield SuppressionEntry("noqa", comment.span(*noqa.span()), ours, None, *layout.cover(comment))


def _unknown_directive(word: str, span: Span) -> Iterator[MalformedSuppression]:
    """``region`` is read elsewhere; a mistyped one is reported here too, since it would mark nothing."""
    close = closest(word, (_IGNORE, _FILE_IGNORE, _REGION))
    if close is not None and word != _REGION:
        yield MalformedSuppression(span, f"unknown directive `{word}`; did you mean `{close}`?")


@dataclass(frozen=True, slots=True)
class _Statement:
    """One logical line: its first and last line, its first word (``async`` aside), and how deep it is indented."""

    first: int
    last: int
    word: str
    depth: int


class _Layout:
    """The comments and logical lines of a source, and which lines each comment is about."""

    def __init__(self, source: str) -> None:
        self.lines = source.split("\n")
        self.comments: list[_Comment] = []
        self._statements: list[_Statement] = []
        with contextlib.suppress(tokenize.TokenError, SyntaxError):  # the parser reports what is wrong with the file
            self._read(source)

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
                self._statements.append(_Statement(first or line, line, word, depth))
                first, word = 0, ""
            elif token.type not in (tokenize.NL, tokenize.ENDMARKER):
                first = first or line
                word = token.string if word in ("", "async") else word

    def _comment(self, token: tokenize.TokenInfo) -> _Comment:
        line, column = token.start
        return _Comment(token.string, line, column, own_line=not self.lines[line - 1][:column].strip())

    def cover(self, comment: _Comment) -> _Cover:
        """The lines of the statement that ``comment`` stands in or, on a line of its own between two, comes before."""
        index = next((i for i, statement in enumerate(self._statements) if statement.last >= comment.line), None)
        if index is None:
            return comment.line, comment.line
        statement = self._statements[index]
        target = self._decorated(index) if comment.line < statement.first else index
        if self._statements[target].word == "def":
            return statement.first, self._end_of_block(target)
        return statement.first, self._statements[target].last

    def _decorated(self, index: int) -> int:
        while self._statements[index].word == "@" and index + 1 < len(self._statements):
            index += 1
        return index

    def _end_of_block(self, header: int) -> int:
        last = self._statements[header].last
        for statement in self._statements[header + 1 :]:
            if statement.depth <= self._statements[header].depth:
                break
            last = statement.last
        return last
