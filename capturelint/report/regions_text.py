"""The text of ``capturelint regions``: what is captured, what it reaches, and what was not looked at."""

from __future__ import annotations

from collections.abc import Iterator

from capturelint.model import CheckResult, Region, within
from capturelint.report.frame import printable, shorten
from capturelint.report.options import DEFAULTS, ReportOptions
from capturelint.report.style import Style
from capturelint.report.text import count, looked_at, one_line, render_diagnostics

_TEXT_WIDTH = 72
#: a wrapper that everybody uses is given something in many places
_MAX_GIVEN = 6


def render_regions(result: CheckResult, options: ReportOptions = DEFAULTS) -> str:
    """Every region with the functions that it enters and the calls that were not followed; ends in a newline."""
    style = Style(options.color)
    regions = sorted(result.regions, key=lambda region: region.sort_key)
    blocks = ["\n".join(_region(region, style)) for region in regions]
    if result.diagnostics:
        blocks.append(render_diagnostics(result.diagnostics, style))
    blocks.append(_footer(result))
    return "\n\n".join(blocks) + "\n"


def _region(region: Region, style: Style) -> Iterator[str]:
    place = printable(f"{within(region.path, region.cell)}:{region.line}")
    yield f"{style.strong(place)} {region.kind} {style.strong(printable(region.name))}"
    if region.given_by:
        yield f"  given what it captures by {count(len(region.given_by), 'call')}"
        yield from _table(
            [
                (f"{within(frame.path, frame.cell)}:{frame.line}", f"in {frame.function}", "")
                for frame in region.given_by[:_MAX_GIVEN]
            ]
        )
        if len(region.given_by) > _MAX_GIVEN:
            yield f"    and {len(region.given_by) - _MAX_GIVEN} more"
    if not region.reached and not region.unresolved:
        yield "  calls no function of the project"
    if region.reached:
        yield f"  enters {count(len(region.reached), 'function')}"
        rows = [
            (
                f"{within(item.path, item.cell)}:{item.line}",
                item.name,
                f"called from {within(item.called_from.path, item.called_from.cell)}:{item.called_from.line}",
            )
            for item in region.reached
        ]
        yield from _table(rows)
    if region.unresolved:
        yield f"  could not follow {count(len(region.unresolved), 'call')}"
        yield from _table(
            [(f"{within(c.path, c.cell)}:{c.line}:{c.column}", one_line(c.text), c.reason) for c in region.unresolved]
        )


def _table(cells: list[tuple[str, str, str]]) -> Iterator[str]:
    rows = [(printable(first), printable(second), printable(third)) for first, second, third in cells]
    first = max(len(row[0]) for row in rows)
    second = min(max(len(row[1]) for row in rows), _TEXT_WIDTH)
    for row in rows:
        yield f"    {row[0]:<{first}}  {shorten(row[1], second):<{second}}  {row[2]}".rstrip()


def _footer(result: CheckResult) -> str:
    reached = sum(len(region.reached) for region in result.regions)
    unresolved = sum(len(region.unresolved) for region in result.regions)
    return (
        f"{count(len(result.regions), 'region')}, {count(reached, 'function')} entered,"
        f" {count(unresolved, 'call')} not followed {looked_at(result, regions=False)}"
    )
