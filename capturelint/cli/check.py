"""``capturelint check``: the main job."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from capturelint.cli import options
from capturelint.cli.adding_ignores import WithOptionalReason, add_ignore_option, check_reason, with_ignores
from capturelint.cli.baseline import baseline_options, with_baseline, write_stale_notes, written
from capturelint.cli.fixing import FixOptions, check_and_fix, fix_options, write_diff
from capturelint.cli.notes import write_notes
from capturelint.cli.output import Reports, note
from capturelint.cli.process import keep_until_exit
from capturelint.cli.progress import Progress
from capturelint.cli.reporting import ReportingCommand
from capturelint.cli.stdin import given_paths, stdin_filename_option
from capturelint.cli.verifying import harness_options, run_verifier, write_verifier_notes
from capturelint.errors import UsageError
from capturelint.model import CheckResult

if TYPE_CHECKING:
    from capturelint.check import CheckOptions
    from capturelint.verifier.run import Verified


class _Check(WithOptionalReason, ReportingCommand):
    """What both make of the command line."""


@click.command("check", cls=_Check)
@options.paths_argument
@stdin_filename_option
@options.format_option
@options.output_option
@options.selection_options
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even when there are findings.")
@click.option(
    "--diff-base", metavar="REV", help="Report only what the changes since REV (a commit, a branch) bring about."
)
@click.option("--statistics", is_flag=True, help="Show how many findings each rule has, in the place of the findings.")
@baseline_options
@add_ignore_option
@fix_options
@options.require_regions_option
@options.config_option
@options.force_exclude_option
@options.jobs_option
@options.cache_options
@options.color_option
@click.option(
    "--verify-on-gpu", is_flag=True, help="Run the regions with findings on a GPU. THIS RUNS THE CODE that is checked."
)
@click.option("--verify-if-possible", is_flag=True, help="The same, where there is a GPU; else check alone.")
@click.option("--only-confirmed", is_flag=True, help="Fail for findings alone that the verifier confirmed.")
@harness_options
@click.option("--verbose", "-v", is_flag=True, help="Show why, and every call on the way.")
@click.option("--quiet", "-q", is_flag=True, help="Show findings and nothing else.")
@click.option("--timings", is_flag=True, help="Show on stderr how long each stage took.")
def command(
    paths: tuple[Path, ...],
    stdin_filename: Path | None,
    stdout_format: str | None,
    outputs: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    min_confidence: str | None,
    fail_on: str | None,
    exit_zero: bool,
    diff_base: str | None,
    statistics: bool,
    baseline_file: Path | None,
    no_baseline: bool,
    update_baseline: bool,
    add_ignore: str | None,
    fix: bool,
    unsafe_fixes: bool,
    diff: bool,
    require_regions: bool,
    config_file: Path | None,
    force_exclude: bool,
    jobs: int | None,
    cache_dir: Path | None,
    no_cache: bool,
    color: str,
    verify_on_gpu: bool,
    verify_if_possible: bool,
    only_confirmed: bool,
    harness_files: tuple[Path, ...],
    time_limit: float,
    workers: int,
    memory_limit: int,
    verbose: bool,
    quiet: bool,
    timings: bool,
) -> int:
    """Check the code that CUDA graphs capture, in files and directories (default: the working directory).

    None of the code that is checked runs, unless --verify-on-gpu or --verify-if-possible says so. The Python that runs
    this limits the syntax that can be read. Exit status: 0 when nothing fails, 1 for findings that fail and files that
    could not be checked, 2 when the run itself went wrong.
    """
    from capturelint.changed import only_changed
    from capturelint.source.changes import changes_since

    with Reports.asked_for(stdout_format, outputs, color, statistics=statistics) as reports:
        if verify_on_gpu and verify_if_possible:
            raise UsageError("--verify-on-gpu and --verify-if-possible differ where there is no GPU: give one of them")
        if only_confirmed and not (verify_on_gpu or verify_if_possible):
            raise UsageError("--only-confirmed needs --verify-on-gpu or --verify-if-possible, which confirm findings")
        paths, contents = given_paths(paths, stdin_filename)
        if add_ignore is not None:
            check_reason(add_ignore, alone=not (contents or update_baseline or diff))
        if diff and update_baseline:
            raise UsageError("--diff writes nothing: it does not go with --update-baseline")
        if contents and (verify_on_gpu or verify_if_possible):
            raise UsageError("what comes from stdin cannot be verified: the verifier imports files")
        if contents and diff_base is not None:
            raise UsageError("--diff-base compares files: what comes from stdin is in none")
        if diff_base is not None and (fix or diff):
            raise UsageError("--diff-base says what changes bring about; fix what it reports without it")
        run = options.check_options(
            paths,
            config_file=config_file,
            select=select,
            ignore=ignore,
            min_confidence=min_confidence,
            fail_on=fail_on,
            force_exclude=force_exclude,
            jobs=jobs,
            no_cache=no_cache,
            cache_dir=cache_dir,
        )
        run = with_baseline(replace(run, contents=contents), baseline_file, off=no_baseline, update=update_baseline)
        changes = changes_since(diff_base, run.root) if diff_base is not None else None
        with Progress(wanted=not quiet) as progress:
            result, fixed = check_and_fix(run, FixOptions(apply=fix, unsafe=unsafe_fixes, diff=diff), progress)
        keep_until_exit(result)
        if fixed is not None and diff:
            return write_diff(fixed, exit_zero=exit_zero)
        if update_baseline:
            result = written(result)
        if changes is not None:
            result = only_changed(result, changes, str(diff_base))
        if add_ignore is not None:
            result = with_ignores(result, add_ignore)
        verified = None
        if verify_on_gpu or verify_if_possible:
            verified = _verified(
                result,
                run,
                harness_files,
                time_limit=time_limit,
                workers=workers,
                memory_limit=memory_limit,
                quiet=quiet,
                if_possible=verify_if_possible,
            )
            result = verified.result if verified is not None else result
        gate = replace(options.gate_of(run, only_confirmed, require_regions), exit_zero=exit_zero)
        reports.write(
            result, options.report_options(run, gate, verbose=verbose, quiet=quiet, unsafe_fixes=unsafe_fixes)
        )
    write_notes(result, paths, required=gate.require_regions, quiet=quiet, config_notes=run.config.notes)
    write_stale_notes(result, quiet=quiet, verbose=verbose)
    if verified is not None:
        write_verifier_notes(verified, quiet=quiet)
    if timings:
        for stage, seconds in result.timings.items():
            note(f"{stage:<12} {seconds:8.3f} s")
    return gate.exit_status(result)


def _verified(
    result: CheckResult, run: CheckOptions, harness_files: tuple[Path, ...], *, if_possible: bool, **limits: Any
) -> Verified | None:
    """The regions with findings run; None where there is no GPU and that is no error."""
    from capturelint.verifier.parent import NoGpu

    try:
        return run_verifier(result, run, harness_files, only_findings=True, **limits)
    except NoGpu as error:
        if not if_possible:
            raise
        note(f"not verified: {error}")
        return None
