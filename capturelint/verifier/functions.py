"""Verifying a function: warm up, examine, then replay on fresh inputs and varied host state."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from capturelint.verifier.device import Device
from capturelint.verifier.differential import Comparer
from capturelint.verifier.hooks import compiled_calls
from capturelint.verifier.host import snapshot
from capturelint.verifier.inputs import Inputs, call_maybe, refill
from capturelint.verifier.naming import seen
from capturelint.verifier.observation import CAPTURE_ERROR, Outcome
from capturelint.verifier.region import FunctionRegion, another
from capturelint.verifier.sites import Site, UserCode, first_error, one_line
from capturelint.verifier.trial import Examination, Examiner

#: numbers that ``vary`` is called with, one for each comparison
VARIED = (5, 2, 7, 1)
_MOST_CHANGED = 6


@dataclass
class FunctionJob:
    """A function to verify, with what its harness says about it."""

    path: str
    line: int
    name: str
    function: Callable[..., Any]
    inputs: Inputs
    vary: Callable[..., Any] | None = None
    comparisons: int = 3
    #: host names to change, one after the other, once the comparisons with ``vary`` are done
    suspects: tuple[str, ...] = ()


def verify_function(job: FunctionJob, device: Device, user: UserCode) -> tuple[Outcome, Examination | None]:
    """Runs all trials of one function."""
    outcome = Outcome(device=device.name)
    start = time.perf_counter()
    static = job.inputs.make(1)
    region = FunctionRegion(job.path, job.line, job.name, job.function, *static)
    if _compiles_itself(job.function):
        _first_compile(region, device, user, outcome)
    try:
        for _ in range(2):
            device.warm_up(region.call)
    except Exception as error:
        sites = user.blame(error)
        where = f" at {sites[0]}" if sites else ""
        outcome.problem = f"the warm-up run, eager, raised {type(error).__name__}: {one_line(error)}{where}"
        return outcome, None
    refill(static, job.inputs.make(1))
    exam = Examiner(device, user).examine(region, leave_host=True)
    for observation in exam.observations:
        outcome.add(observation)
    outcome.seen |= exam.lines.seen
    comparer = Comparer(device, user)
    _compare(job, static, exam, comparer, outcome)
    _change_suspects(job, exam, comparer, user, outcome)
    outcome.settle()
    outcome.trials, outcome.trial_seconds = exam.trials, exam.seconds
    outcome.captured = 1
    outcome.cut = exam.capture is None and bool(exam.observations)
    outcome.notes.extend(exam.notes)
    outcome.seconds = time.perf_counter() - start
    return outcome, exam


def _compare(job: FunctionJob, static: Any, exam: Examination, comparer: Comparer, outcome: Outcome) -> None:
    for number in range(job.comparisons):
        seed = number + 2
        try:
            fresh = job.inputs.make(seed)
            # what is shielded answers for the recorded indices and masks; others could reach out of bounds
            problem = refill(static, fresh, only_floats=bool(exam.shields.answers))
            if job.vary is not None:
                call_maybe(job.vary, VARIED[number % len(VARIED)])
        except Exception as error:
            problem = f"the harness raised {type(error).__name__}: {one_line(error)}"
        if problem is not None:
            outcome.notes.append(problem)
            return
        when = f"inputs of seed {seed}" + (f", vary({VARIED[number % len(VARIED)]})" if job.vary else "")
        _compare_once(exam, comparer, when, outcome)


def _compare_once(exam: Examination, comparer: Comparer, when: str, outcome: Outcome) -> None:
    comparison = comparer.compare(exam, when)
    if comparison.problem is not None:
        outcome.notes.append(comparison.problem)
        return
    if comparison.nondeterministic:
        outcome.notes.append("two eager runs on the same inputs did not agree")
        outcome.problem, outcome.status = "two eager runs on the same inputs did not agree", "inconclusive"
    outcome.comparisons += 1
    outcome.tried.append(when)
    for observation in comparison.observations:
        outcome.add(observation)


def _change_suspects(job: FunctionJob, exam: Examination, comparer: Comparer, user: UserCode, outcome: Outcome) -> None:
    """Flips or moves each number that a finding says can change, and compares; then puts it back."""
    if not job.suspects or outcome.problem is not None:
        return
    reached = [
        (slot, value) for slot, value in snapshot(exam.region.roots(), user).slots() if slot.word in job.suspects
    ]
    for slot, value in reached[:_MOST_CHANGED]:
        changed = another(value)
        if changed is None or slot.kind not in ("attribute", "item"):
            continue
        slot.put(changed)
        try:
            _compare_once(exam, comparer, f"`{slot.name}` {changed!r} instead of {value!r}", outcome)
        finally:
            slot.put(value)


def _compiles_itself(function: Any) -> bool:
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code is not None and "compile" in code.co_names and "torch" in code.co_names


def _first_compile(region: FunctionRegion, device: Device, user: UserCode, outcome: Outcome) -> None:
    """The region calls ``torch.compile`` itself: captures it before any other run, which would compile for it."""
    import torch

    torch._dynamo.reset()
    capture = device.capture(region.call)
    torch._dynamo.reset()
    if capture.error is not None:
        path, line = next(iter(reversed(compiled_calls())), (region.path, region.line))
        sites = user.blame(capture.error) or (Site(path, line, region.name),)
        message = one_line(first_error(capture.error))
        text = f"the region compiles a function itself; captured before any other run of it, it raised '{message}'"
        outcome.add_maybe(seen(CAPTURE_ERROR, sites, text, ("CG801", "CG100")))
