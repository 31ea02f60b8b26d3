"""From what was seen to verdicts and exit status."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from capturelint.check import CheckOptions, check_paths
from capturelint.config import Config
from capturelint.model import CheckResult, Confidence, Consequence, Finding, VerdictStatus
from capturelint.report.outcome import Gate
from capturelint.verifier.harness import Harness
from capturelint.verifier.jobs import Job
from capturelint.verifier.observation import CAPTURE_ERROR, STALE, Observation, Outcome
from capturelint.verifier.plan import make_plan
from capturelint.verifier.verdicts import apply

SOURCE = """\
import torch

from capturelint import capture_region

COUNT = {"n": 0}


@capture_region(inputs={"x": "float32[8, 16]"})
def region(x: torch.Tensor) -> torch.Tensor:
    y = x * x.sum().item()
    COUNT["n"] += 1
    return y + 1
"""


@pytest.fixture
def checked(tmp_path: Path) -> CheckResult:
    (tmp_path / "a.py").write_text(SOURCE, encoding="utf-8")
    result = check_paths(CheckOptions((tmp_path,), Config(), ("CG101",), (), Confidence.LIKELY, tmp_path))
    # paths in a result are relative to the working directory
    findings = tuple(
        replace(f, path="a.py", regions=tuple(replace(r, path="a.py") for r in f.regions)) for f in result.findings
    )
    return replace(result, findings=findings, regions=tuple(replace(r, path="a.py") for r in result.regions))


def judge(result: CheckResult, outcome: Outcome, root: Path, harness: tuple[Harness, ...] = ()) -> CheckResult:
    plan = make_plan(result, harness, root, root, 60.0, 3)
    outcome.device = "NVIDIA H200, torch 2.11"
    outcome = Outcome.from_json(outcome.to_json())
    return apply(result, plan, {job.number: outcome for job in plan.jobs}, root, report_new=True)


def test_a_job_knows_what_its_findings_suspect(checked: CheckResult, tmp_path: Path) -> None:
    (job,) = make_plan(checked, (), tmp_path, tmp_path, 60.0, 3).jobs
    assert job.suspects == ()
    stale = replace(
        checked.findings[0],
        consequence=Consequence.STALE_REPLAY,
        why=("`steps` is advanced in Counter.advance (a.py:3)", "`self.wide` is assigned in set_wide (a.py:9)"),
    )
    (job,) = make_plan(replace(checked, findings=(stale,)), (), tmp_path, tmp_path, 60.0, 3).jobs
    assert job.suspects == ("steps", "wide")
    assert Job.from_json(job.to_json()) == job


def verdict(finding: Finding) -> tuple[str, str]:
    assert finding.verdict is not None
    return finding.verdict.status.value, finding.verdict.evidence


def error(root: Path, line: int, rules: tuple[str, ...] = ("CG101", "CG100")) -> Observation:
    return Observation(CAPTURE_ERROR, str(root / "a.py"), line, "capture raised 'not permitted' at this line", rules)


def everything(root: Path) -> set[tuple[str, int]]:
    return {(str(root / "a.py"), line) for line in (10, 11, 12)}


def test_an_error_on_the_line_confirms(checked: CheckResult, tmp_path: Path) -> None:
    result = judge(checked, Outcome(observations=[error(tmp_path, 10)], seen=everything(tmp_path), trials=3), tmp_path)
    (finding,) = result.findings
    assert verdict(finding) == (
        "confirmed",
        "on NVIDIA H200, torch 2.11: capture raised 'not permitted' at this line",
    )
    assert Gate(only_confirmed=True).exit_status(result) == 1


def test_a_line_that_ran_without_one_is_refuted_and_does_not_fail(checked: CheckResult, tmp_path: Path) -> None:
    result = judge(checked, Outcome(seen=everything(tmp_path), trials=2, comparisons=3), tmp_path)
    (finding,) = result.findings
    assert verdict(finding)[0] == "refuted"
    assert "in 2 trials" in verdict(finding)[1]
    assert Gate().exit_status(result) == 0


@pytest.mark.parametrize(
    ("outcome", "status", "said"),
    [
        (Outcome(seen=set(), trials=2), "unreached", "did not run in the region"),
        (Outcome(problem="the worker crashed (SIGSEGV)"), "inconclusive", "the worker crashed (SIGSEGV)"),
        (Outcome(problem="importing a.py raised X", status="unverified"), "unverified", "importing a.py raised X"),
        (Outcome(cut=True, trials=1), "inconclusive", "cannot be shielded"),
    ],
)
def test_other_ends(checked: CheckResult, tmp_path: Path, outcome: Outcome, status: str, said: str) -> None:
    (finding,) = judge(checked, outcome, tmp_path).findings
    assert verdict(finding)[0] == status
    assert said in verdict(finding)[1]


def test_a_finding_without_a_harness_says_what_to_add(checked: CheckResult, tmp_path: Path) -> None:
    regions = tuple(replace(region, kind="torch.cuda.graph") for region in checked.regions)
    findings = tuple(
        replace(f, regions=tuple(replace(r, kind="torch.cuda.graph") for r in f.regions)) for f in checked.findings
    )
    (finding,) = judge(replace(checked, regions=regions, findings=findings), Outcome(), tmp_path).findings
    assert verdict(finding)[0] == "unverified"
    assert "- region: a.py:region" in verdict(finding)[1]


def test_what_the_linter_missed_becomes_a_finding(checked: CheckResult, tmp_path: Path) -> None:
    stale = Observation(STALE, str(tmp_path / "a.py"), 11, "an eager run changes host state here", ("CG603", "CG600"))
    odd = error(tmp_path, 12, ("CG999", "CG100"))
    result = judge(
        checked, Outcome(observations=[error(tmp_path, 10), stale, odd], seen=everything(tmp_path)), tmp_path
    )
    assert [(finding.rule, finding.span.line) for finding in result.findings] == [
        ("CG101", 10),
        ("CG603", 11),
        ("CG100", 12),
    ]
    new = result.findings[1]
    assert (new.path, new.span.column, new.confidence) == ("a.py", 5, Confidence.CERTAIN)
    assert new.verdict is not None and new.verdict.status is VerdictStatus.CONFIRMED


def test_a_silent_divergence_does_not_confirm_a_capture_error(checked: CheckResult, tmp_path: Path) -> None:
    stale = Observation(STALE, str(tmp_path / "a.py"), 10, "3 at capture, 4 at replay", ("CG601", "CG600"))
    result = judge(checked, Outcome(observations=[stale], seen=everything(tmp_path), trials=2), tmp_path)
    assert sorted((finding.rule, verdict(finding)[0]) for finding in result.findings) == [
        ("CG101", "refuted"),
        ("CG601", "confirmed"),
    ]


def test_bare_divergences_give_way_to_causes() -> None:
    cause = Observation(STALE, "a.py", 3, "rebound", ("CG501", "CG505"))
    bare = Observation(STALE, "a.py", 9, "differs", ("CG600",), weak=True)
    freed = Observation("corruption", "a.py", 7, "freed", ("CG504", "CG600"))
    outcome = Outcome(observations=[bare, freed, cause])
    outcome.settle()
    assert outcome.observations == [cause]
    alone = Outcome(observations=[bare])
    alone.settle()
    assert alone.observations == [bare]


def as_rule(checked: CheckResult, rule: str, line: int) -> CheckResult:
    span = replace(checked.findings[0].span, line=line, end_line=line)
    return replace(checked, findings=(replace(checked.findings[0], rule=rule, span=span),))


def test_unjoined_work_is_one_place_from_the_fork_to_the_work(checked: CheckResult, tmp_path: Path) -> None:
    fork = (str(tmp_path / "a.py"), 10)
    seen = replace(error(tmp_path, 12, ("CG702", "CG100")), also=(fork,))
    (finding,) = judge(as_rule(checked, "CG702", 11), Outcome([seen]), tmp_path).findings
    assert verdict(finding)[0] == "confirmed"


def test_what_lacks_a_warm_up_is_not_refuted_after_one(checked: CheckResult, tmp_path: Path) -> None:
    outcome = Outcome([], seen={(str(tmp_path / "a.py"), 10)}, trials=2)
    (finding,) = judge(as_rule(checked, "CG801", 10), outcome, tmp_path).findings
    assert verdict(finding)[0] == "inconclusive"
    (finding,) = judge(as_rule(checked, "CG101", 10), outcome, tmp_path).findings
    assert verdict(finding)[0] == "refuted"
