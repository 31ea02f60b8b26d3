"""What a change brings about: the findings on the lines that it touches, or on a way that it makes."""

from __future__ import annotations

from dataclasses import replace

from capturelint.model import CheckResult, Finding, RegionRef
from capturelint.source.changes import Changes


def only_changed(result: CheckResult, changes: Changes, revision: str) -> CheckResult:
    """The result less what was there before: findings and files that could not be checked.

    ``revision`` is what the changes are since, for people.
    """
    kept = tuple(finding for finding in result.findings if _is_new(finding, changes))
    left_out = sum(finding.suppressed is None for finding in result.findings) - sum(
        finding.suppressed is None for finding in kept
    )
    diagnostics = tuple(item for item in result.diagnostics if changes.touch_file(item.path))
    notes = result.notes
    if len(diagnostics) < len(result.diagnostics):
        number = len({item.path for item in result.diagnostics} - {item.path for item in diagnostics})
        files = "file" if number == 1 else "files"
        notes = (*notes, f"{number} {files} that did not change since {revision} could not be checked")
    return replace(result, findings=kept, diagnostics=diagnostics, unchanged=left_out, notes=notes)


def _is_new(finding: Finding, changes: Changes) -> bool:
    """On a changed line, or reached only by ways that hold one: a capture or a call that is new."""
    if changes.touch(finding.path, finding.span.line, finding.span.end_line):
        return True
    return bool(finding.regions) and all(_way_is_new(region, changes) for region in finding.regions)


def _way_is_new(region: RegionRef, changes: Changes) -> bool:
    places = [(region.path, region.line), *((frame.path, frame.line) for frame in region.trace)]
    return any(changes.touch(path, line, line) for path, line in places)
