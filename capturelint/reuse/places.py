"""Which lines of which files a result names, and the same result when these have moved."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from capturelint.model import CheckResult, Finding, Frame, ReachedFunction, Region, UnresolvedCall

#: gives the line where the line of a file is now
Move = Callable[[str, int], int]
#: how texts for people name a place; the path may be shortened
_PLACE = re.compile(r"([^\s:`'\"(]+):\d")


def lines_of_regions(result: CheckResult) -> Iterator[tuple[str, int]]:
    """Each line of each file that is named by what is said of regions: these lines can be moved."""
    for region in result.regions:
        yield region.path, region.line
        for each in region.reached:
            yield each.path, each.line
            yield each.called_from.path, each.called_from.line
        yield from ((each.path, each.line) for each in region.unresolved)
        yield from ((each.path, each.line) for each in region.given_by)


def files_of_findings(result: CheckResult) -> frozenset[str]:
    """Files that findings and diagnostics speak of, and their names alone, which messages may give."""
    named = {each.path for each in result.diagnostics}
    for finding in result.findings:
        named.update(_files_of(finding))
    return frozenset((*named, *(path.rpartition("/")[2] for path in named)))


def _files_of(finding: Finding) -> Iterator[str]:
    yield finding.path
    yield from (each.path for each in finding.related)
    for region in finding.regions:
        yield region.path
        yield from (each.path for each in region.trace)
    texts = (finding.message, finding.label, finding.help, *finding.why, *(each.message for each in finding.related))
    for text in texts:
        yield from _PLACE.findall(text)


def with_lines_moved(result: CheckResult, move: Move) -> CheckResult:
    return replace(result, regions=tuple(_region(each, move) for each in result.regions))


def _region(region: Region, move: Move) -> Region:
    return replace(
        region,
        line=move(region.path, region.line),
        reached=tuple(_reached(each, move) for each in region.reached),
        unresolved=tuple(_unresolved(each, move) for each in region.unresolved),
        given_by=tuple(_frame(each, move) for each in region.given_by),
    )


def _reached(reached: ReachedFunction, move: Move) -> ReachedFunction:
    line, called_from = move(reached.path, reached.line), _frame(reached.called_from, move)
    return replace(reached, line=line, called_from=called_from)


def _unresolved(call: UnresolvedCall, move: Move) -> UnresolvedCall:
    return replace(call, line=move(call.path, call.line))


def _frame(frame: Frame, move: Move) -> Frame:
    return replace(frame, line=move(frame.path, frame.line))
