"""A function from warm-up to verdict, on the emulated device: what is found, on which line, and what is not."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
import torch
from emulated import NOT_PERMITTED, EmulatedDevice

from capturelint.verifier.functions import FunctionJob, verify_function
from capturelint.verifier.inputs import Inputs
from capturelint.verifier.observation import Outcome
from capturelint.verifier.sites import UserCode

#: in a folder of its own: that is the "project" that the verifier looks at
SOURCE = Path(__file__).resolve().parent / "code" / "regions_under_test.py"
_spec = importlib.util.spec_from_file_location("regions_under_test", SOURCE)
assert _spec is not None and _spec.loader is not None
regions = importlib.util.module_from_spec(_spec)
sys.modules["regions_under_test"] = regions
_spec.loader.exec_module(regions)
USER = UserCode((str(SOURCE.parent),))


@pytest.fixture(autouse=True)
def fresh_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "STATE", regions.State())
    torch.manual_seed(0)


def verify(name: str, vary: object = None, suspects: tuple[str, ...] = ()) -> Outcome:
    function = getattr(regions, name)
    inputs = Inputs(regions.INPUTS, "cpu")
    job = FunctionJob(str(SOURCE), 1, name, function, inputs, vary, suspects=suspects)  # type: ignore[arg-type]
    outcome, _ = verify_function(job, EmulatedDevice(), USER)
    return outcome


def marked(name: str) -> set[int]:
    """The lines of a function that carry a comment."""
    code = getattr(regions, name).__code__
    lines = SOURCE.read_text(encoding="utf-8").splitlines()
    return {line for _, _, line in code.co_lines() if line and "  # " in lines[line - 1]}


@pytest.mark.parametrize("name", ["several", "counting", "drawing", "recurrent", "collecting", "looping"])
def test_every_hazard_is_seen_on_its_line_and_nothing_else(name: str) -> None:
    outcome = verify(name)
    assert outcome.problem is None
    assert {observation.line for observation in outcome.observations} == marked(name)
    assert {observation.path for observation in outcome.observations} == {str(SOURCE)}


def test_a_right_function_has_none() -> None:
    outcome = verify("right")
    assert outcome.observations == []
    assert outcome.comparisons == 3
    assert outcome.problem is None


def test_a_capture_error_quotes_what_was_raised() -> None:
    outcome = verify("several")
    assert all(NOT_PERMITTED in observation.text for observation in outcome.observations)
    assert [observation.rules[0] for observation in outcome.observations] == ["CG101", "CG101", "CG401"]
    # a trial without modes, one for each hazard, and one in which all are shielded
    assert outcome.trials == 5


def test_a_frozen_number_shows_both_values() -> None:
    observation = next(item for item in verify("counting").observations if item.rules[0] == "CG601")
    assert observation.text.startswith("3 at capture, 4 at replay")


def test_what_a_finding_suspects_is_changed_without_a_harness_that_says_so() -> None:
    outcome = verify("branching", suspects=("wide",))
    assert [observation.line for observation in outcome.observations] == sorted(marked("branching"))
    assert outcome.tried[-1] == "`STATE.wide` True instead of False"
    assert regions.STATE.wide is False
    assert verify("branching", suspects=("calls",)).observations == []


def test_a_frozen_branch_needs_the_state_that_vary_changes() -> None:
    assert verify("branching").observations == []
    outcome = verify("branching", regions.widen)
    assert [observation.line for observation in outcome.observations] == sorted(marked("branching"))
    assert "vary(5)" in outcome.observations[0].text


def test_a_side_effect_names_a_line_that_reads_it() -> None:
    (observation,) = verify("collecting").observations
    assert observation.rules[0] == "CG603"
    assert "STATE.log" in observation.text
    assert "read at regions_under_test.py:" in observation.text


def test_host_state_is_left_as_the_program_would_have_it() -> None:
    verify("counting")
    # two warm-up runs and the capture that is replayed; trials and comparisons leave no trace
    assert regions.STATE.calls == 3


def test_what_cannot_run_is_a_problem_with_its_line() -> None:
    outcome = verify("failing")
    assert outcome.observations == []
    assert outcome.problem is not None
    assert "ValueError: cannot run at all at regions_under_test.py:" in outcome.problem
