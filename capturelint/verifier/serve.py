"""What a worker does with a job: loads the user's code, verifies it, and turns what goes wrong into an outcome."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch

from capturelint.verifier.cuda import CudaDevice
from capturelint.verifier.functions import FunctionJob, verify_function
from capturelint.verifier.hooks import host_calls
from capturelint.verifier.importing import ImportProblem, attribute, load_file, prepare_path, resolve
from capturelint.verifier.inputs import Inputs, call_maybe
from capturelint.verifier.jobs import Job
from capturelint.verifier.observation import Outcome
from capturelint.verifier.program import run_program
from capturelint.verifier.sites import UserCode, one_line
from capturelint.verifier.streams import stream_calls

#: failed captures after which a worker is replaced: each can leak a private pool
_MOST_FAILURES = 400

Serve = Callable[[Job], tuple[Outcome, bool]]


@contextmanager
def serving() -> Iterator[Serve]:
    """Puts the wraps in place, and yields the function that serves one job: (outcome, whether to go on)."""
    failures = [0]
    with ExitStack() as stack:
        stack.enter_context(host_calls())
        stack.enter_context(stream_calls())

        def serve(job: Job) -> tuple[Outcome, bool]:
            outcome, device = _serve(job)
            failures[0] += device.failures if device is not None else 0
            gc.collect()
            return outcome, _healthy(outcome) and failures[0] < _MOST_FAILURES

        yield serve


def rehearse() -> None:
    """Tries a small region of our own: what torch loads and sets up at the first use is not the user's time."""

    def region(x: torch.Tensor) -> torch.Tensor:
        y = torch.nn.functional.dropout(x @ x.T, 0.5).softmax(-1)
        return y[y > 0] * y.sum().item() + torch.tensor([1.0], device="cuda")

    user = UserCode((str(Path(__file__).parent),))
    inputs = Inputs({"x": "float32[8, 8]"})
    verify_function(FunctionJob(__file__, 1, "rehearsal", region, inputs), CudaDevice(user), user)


def _serve(job: Job) -> tuple[Outcome, CudaDevice | None]:
    root = Path(job.root)
    user = UserCode(_roots(job))
    device: CudaDevice | None = None
    try:
        os.chdir(root)
        torch.manual_seed(0)
        device = CudaDevice(user)
        device.heal()
        prepare_path(root, job.harness.path if job.harness is not None else ())
        if job.is_program:
            return run_program(job, device, user), device
        function = _function(job, root)
        outcome, _ = verify_function(function, device, user)
        return outcome, device
    except ImportProblem as error:
        return Outcome(problem=str(error), status="unverified"), device
    except SystemExit as error:
        return Outcome(problem=f"the code called sys.exit({error.code!r})"), device
    except torch.cuda.OutOfMemoryError as error:
        return Outcome(problem=f"out of GPU memory: {one_line(error)}"), device
    except MemoryError:
        return Outcome(problem="out of memory"), device
    except Exception as error:
        sites = user.blame(error)
        where = f" at {sites[0]}" if sites else ""
        return Outcome(problem=f"the harness raised {type(error).__name__}: {one_line(error)}{where}"), device


def _roots(job: Job) -> tuple[str, ...]:
    extra = [str((Path(job.root) / item).resolve()) for item in (job.harness.path if job.harness else ())]
    return (str(Path(job.root).resolve()), *extra)


def _function(job: Job, root: Path) -> FunctionJob:
    harness = job.harness
    module = load_file(Path(job.path))
    shown = f"{Path(job.path).name}:{job.name}"
    function = attribute(module, job.name, shown)
    mark: dict[str, Any] = getattr(function, "__capturelint__", {})
    setup = resolve(harness.setup, root) if harness is not None and harness.setup else mark.get("setup")
    vary = resolve(harness.vary, root) if harness is not None and harness.vary else mark.get("vary")
    inputs = harness.inputs if harness is not None and harness.inputs is not None else mark.get("inputs")
    if isinstance(inputs, str) and ":" in inputs:
        inputs = resolve(inputs, root)
    owner = call_maybe(setup) if setup is not None else None
    if owner is not None:
        function = getattr(owner, job.name.rsplit(".", 1)[-1])
    elif "." in job.name and not isinstance(_holder(module, job.name), type(module)):
        raise ImportProblem(f"{shown} is a method: its harness needs `setup`, which returns the object")
    return FunctionJob(job.path, job.line, job.name, function, Inputs(inputs), vary, job.comparisons, job.suspects)


def _holder(module: Any, name: str) -> Any:
    return attribute(module, name.rsplit(".", 1)[0], name)


def _healthy(outcome: Outcome) -> bool:
    """Whether the CUDA context still works."""
    try:
        torch.cuda.synchronize()
        value = torch.ones(8, device="cuda").sum().item()
    except Exception as error:
        if outcome.problem is None:
            outcome.problem = f"the CUDA context broke: {one_line(error)}"
        return False
    return value == 8.0
