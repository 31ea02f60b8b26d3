"""``capturelint regions``: what is captured, and what that reaches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from capturelint.cli import options
from capturelint.cli.notes import write_notes
from capturelint.cli.output import Destination, Reports
from capturelint.cli.process import keep_until_exit
from capturelint.cli.progress import Progress
from capturelint.cli.stdin import given_paths, stdin_filename_option
from capturelint.report.formats import REGIONS
from capturelint.report.options import ReportOptions
from capturelint.report.outcome import FAILED, PASSED


@click.command("regions")
@options.paths_argument
@stdin_filename_option
@click.option("--format", "output_format", type=click.Choice(list(REGIONS)), default="text", show_default=True)
@options.require_regions_option
@options.config_option
@options.force_exclude_option
@options.jobs_option
@options.cache_options
@options.color_option
def command(
    paths: tuple[Path, ...],
    stdin_filename: Path | None,
    output_format: str,
    require_regions: bool,
    config_file: Path | None,
    force_exclude: bool,
    jobs: int | None,
    cache_dir: Path | None,
    no_cache: bool,
    color: str,
) -> int:
    """List every captured region, the functions that it enters, and the calls that could not be followed."""
    from capturelint.check import check_paths

    with Reports([Destination(REGIONS[output_format], None)], color) as reports:
        paths, contents = given_paths(paths, stdin_filename)
        run = options.check_options(
            paths,
            config_file=config_file,
            force_exclude=force_exclude,
            jobs=jobs,
            no_cache=no_cache,
            cache_dir=cache_dir,
        )
        with Progress() as progress:
            result = check_paths(replace(run, contents=contents), progress)
        keep_until_exit(result)
        required = require_regions or run.config.require_regions
        reports.write(result, ReportOptions())
    write_notes(result, paths, required=required, quiet=False, config_notes=run.config.notes)
    return FAILED if result.diagnostics or (required and not result.regions) else PASSED
