"""What the commands that verify share: options, the run, and the notes about it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from capturelint.cli.output import note

if TYPE_CHECKING:
    from capturelint.check import CheckOptions
    from capturelint.model import CheckResult
    from capturelint.verifier.run import Verified

_F = TypeVar("_F", bound=Callable[..., Any])


def _a_number(_context: click.Context, _option: click.Parameter, value: float) -> float:
    if math.isnan(value):  # which no range refuses
        raise click.BadParameter("nan is not a number of seconds")
    return value


def harness_options(command: _F) -> _F:
    """Adds the options about harnesses and workers."""
    for option in reversed(
        (
            click.option(
                "--harness",
                "harness_files",
                metavar="FILE",
                multiple=True,
                type=click.Path(path_type=Path, exists=True, dir_okay=False),
                help="Read harness entries from this YAML file too. Repeatable.",
            ),
            click.option(
                "--time-limit",
                metavar="SECONDS",
                type=click.FloatRange(min=1, max=86400),
                callback=_a_number,
                default=120.0,
                show_default=True,
                help="For one region on the GPU.",
            ),
            click.option(
                "--workers",
                metavar="N",
                type=click.IntRange(min=1),
                default=1,
                show_default=True,
                help="Worker processes on each GPU.",
            ),
            click.option(
                "--memory-limit",
                metavar="GIB",
                type=click.IntRange(min=1),
                default=64,
                show_default=True,
                help="Host memory of one worker.",
            ),
        )
    ):
        command = option(command)
    return command


def run_verifier(
    result: CheckResult,
    run: CheckOptions,
    harness_files: Sequence[Path],
    *,
    time_limit: float,
    workers: int,
    memory_limit: int,
    only_findings: bool = False,
    quiet: bool = False,
) -> Verified:
    """Runs the verifier for a finished check, with progress on a terminal. Raises NoGpu and ConfigError."""
    from capturelint.verifier.run import VerifyOptions, harness_of, verify_result

    options = VerifyOptions(
        root=run.root,
        base=Path.cwd(),
        paths=run.paths,
        harness=harness_of(run.root, run.config.harness, harness_files),
        time_limit=time_limit,
        workers_per_gpu=workers,
        memory_limit=memory_limit << 30,
        only_findings=only_findings,
        progress=_progress if not quiet and sys.stderr.isatty() else None,
    )
    return verify_result(result, options)


def _progress(done: int, total: int, name: str) -> None:
    click.echo(f"\r\033[Kverified {done} of {total} regions: {name}", err=True, nl=done == total)


def write_verifier_notes(verified: Verified, *, quiet: bool) -> None:
    """What there is to say about the run itself, on stderr."""
    for line in verified.problems():
        note(line)
    if quiet:
        return
    outcomes = verified.outcomes.values()
    trials = [seconds for outcome in outcomes for seconds in outcome.trial_seconds]
    per_trial = f", {1e3 * sum(trials) / len(trials):.1f} ms a trial" if trials else ""
    compared = sum(outcome.comparisons for outcome in outcomes)
    if verified.ran.device:
        note(
            f"verified {len(verified.outcomes)} regions on {verified.ran.device} in {verified.ran.seconds:.1f} s:"
            f" {len(trials)} trials{per_trial}, {compared} replays compared"
        )
    for (path, number), text in sorted(verified.plan.missing.items()):
        note(f"{path}:{number}: not verified: {text}")
