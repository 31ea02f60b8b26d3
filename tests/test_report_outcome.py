from __future__ import annotations

from dataclasses import replace

import pytest

from capturelint.fingerprint import fingerprint
from capturelint.model import (
    CheckResult,
    Confidence,
    Consequence,
    Diagnostic,
    Finding,
    Region,
    Severity,
    Span,
    Suppression,
    Verdict,
    VerdictStatus,
)
from capturelint.report.outcome import Gate

FINDING = Finding(
    rule="CG101",
    name="host-scalar-read",
    path="a.py",
    span=Span(1, 1, 1, 2),
    message="m",
    label="l",
    help="h",
    severity=Severity.ERROR,
    confidence=Confidence.LIKELY,
    consequence=Consequence.CAPTURE_ERROR,
)


def status(
    *findings: Finding,
    fail_on: Severity = Severity.ERROR,
    min_confidence: Confidence = Confidence.LIKELY,
    exit_zero: bool = False,
    only_confirmed: bool = False,
) -> int:
    gate = Gate(fail_on, min_confidence, only_confirmed, exit_zero=exit_zero)
    return gate.exit_status(CheckResult(findings=findings))


def with_verdict(verdict: VerdictStatus) -> Finding:
    return replace(FINDING, verdict=Verdict(verdict, "evidence"))


def test_findings() -> None:
    assert status() == 0
    assert status(FINDING) == 1
    assert status(FINDING, exit_zero=True) == 0


def test_severity() -> None:
    warning = replace(FINDING, severity=Severity.WARNING)
    assert status(warning) == 0
    assert status(warning, fail_on=Severity.WARNING) == 1
    assert status(FINDING, fail_on=Severity.WARNING) == 1


def test_confidence() -> None:
    assert status(FINDING, min_confidence=Confidence.CERTAIN) == 0
    assert status(replace(FINDING, confidence=Confidence.POSSIBLE)) == 0
    assert status(replace(FINDING, confidence=Confidence.POSSIBLE), min_confidence=Confidence.POSSIBLE) == 1


def test_suppressed() -> None:
    assert status(replace(FINDING, suppressed=Suppression("inline"))) == 0


@pytest.mark.parametrize(
    ("verdict", "usual", "only_confirmed"),
    [
        (VerdictStatus.CONFIRMED, 1, 1),
        (VerdictStatus.REFUTED, 0, 0),
        (VerdictStatus.UNREACHED, 1, 0),
        (VerdictStatus.INCONCLUSIVE, 1, 0),
        (VerdictStatus.UNVERIFIED, 1, 0),
    ],
)
def test_verdicts(verdict: VerdictStatus, usual: int, only_confirmed: int) -> None:
    assert status(with_verdict(verdict)) == usual
    assert status(with_verdict(verdict), only_confirmed=True) == only_confirmed


def test_a_finding_without_verdict_is_not_confirmed() -> None:
    assert status(FINDING, only_confirmed=True) == 0


def test_diagnostics_fail() -> None:
    result = CheckResult(diagnostics=(Diagnostic("a.py", 1, "invalid syntax"),))
    assert Gate().exit_status(result) == 1
    assert Gate(exit_zero=True).exit_status(result) == 0


def test_required_regions() -> None:
    none, some = CheckResult(), CheckResult(regions=(Region("comment", "a.py", 1, "f"),))
    assert Gate(require_regions=True).exit_status(none) == 1
    assert Gate(require_regions=True).exit_status(some) == 0


def test_fingerprint_ignores_layout_only() -> None:
    def of(
        text: str = "f(x.item(), y)", rule: str = "CG101", path: str = "a.py", scope: str = "A.f", n: int = 0
    ) -> str:
        return fingerprint(rule, path, scope, text, n)

    assert of() == of("f(\n    x.item(),\n    y,\n)")
    assert len({of(), of("f(x.item())"), of(rule="CG102"), of(path="b.py"), of(scope="A.g"), of(n=1)}) == 6
    assert of() == "87a39b81ff7e2438"  # baselines hold such values: changing it breaks them
    assert len(of()) == 16
