"""``capturelint explain``: one rule's page."""

from __future__ import annotations

import click

from capturelint.cli.streams import write_stdout
from capturelint.errors import UsageError


@click.command("explain")
@click.argument("rule", metavar="RULE")
def command(rule: str) -> int:
    """Show a rule's page: what it flags, why that breaks a graph, examples, what it misses."""
    from capturelint.rulebook import load_rulebook, render_page

    rulebook = load_rulebook()
    codes = sorted(rulebook.resolve(rule))
    if len(codes) > 1:
        raise UsageError(f"{rule} stands for {len(codes)} rules; name one of {', '.join(codes)}")
    write_stdout(render_page(rulebook.rules[codes[0]]))
    return 0
