"""``capturelint.verify()``: one function, verified in this process, as tests do it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capturelint.errors import UsageError
from capturelint.verifier.observation import Observation, Outcome


@dataclass(frozen=True)
class Report:
    """What became of one function. True where it was verified and nothing went wrong."""

    name: str
    device: str
    observations: tuple[Observation, ...]
    problem: str | None
    trials: int
    comparisons: int
    tried: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float

    def __bool__(self) -> bool:
        return not self.observations and self.problem is None

    def __str__(self) -> str:
        head = f"{self.name} on {self.device}: {self.trials} trials, {self.comparisons} replays compared"
        lines = [head]
        for item in self.observations:
            lines.append(f"  {Path(item.path).name}:{item.line}: {item.rules[0]} {item.consequence}: {item.text}")
        if self.problem is not None:
            lines.append(f"  not verified to the end: {self.problem}")
        if bool(self):
            lines.append(f"  no hazard seen ({'; '.join(self.tried) or 'nothing varied'})")
        return "\n".join(lines)


def verify(
    function: Callable[..., Any],
    *,
    inputs: Any = None,
    vary: Callable[..., Any] | None = None,
    comparisons: int = 3,
    roots: tuple[str, ...] = (),
) -> Report:
    """Captures ``function`` on the current CUDA device, replays it and compares with eager runs.

    It runs here and now, in this process: a hang hangs, a crash crashes. ``inputs`` is a mapping from parameter to
    tensor spec, or a function of a seed; ``vary`` gets a number and changes host state between capture and replay;
    both default to those of ``@capture_region``. ``roots`` are directories whose files count as the caller's code: by
    default that of the function's file. Raises UsageError without torch or CUDA, and for a bad spec.
    """
    try:
        import torch
    except ImportError as error:
        raise UsageError("capturelint.verify needs torch") from error
    if not torch.cuda.is_available():
        raise UsageError(f"capturelint.verify needs a CUDA device; torch {torch.__version__} finds none")
    from capturelint.verifier.cuda import CudaDevice
    from capturelint.verifier.sites import UserCode

    path, line = _place(function)
    user = UserCode(roots or (str(Path(path).resolve().parent),))
    return _report(function, path, line, inputs, vary, comparisons, CudaDevice(user), user)


def _report(
    function: Callable[..., Any],
    path: str,
    line: int,
    inputs: Any,
    vary: Callable[..., Any] | None,
    comparisons: int,
    device: Any,
    user: Any,
) -> Report:
    from contextlib import ExitStack

    from capturelint.verifier.functions import FunctionJob, verify_function
    from capturelint.verifier.hooks import host_calls
    from capturelint.verifier.inputs import Inputs
    from capturelint.verifier.streams import stream_calls

    mark = getattr(function, "__capturelint__", {})
    source = Inputs(inputs if inputs is not None else mark.get("inputs"), getattr(device, "kind", "cuda"))
    name = getattr(function, "__qualname__", repr(function))
    job = FunctionJob(path, line, name, function, source, vary or mark.get("vary"), comparisons)
    with ExitStack() as stack:
        stack.enter_context(host_calls())
        stack.enter_context(stream_calls())
        outcome, _ = verify_function(job, device, user)
    return _of(name, outcome)


def _of(name: str, outcome: Outcome) -> Report:
    return Report(
        name,
        outcome.device,
        tuple(outcome.observations),
        outcome.problem,
        outcome.trials,
        outcome.comparisons,
        tuple(outcome.tried),
        tuple(outcome.notes),
        outcome.seconds,
    )


def _place(function: Callable[..., Any]) -> tuple[str, int]:
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        target = getattr(function, "forward", None) or getattr(function, "__call__", None)  # noqa: B004
        code = getattr(getattr(target, "__func__", target), "__code__", None)
    if code is None:
        raise UsageError(f"{function!r} has no Python code to verify")
    return code.co_filename, code.co_firstlineno
