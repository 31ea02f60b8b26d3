"""``capturelint verify``: runs captured regions on a GPU."""

from __future__ import annotations

import json
from pathlib import Path

import click

from capturelint.cli import options
from capturelint.cli.baseline import with_baseline
from capturelint.cli.notes import write_notes
from capturelint.cli.output import Reports, note
from capturelint.cli.reporting import ReportingCommand
from capturelint.cli.streams import write_stdout
from capturelint.cli.verifying import harness_options, run_verifier, write_verifier_notes
from capturelint.errors import UsageError


@click.command("verify", cls=ReportingCommand)
@options.paths_argument
@click.option("--init", "init", is_flag=True, help="Write a harness file for the regions found, and run nothing.")
@harness_options
@options.format_option
@options.output_option
@click.option("--only-confirmed", is_flag=True, help="Fail for confirmed findings alone.")
@click.option(
    "--outcomes", metavar="FILE", type=click.Path(path_type=Path), help="Write what each region gave, as JSON."
)
@options.require_regions_option
@options.config_option
@options.force_exclude_option
@options.jobs_option
@options.color_option
@click.option("--verbose", "-v", is_flag=True, help="Show why, and every call on the way.")
@click.option("--quiet", "-q", is_flag=True, help="Show findings and nothing else.")
def command(
    paths: tuple[Path, ...],
    init: bool,
    harness_files: tuple[Path, ...],
    time_limit: float,
    workers: int,
    memory_limit: int,
    stdout_format: str | None,
    outputs: tuple[str, ...],
    only_confirmed: bool,
    outcomes: Path | None,
    require_regions: bool,
    config_file: Path | None,
    force_exclude: bool,
    jobs: int | None,
    color: str,
    verbose: bool,
    quiet: bool,
) -> int:
    """Run every captured region on a GPU, those without findings too, and give each finding a verdict.

    THIS RUNS THE CODE that it verifies, in worker processes. Never use it on code that you would not run yourself.
    Exit status: as for `check`; 2 where there is no GPU.
    """
    from capturelint.check import check_paths

    with Reports.asked_for(stdout_format, outputs, color) as reports:
        run = options.check_options(paths, config_file=config_file, force_exclude=force_exclude, jobs=jobs)
        run = with_baseline(run, None, off=False, update=False)
        result = check_paths(run)
        if init:
            return _init(run.root, run.config.harness, result.regions)
        verified = run_verifier(
            result, run, harness_files, time_limit=time_limit, workers=workers, memory_limit=memory_limit, quiet=quiet
        )
        gate = options.gate_of(run, only_confirmed, require_regions)
        reports.write(verified.result, options.report_options(run, gate, verbose=verbose, quiet=quiet))
    write_notes(verified.result, paths, required=gate.require_regions, quiet=quiet, config_notes=run.config.notes)
    write_verifier_notes(verified, quiet=quiet)
    if outcomes is not None:
        document = [
            {"path": verified.plan.regions[number][0].path, "name": verified.plan.regions[number][0].name}
            | outcome.to_json()
            for number, outcome in sorted(verified.outcomes.items())
        ]
        # relative paths, as everywhere in reports
        text = json.dumps(document, indent=1).replace(f"{Path.cwd()}/", "")
        outcomes.write_text(text + "\n", encoding="utf-8")
    return gate.exit_status(verified.result)


def _init(root: Path, configured: tuple[object, ...], regions: tuple[object, ...]) -> int:
    from capturelint.verifier.harness import FILE_NAME
    from capturelint.verifier.skeleton import skeleton

    target = root / FILE_NAME
    if target.exists():
        raise UsageError(f"{FILE_NAME} is there already")
    text = skeleton(regions, root, Path.cwd(), configured)  # type: ignore[arg-type]
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {FILE_NAME}: {error.strerror or error}") from error
    write_stdout(text)
    note(f"written to {FILE_NAME}: fill in what it guesses")
    return 0
