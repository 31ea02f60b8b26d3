"""Taking rules out of suppression comments, and the comments away that are left without any."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from capturelint.model import Edit, Span
from capturelint.source.suppressions import SuppressionEntry

_LIST = re.compile(r"\[(?P<rules>[^\]#]*)\]")
_CODES = re.compile(r"#\s*noqa\s*:\s*(?P<rules>.*)", re.IGNORECASE)
_RULE = re.compile(r"[^\s,]+")


def without(entry: SuppressionEntry, selectors: Collection[str], lines: Sequence[str]) -> Edit:
    """The edit that takes ``selectors`` out of a comment; with the last rule goes the directive and its reason.

    What else the comment says stays, and so do the codes of other linters in a ``noqa``.
    """
    line = lines[entry.span.line - 1]
    start, end = entry.span.column - 1, entry.span.end_column - 1
    directive = line[start:end]
    match = (_CODES if entry.kind == "noqa" else _LIST).search(directive)
    assert match is not None
    rules = match["rules"]
    kept = _kept(rules, {selector.upper() if entry.kind == "noqa" else selector for selector in selectors}, entry.kind)
    if kept:
        first = start + match.start("rules")
        return Edit(Span(entry.span.line, first + 1, entry.span.line, first + len(rules) + 1), kept)
    return _removal(entry.span.line, lines, start, end)


def _kept(rules: str, dropped: Collection[str], kind: str) -> str:
    """The list without some rules; what stands between those that stay is left as it is."""
    kept = ""
    for match in _RULE.finditer(rules):
        rule = match.group()
        if (rule.upper() if kind == "noqa" else rule) in dropped:
            continue
        before = rules[: match.start()]
        gap = before[len(before.rstrip(" \t,")) :]
        kept += (gap if kept else "") + rule
    return kept


def _removal(number: int, lines: Sequence[str], start: int, end: int) -> Edit:
    line = lines[number - 1]
    before, after = line[:start].rstrip(), line[end:].strip()
    if after and not after.startswith("#"):
        after = f"# {after}"  # words that followed the directive are a comment still
    if after:
        return Edit(Span(number, start + 1, number, len(line) + 1), after)
    if before or number == len(lines):
        return Edit(Span(number, len(before) + 1, number, len(line) + 1), "")
    return Edit(Span(number, 1, number + 1, 1), "")
