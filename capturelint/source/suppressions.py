"""Inline suppressions: comments that say why a finding does not count.

``# capturelint: ignore[CG101, host-scalar-read] reason``
    at the end of a line covers the statement that the line belongs to, all its lines; on a line of its own it covers
    the next statement. Of a compound statement (``if``, ``for``, ``with``) that is the header alone. On, or above, a
    ``def`` or ``class`` (and above its decorators) it covers the whole function or class.
``# capturelint: file-ignore[CG1]``
    anywhere covers the file.
``# noqa: CG101``
    at the end of a line is understood too, for CG codes; others beside them are other linters' business.

Selectors are codes, code prefixes and rule names. Only comments count: a string with such text suppresses nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from capturelint.model import Span
from capturelint.source.layout import Comment, Layout
from capturelint.suggest import closest

_DIRECTIVE = re.compile(
    r"#\s*(?P<tool>capturelint)(?P<colon>\s*:?)\s*(?P<word>[\w-]*)\s*(?P<list>\[[^\]#]*\])?(?P<reason>[^#]*)",
    re.IGNORECASE,
)
#: what follows a directive and looks like one more, which nothing reads: after a comma, or with its list
_SECOND = re.compile(
    r"\s*(?:[,;&+]\s*(?:and\s+)?|and\s+)?(?P<word>ignore|file-ignore|region)\b\s*(?P<list>\[[^\]#]*\])?", re.IGNORECASE
)
_SECOND_LIST = re.compile(r"\s*,?\s*\[\s*CG")
_NOQA = re.compile(r"#\s*noqa\s*:\s*(?P<codes>[A-Z]+[0-9]+(?:[\s,]+[A-Z]+[0-9]+)*)", re.IGNORECASE)
_SEPARATOR = re.compile(r"[\s,]+")
_CODE = re.compile(r"CG[0-9]*")
_TOOL = "capturelint"
_IGNORE, _FILE_IGNORE, _REGION = _DIRECTIVES = ("ignore", "file-ignore", "region")
#: what other linters call it
_ELSEWHERE = frozenset({"allow", "disable", "disable-line", "disable-next-line", "noqa", "nolint", "off", "skip"})


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
        return [entry for entry in self.entries if entry.unused_codes]


def parse_suppressions(source: str) -> SuppressionSet:
    """Reads the comments of ``source`` (as ``decode`` returns it). Never raises: what can't be tokenized ends it."""
    if "capturelint" not in source.lower() and not ("CG" in source and ("noqa" in source or "NOQA" in source)):
        return SuppressionSet()
    entries: list[SuppressionEntry] = []
    malformed: list[MalformedSuppression] = []
    layout = Layout(source)
    for comment in layout.comments:
        for parsed in _parse_comment(comment, layout):
            if isinstance(parsed, SuppressionEntry):
                entries.append(parsed)
            else:
                malformed.append(parsed)
    return SuppressionSet(tuple(entries), tuple(malformed))


def _selects(selector: str, code: str, name: str) -> bool:
    return selector == name or (_CODE.fullmatch(selector) is not None and code.startswith(selector))


def _parse_comment(comment: Comment, layout: Layout) -> Iterator[SuppressionEntry | MalformedSuppression]:
    for match in _DIRECTIVE.finditer(comment.text):
        span = comment.span(match.start(), match.start() + len(match.group().rstrip()))
        fault = _fault(match)
        if fault is not None:
            yield MalformedSuppression(span, fault)
        if _is_suppression(match):
            first, last = (1, len(layout.lines)) if match["word"] == _FILE_IGNORE else layout.cover(comment)
            reason = match["reason"].lstrip(" \t:-").rstrip() or None
            yield SuppressionEntry(match["word"], span, _selectors(match), reason, first, last)
    noqa = None if comment.own_line else _NOQA.search(comment.text)
    if noqa:
        ours = tuple(code for code in _SEPARATOR.split(noqa["codes"].upper()) if _CODE.fullmatch(code))
        if ours:
            yield SuppressionEntry("noqa", comment.span(*noqa.span()), ours, None, *layout.cover(comment))


def _selectors(match: re.Match[str]) -> tuple[str, ...]:
    return tuple(selector for selector in _SEPARATOR.split((match["list"] or "").strip("[]")) if selector)


def _is_exact(match: re.Match[str]) -> bool:
    """Whether the tool's name stands there as it must; any spelling of the word may follow."""
    return match["tool"] == _TOOL and match["colon"] == ":"


def _is_suppression(match: re.Match[str]) -> bool:
    return _is_exact(match) and match["word"] in (_IGNORE, _FILE_IGNORE) and bool(_selectors(match))


def _fault(match: re.Match[str]) -> str | None:
    """What is wrong with a comment that looks like a directive: that nothing reads it, or not all of it.

    None for what is right, and for prose about capturelint. A word that is no directive is one when it is close to it,
    when a list follows it, or when another linter has it.
    """
    word, list_text = match["word"], match["list"]
    meant = _meant(word, list_text)
    second = _second(match["reason"])
    if meant is None:
        return f"`{word}` is no directive; write `{second}`" if second is not None and _is_exact(match) else None
    example = _example(meant, list_text)
    if not _is_exact(match):
        prose = word.casefold() not in _DIRECTIVES or (list_text is None and match["reason"].strip() != "")
        return None if prose and ":" not in match["colon"] else f"this comment is not read; write `{example}`"
    if word != meant:
        return f"`{word}` is no directive; write `{example}`"
    if meant != _REGION and not _selectors(match):
        return f"name the rules that it is about: `{word}[CG101]`"
    if second is not None:
        return f"what follows `{word}{list_text or ''}` is not read; write `{example}  {second}`"
    if _SECOND_LIST.match(match["reason"]):
        return f"a second list is not read; name all rules in one: `{word}[CG101, CG102]`"
    return None


def _second(text: str) -> str | None:
    """The directive that ``text`` starts with, as it would have to be written; None for a reason in words."""
    match = _SECOND.match(text)
    if match is None or (match["list"] is None and not text.lstrip().startswith((",", ";", "&", "+"))):
        return None
    return _example(match["word"].lower(), match["list"])


def _example(directive: str, list_text: str | None) -> str:
    return f"# {_TOOL}: {directive}" + ("" if directive == _REGION else list_text or "[CG101]")


def _meant(word: str, list_text: str | None) -> str | None:
    """The directive that ``word`` is, or was meant to be."""
    close = closest(word, _DIRECTIVES)
    if close is not None:
        return close
    return _IGNORE if list_text is not None or word.casefold() in _ELSEWHERE else None
