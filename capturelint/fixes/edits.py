"""Putting edits into a text: which go together, and what comes out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from capturelint.model import Applicability, Edit, Finding, Fix, Span

_LINE_END = re.compile(r"\r\n|\r|\n")


def wanted(finding: Finding, *, unsafe: bool) -> Fix | None:
    """The fix of a finding that counts, where it may be applied. A notebook's cells are not written to."""
    fix = finding.fix
    if fix is None or finding.suppressed is not None or finding.cell is not None:
        return None
    return fix if unsafe or fix.applicability is Applicability.SAFE else None


def going_together(fixes: Iterable[Fix]) -> Iterator[Fix]:
    """The fixes that touch nothing that one before them touches: the next round does the others."""
    taken: list[Span] = []
    seen: set[tuple[Edit, ...]] = set()
    for fix in fixes:
        if fix.edits in seen:
            yield fix  # two findings with one remedy
        elif not any(_overlap(edit.span, span) for edit in fix.edits for span in taken):
            taken.extend(edit.span for edit in fix.edits)
            seen.add(fix.edits)
            yield fix


def _overlap(left: Span, right: Span) -> bool:
    """Two insertions at one place overlap too: which comes first is not for us to say."""
    start, end = (left.line, left.column), (left.end_line, left.end_column)
    other_start, other_end = (right.line, right.column), (right.end_line, right.end_column)
    return start == other_start or (start < other_end and other_start < end)


def applied(text: str, edits: Iterable[Edit]) -> str:
    """``text`` with the edits, none of which overlap. Its lines may end in any way; what is new ends as they do."""
    ends = list(_LINE_END.finditer(text))
    starts = [0, *(each.end() for each in ends)]
    newline = ends[0].group() if ends else "\n"
    for edit in sorted(set(edits), key=lambda each: each.span, reverse=True):
        start = starts[edit.span.line - 1] + edit.span.column - 1
        end = starts[edit.span.end_line - 1] + edit.span.end_column - 1
        near = ends[edit.span.line - 1].group() if edit.span.line <= len(ends) else newline
        text = text[:start] + edit.text.replace("\n", near) + text[end:]
    return text
