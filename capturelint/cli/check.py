"""``capturelint check``: the main job."""

from __future__ import annotations

from pathlib import Path

import click

from capturelint.cli import options
from capturelint.cli.notes import write_notes
from capturelint.cli.output import note, parse_destinations, write_reports
from capturelint.cli.process import keep_until_exit
from capturelint.cli.verifying import harness_options, run_verifier, write_verifier_notes
from capturelint.errors import UsageError
from capturelint.model import Confidence, Severity
from capturelint.report.formats import FORMATS, ReportOptions


@click.command("check")
@options.paths_argument
@click.option("--format", "stdout_format", type=click.Choice(list(FORMATS)), help="Format of the report on stdout.")
@click.option(
    "--output", "outputs", metavar="FORMAT:FILE", multiple=True, help="Write one more report; - is stdout. Repeatable."
)
@options.rule_list_option("--select", "Check only these rules: codes, prefixes or names, comma separated.")
@options.rule_list_option("--ignore", "Leave out these rules.", may_be_empty=True)
@click.option(
    "--min-confidence",
    type=click.Choice([member.value for member in Confidence]),
    help="Report findings at least this sure.  [default: likely]",
)
@click.option(
    "--fail-on",
    type=click.Choice([member.value for member in Severity]),
    help="Exit with 1 for findings at least this severe.  [default: error]",
)
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even when there are findings.")
@options.require_regions_option
@options.config_option
@options.force_exclude_option
@options.jobs_option
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
    stdout_format: str | None,
    outputs: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    min_confidence: str | None,
    fail_on: str | None,
    exit_zero: bool,
    require_regions: bool,
    config_file: Path | None,
    force_exclude: bool,
    jobs: int | None,
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
    from capturelint.check import check_paths
    from capturelint.report.outcome import exit_status
    from capturelint.source.lines import LineReader

    if verify_on_gpu and verify_if_possible:
        raise UsageError("--verify-on-gpu and --verify-if-possible differ where there is no GPU: give one of them")
    if only_confirmed and not (verify_on_gpu or verify_if_possible):
        raise UsageError("--only-confirmed needs --verify-on-gpu or --verify-if-possible, which confirm findings")
    destinations = parse_destinations(stdout_format, outputs)
    run = options.check_options(
        paths,
        config_file=config_file,
        select=select,
        ignore=ignore,
        min_confidence=min_confidence,
        force_exclude=force_exclude,
        jobs=jobs,
    )
    result = check_paths(run)
    keep_until_exit(result)
    verified = None
    if verify_on_gpu or verify_if_possible:
        from capturelint.verifier.parent import NoGpu

        try:
            verified = run_verifier(
                result,
                run,
                harness_files,
                time_limit=time_limit,
                workers=workers,
                memory_limit=memory_limit,
                only_findings=True,
                quiet=quiet,
            )
            result = verified.result
        except NoGpu as error:
            if not verify_if_possible:
                raise
            note(f"not verified: {error}")
    required = require_regions or run.config.require_regions
    write_reports(result, destinations, ReportOptions(LineReader(), verbose=verbose, quiet=quiet), color)
    write_notes(result, paths, required=required, quiet=quiet, config_notes=run.config.notes)
    if verified is not None:
        write_verifier_notes(verified, quiet=quiet)
    if timings:
        for stage, seconds in result.timings.items():
            note(f"{stage:<12} {seconds:8.3f} s")
    return exit_status(
        result,
        Severity(fail_on) if fail_on else run.config.fail_on,
        run.min_confidence,
        exit_zero,
        only_confirmed,
        require_regions=required,
    )
