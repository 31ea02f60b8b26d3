"""What a run comes to: which findings fail it, and the exit status."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from capturelint.model import CheckResult, Confidence, Finding, Severity, VerdictStatus

PASSED, FAILED, WENT_WRONG = 0, 1, 2


class Thresholds(Protocol):
    """How severe and how sure a finding has to be to fail a run."""

    @property
    def fail_on(self) -> Severity: ...

    @property
    def min_confidence(self) -> Confidence: ...


@dataclass(frozen=True, slots=True)
class Gate:
    """What fails a run."""

    fail_on: Severity = Severity.ERROR
    min_confidence: Confidence = Confidence.LIKELY
    only_confirmed: bool = False
    require_regions: bool = False
    exit_zero: bool = False
    #: for a path as reports show it, where the configuration sets other thresholds for some files
    by_path: Callable[[str], Thresholds] | None = None

    def fails(self, finding: Finding) -> bool:
        """Whether one finding does: severe and certain enough, not suppressed, not refuted by the verifier."""
        wanted: Thresholds = self if self.by_path is None else self.by_path(finding.path)
        status = finding.verdict.status if finding.verdict is not None else None
        return (
            finding.severity >= wanted.fail_on
            and finding.confidence >= wanted.min_confidence
            and finding.suppressed is None
            and status is not VerdictStatus.REFUTED
            and (not self.only_confirmed or status is VerdictStatus.CONFIRMED)
        )

    def exit_status(self, result: CheckResult) -> int:
        """0 when nothing fails, 1 for findings that fail, diagnostics, or a missing region that was required.

        ``exit_zero`` turns 1 into 0. Status 2, for a run that went wrong, is not decided here.
        """
        failed = (
            bool(result.diagnostics)
            or (self.require_regions and not result.regions)
            or any(self.fails(finding) for finding in result.findings)
        )
        return FAILED if failed and not self.exit_zero else PASSED


def reported(result: CheckResult) -> list[Finding]:
    """The findings that another service shows to people: neither suppressed nor refuted, sorted by place."""
    shown = [
        finding
        for finding in result.findings
        if finding.suppressed is None
        and (finding.verdict is None or finding.verdict.status is not VerdictStatus.REFUTED)
    ]
    return sorted(shown, key=lambda finding: finding.sort_key)
