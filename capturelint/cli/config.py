"""``capturelint config``: the settings as they come out, and where each comes from."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from capturelint.cli import options
from capturelint.cli.output import note
from capturelint.cli.streams import write_stdout
from capturelint.cli.terminal import use_color


@click.command("config")
@options.paths_argument
@options.selection_options
@options.config_option
@click.option("--format", "output_format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--schema", is_flag=True, help="Show the JSON Schema of the configuration, and nothing else.")
@options.color_option
def command(
    paths: tuple[Path, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    min_confidence: str | None,
    fail_on: str | None,
    config_file: Path | None,
    output_format: str,
    schema: bool,
    color: str,
) -> int:
    """Show the settings that `check` would use, and where each comes from: a line of a file, an option, the default.

    For one file, the settings that count for it: `per-file-ignores` and `overrides` are applied.
    """
    from capturelint.report.resolved_text import render_resolved, render_resolved_json
    from capturelint.resolved import resolve
    from capturelint.rulebook import load_rulebook
    from capturelint.source.files import display_path

    if schema:
        from capturelint.config.schema import render_schema

        write_stdout(render_schema())
        return 0
    run = options.check_options(
        paths, config_file=config_file, select=select, ignore=ignore, min_confidence=min_confidence, fail_on=fail_on
    )
    given = {
        name: f"--{name}"
        for name, value in (
            ("select", select), ("ignore", ignore), ("min-confidence", min_confidence), ("fail-on", fail_on)
        )
        if value
    }  # fmt: skip
    one_file = display_path(paths[0]) if len(paths) == 1 and not paths[0].is_dir() else None
    resolved = resolve(load_rulebook(), run, given, one_file)
    if output_format == "json":
        write_stdout(render_resolved_json(resolved))
    else:
        write_stdout(render_resolved(resolved, color=use_color(color, sys.stdout)))
    for text in run.config.notes:
        note(f"note: {text}")
    return 0
