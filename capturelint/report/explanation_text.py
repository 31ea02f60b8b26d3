"""The text of ``capturelint explain-finding``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from capturelint.explanation import Explanation
from capturelint.report.frame import printable, shorten
from capturelint.report.style import Style
from capturelint.report.text import count, one_line

_TEXT_WIDTH = 72


def render_explanation(
    explained: Explanation, *, read_line: Callable[[str, int], str | None], color: bool = False
) -> str:
    """What a finding rests on, in four parts; ends in a newline."""
    style = Style(color)
    return "\n".join(_lines(explained, read_line, style)) + "\n"


def _lines(explained: Explanation, read_line: Callable[[str, int], str | None], style: Style) -> Iterator[str]:
    finding = explained.finding
    place = printable(f"{finding.path}:{finding.span.line}:{finding.span.column}:")
    severity = style.severity(f"{finding.severity.value} {finding.rule}", finding.severity)
    yield f"{style.strong(place)} {severity} {finding.name} [{finding.confidence.value}]"
    yield f"  {one_line(finding.message)}"
    source = read_line(finding.path, finding.span.line)
    if source is not None:
        yield f"  {printable(source.strip())}"
    yield from _way(explained, read_line, style)
    yield from _values(explained, style)
    yield from _around(explained, style)
    for reason in finding.why:
        yield f"  {one_line(reason)}"
    for item in finding.related:
        yield f"  {printable(f'{item.path}:{item.line}')}  {one_line(item.message)}"


def _way(explained: Explanation, read_line: Callable[[str, int], str | None], style: Style) -> Iterator[str]:
    region = explained.region
    yield ""
    yield style.strong("The region")
    if region is None:
        yield "  none: the finding is about the file itself"
        return
    yield f"  {printable(f'{region.path}:{region.line}')}  {region.kind} in {printable(region.name)}"
    if explained.others:
        yield f"  and {count(explained.others, 'other region')}; the way from the surest is shown"
    yield ""
    yield style.strong("The calls that lead there")
    if not explained.hops:
        yield "  none: it stands in the region itself"
    for hop in explained.hops:
        text = shorten((read_line(hop.path, hop.line) or "").strip(), _TEXT_WIDTH)
        yield f"  {printable(f'{hop.path}:{hop.line}')}  in {printable(hop.function)}"
        yield f"      {printable(text)}"
        yield f"      {hop.confidence.value}" + (f": {one_line(hop.why)}" if hop.why else "")


def _values(explained: Explanation, style: Style) -> Iterator[str]:
    if explained.origins:
        yield ""
        yield style.strong("The values")
    for origin in explained.origins:
        yield f"  line {origin.line}  {shorten(one_line(origin.text), _TEXT_WIDTH)}"
        yield f"      {one_line(origin.what)}"


def _around(explained: Explanation, style: Style) -> Iterator[str]:
    yield ""
    yield style.strong("What it hangs on")
    if not explained.branches and explained.doubt is None:
        yield "  no branch of its function"
    for branch in explained.branches:
        yield f"  line {branch.line}  {shorten(one_line(branch.text), _TEXT_WIDTH)}"
        yield f"      {one_line(branch.side)}" + (f"; {one_line(branch.decided)}" if branch.decided else "")
    if explained.doubt is not None:
        yield f"  only possible at capture: {one_line(explained.doubt)}"
