"""Verifying a program that captures by itself: runs it observed, then holds its results against a reference."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from capturelint.verifier import naming
from capturelint.verifier.cuda import CudaDevice
from capturelint.verifier.importing import resolve
from capturelint.verifier.jobs import Job
from capturelint.verifier.lines import tracing
from capturelint.verifier.observation import Observation, Outcome
from capturelint.verifier.observe import Observer, observing
from capturelint.verifier.record import current
from capturelint.verifier.region import tensors_of
from capturelint.verifier.sites import Site, UserCode, one_line
from capturelint.verifier.tolerance import difference
from capturelint.verifier.traffic import Traffic, following
from capturelint.verifier.watching import Watch


def run_program(job: Job, device: CudaDevice, user: UserCode) -> Outcome:
    """Runs the program of a job under observation."""
    assert job.harness is not None and job.harness.run is not None
    root = Path(job.root)
    outcome = Outcome(device=device.name)
    start = time.perf_counter()
    run = resolve(job.harness.run, root)
    device.heal()
    watch = Watch(user, outcome.add_maybe)
    observer = Observer(device, user, outcome, watch)
    traffic = observer.traffic = Traffic(
        device, user, lambda found: _add_traffic(outcome, found), lambda: observer.busy or current() is not None
    )

    returned: list[Site | None] = [None]

    def leaving(frame: Any) -> None:
        watch.leave(frame)
        observer.forget(frame)
        # a generator that drives the program "returns" whenever it yields
        driving = frame.f_code.co_flags & inspect.CO_GENERATOR
        if not driving and frame.f_code.co_filename in observer.files():
            returned[0] = Site(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)

    results: list[list[torch.Tensor]] = []
    kept: list[tuple[list[torch.Tensor], Site | None]] = []
    try:
        with ExitStack() as stack:
            stack.enter_context(observing(observer))
            stack.enter_context(following(traffic))
            lines = stack.enter_context(tracing(user, watch.after_line, leaving))
            outcome.ran = lines.seen
            for result in _steps(run):
                results.append([tensor.detach().clone() for tensor in tensors_of(result)])
                kept.append((tensors_of(result), returned[0]))
            _look_back(kept, results, outcome)
    except SystemExit as error:
        outcome.problem = f"the program called sys.exit({error.code!r})"
    except Exception as error:
        sites = user.blame(error)
        where = f" at {sites[0]}" if sites else ""
        outcome.problem = f"the program raised {type(error).__name__}: {one_line(error)}{where}"
    if outcome.captured == 0 and outcome.problem is None:
        outcome.problem, outcome.status = "the program captured no graph", "unverified"
    if job.harness.reference is None or outcome.problem is not None:
        outcome.observations[:] = [item for item in outcome.observations if item.assumed != "names"]
    else:
        _against_reference(job, root, results, outcome)
    outcome.settle()
    outcome.seconds = time.perf_counter() - start
    return outcome


def _look_back(
    kept: list[tuple[list[torch.Tensor], Site | None]], results: list[list[torch.Tensor]], outcome: Outcome
) -> None:
    """Whether what a step returned still holds the same after the later ones."""
    for number, ((tensors, site), copies) in enumerate(zip(kept[:-1], results, strict=False), 1):
        changed = any(difference(now, then) is not None for now, then in zip(tensors, copies, strict=True))
        if changed and site is not None:
            outcome.add_maybe(naming.output_overwritten(site, number))


def _add_traffic(outcome: Outcome, found: Observation | None) -> None:
    """Rows left as they were may be meant so: that counts where the program's results are wrong as well."""
    if found is not None:
        outcome.add(replace(found, assumed="names") if "CG506" in found.rules else found)


def _steps(run: Any) -> Iterator[Any]:
    made = run()
    if inspect.isgenerator(made):
        yield from made
    else:
        yield made


def _against_reference(job: Job, root: Path, results: list[list[torch.Tensor]], outcome: Outcome) -> None:
    assert job.harness is not None and job.harness.reference is not None
    try:
        wanted = [tensors_of(result) for result in _steps(resolve(job.harness.reference, root))]
    except Exception as error:
        outcome.notes.append(f"the reference raised {type(error).__name__}: {one_line(error)}")
        return
    for number, (ours, theirs) in enumerate(zip(results, wanted, strict=False), 1):
        for one, other in zip(ours, theirs, strict=False):
            text = difference(one, other.detach())
            if text is not None:
                outcome.notes.append(f"step {number} differs from the reference: {text}")
                return
    # the reference agrees, so nothing that was assumed holds
    outcome.observations[:] = [observation for observation in outcome.observations if not observation.assumed]
    outcome.tried.append(f"{len(results)} steps against the reference")
