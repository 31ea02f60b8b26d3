"""Suppression comments for findings that are there: where each goes, and what it says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from capturelint.model import Edit, Finding, Span
from capturelint.source.layout import Comment, Layout
from capturelint.source.suppressions import SuppressionEntry, parse_suppressions


@dataclass(frozen=True, slots=True)
class _Place:
    """The last line of a statement, where a comment covers all of it, and the rules that it has to name there."""

    line: int
    codes: tuple[str, ...]


def ignoring(source: str, findings: Iterable[Finding], reason: str) -> tuple[Edit, ...]:
    """The edits that suppress ``findings``, which stand in ``source`` (as ``decode`` returns it).

    A comment goes behind the last line of the statement: there one can always stand, whatever strings, brackets and
    backslashes come before, and wherever a formatter moves it within the statement, it covers the same lines.
    """
    layout = Layout(source)
    entries = [entry for entry in parse_suppressions(source).entries if entry.kind == "ignore"]
    comments = {comment.line: comment for comment in layout.comments if not comment.own_line}
    return tuple(_edit(place, layout.lines, comments, entries, reason) for place in _places(layout, findings))


def covers_all(source: str, findings: Iterable[Finding], before: str) -> bool:
    """Whether the comments in ``source`` do what they were put in for: all of it is read, and as what was meant.

    A reason can look like one more directive, or a list of rules.
    """
    comments = parse_suppressions(source)
    read = len(comments.malformed) <= len(parse_suppressions(before).malformed)
    return read and all(comments.match(each.rule, each.name, each.span.line) for each in findings)


def _places(layout: Layout, findings: Iterable[Finding]) -> Iterator[_Place]:
    rules: dict[int, set[str]] = {}
    for finding in findings:
        statement = layout.statement_at(finding.span.line)
        if statement is not None:
            rules.setdefault(statement.last, set()).add(finding.rule)
    for line, codes in sorted(rules.items()):
        yield _Place(line, tuple(sorted(codes)))


def _edit(
    place: _Place,
    lines: Sequence[str],
    comments: Mapping[int, Comment],
    entries: Sequence[SuppressionEntry],
    reason: str,
) -> Edit:
    line = lines[place.line - 1]
    comment = comments.get(place.line)
    there = next((entry for entry in entries if comment is not None and _joins(entry, comment, reason)), None)
    if there is not None:
        end = line.index("]", there.span.column - 1) + 1
        missing = [code for code in place.codes if code not in there.codes]
        return Edit(Span(place.line, end, place.line, end), ", " + ", ".join(missing))
    end = len(line.rstrip()) + 1
    text = f"  # capturelint: ignore[{', '.join(place.codes)}]{' ' if reason else ''}{reason}"
    return Edit(Span(place.line, end, place.line, len(line) + 1), text)


def _joins(entry: SuppressionEntry, comment: Comment, reason: str) -> bool:
    """Whether a comment that is there takes more rules: one with another reason says nothing about them."""
    return entry.span.line == comment.line and (not reason or entry.reason == reason)
