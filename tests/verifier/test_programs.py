"""Programs that capture by themselves, observed on the emulated device."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from emulated import EmulatedDevice, emulate

from capturelint.verifier.harness import Harness
from capturelint.verifier.hooks import host_calls
from capturelint.verifier.jobs import Job
from capturelint.verifier.observation import Outcome
from capturelint.verifier.program import run_program
from capturelint.verifier.sites import UserCode

CODE = Path(__file__).resolve().parent / "code"
FILE = "programs_under_test.py"
LINES = (CODE / FILE).read_text(encoding="utf-8").splitlines()


def observe(monkeypatch: pytest.MonkeyPatch, run: str, reference: str | None = None) -> Outcome:
    emulate(monkeypatch)
    monkeypatch.syspath_prepend(str(CODE))
    torch.manual_seed(0)
    harness = Harness(
        f"{FILE}:*", run=f"{FILE}:{run}", reference=f"{FILE}:{reference}" if reference is not None else None
    )
    job = Job(0, str(CODE), str(CODE / FILE), 1, run, harness)
    with host_calls():
        return run_program(job, EmulatedDevice(), UserCode((str(CODE),)))  # type: ignore[arg-type]


def line_of(comment: str) -> int:
    (line,) = (number for number, text in enumerate(LINES, 1) if text.endswith(f"  # {comment}"))
    return line


@pytest.mark.parametrize("run", ["right", "buckets"])
def test_right_programs_are_compared_and_nothing_is_seen(monkeypatch: pytest.MonkeyPatch, run: str) -> None:
    outcome = observe(monkeypatch, run)
    assert outcome.problem is None
    assert outcome.observations == []
    assert outcome.comparisons >= 3
    assert outcome.captured == (2 if run == "buckets" else 1)


@pytest.mark.parametrize(
    ("run", "comment", "rule"),
    [
        ("rebinding", "rebound", "CG501"),
        ("swapping_weights", "swapped", "CG501"),
        ("recurrent", "carried", "CG502"),
        ("begin_end", "read", "CG101"),
    ],
)
def test_the_line_to_blame_is_named_alone(monkeypatch: pytest.MonkeyPatch, run: str, comment: str, rule: str) -> None:
    outcome = observe(monkeypatch, run)
    assert outcome.problem is None
    assert {item.line for item in outcome.observations} == {line_of(comment)}
    assert rule in {item.rules[0] for item in outcome.observations}


def test_an_output_that_a_later_replay_overwrites_proves_a_finding_only(monkeypatch: pytest.MonkeyPatch) -> None:
    (observation,) = observe(monkeypatch, "keeping").observations
    assert (observation.line, observation.rules) == (line_of("kept"), ("CG503",))
    assert observation.only_confirms


def test_rows_left_as_they_were_count_where_the_reference_disagrees(monkeypatch: pytest.MonkeyPatch) -> None:
    assert observe(monkeypatch, "partial").observations == []
    outcome = observe(monkeypatch, "partial", "partial_reference")
    assert [(item.line, item.rules[0]) for item in outcome.observations] == [(line_of("tail"), "CG506")]


def test_a_number_of_the_call_counts_where_the_reference_disagrees(monkeypatch: pytest.MonkeyPatch) -> None:
    assert observe(monkeypatch, "per_call").observations == []
    outcome = observe(monkeypatch, "per_call", "per_call_reference")
    assert {(item.line, item.rules[0]) for item in outcome.observations} == {(line_of("number"), "CG601")}
    assert "1.0 at capture, 0.5 at replay" in outcome.observations[0].text


def test_a_counter_goes_on_as_eager_runs_would_have_left_it(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = observe(monkeypatch, "stepping")
    lines = {(item.line, item.rules[0]) for item in outcome.observations}
    assert lines == {(line_of("advanced"), "CG603"), (line_of("used"), "CG601")}


def test_a_reference_that_agrees_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = observe(monkeypatch, "same", "same_reference")
    assert outcome.observations == []
    assert outcome.tried[-1] == "3 steps against the reference"


def test_what_ends_a_program_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    assert observe(monkeypatch, "stops").problem == "the program called sys.exit(4)"
    outcome = observe(monkeypatch, "captures_nothing")
    assert (outcome.problem, outcome.status) == ("the program captured no graph", "unverified")
