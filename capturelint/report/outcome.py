"""What a run comes to: which findings fail it, and the exit status."""

from __future__ import annotations

from capturelint.model import CheckResult, Confidence, Finding, Severity, VerdictStatus

PASSED, FAILED, WENT_WRONG = 0, 1, 2


def fails(finding: Finding, fail_on: Severity, min_confidence: Confidence, only_confirmed: bool = False) -> bool:
    """Whether one finding fails the run: severe and certain enough, not suppressed, not refuted by the verifier."""
    status = finding.verdict.status if finding.verdict is not None else None
    return (
        finding.severity >= fail_on
        and finding.confidence >= min_confidence
        and finding.suppressed is None
        and status is not VerdictStatus.REFUTED
        and (not only_confirmed or status is VerdictStatus.CONFIRMED)
    )


def exit_status(
    result: CheckResult,
    fail_on: Severity,
    min_confidence: Confidence,
    exit_zero: bool,
    only_confirmed: bool = False,
    require_regions: bool = False,
) -> int:
    """0 when nothing fails, 1 for findings that fail, diagnostics, or a missing region that was required.

    ``exit_zero`` turns 1 into 0. Status 2, for a run that went wrong, is not decided here.
    """
    failed = (
        bool(result.diagnostics)
        or (require_regions and not result.regions)
        or any(fails(finding, fail_on, min_confidence, only_confirmed) for finding in result.findings)
    )
    return FAILED if failed and not exit_zero else PASSED
