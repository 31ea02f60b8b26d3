"""``capturelint rules``: the catalogue."""

from __future__ import annotations

import click

from capturelint.cli.streams import write_stdout


@click.command("rules")
@click.option("--format", "output_format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(output_format: str) -> int:
    """List every rule: code, name, severity, consequence, summary."""
    from capturelint.report.json import render_rules_json
    from capturelint.rulebook import load_rulebook, render_table

    rules = sorted(load_rulebook().rules.values(), key=lambda rule: rule.code)
    write_stdout(render_rules_json(rules) if output_format == "json" else render_table(rules))
    return 0
