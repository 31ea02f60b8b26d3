"""What a shell offers for a rule."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


def complete_rules(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Codes, and names once something of one is typed; of a list the part after the last comma."""
    from capturelint.rulebook import load_rulebook

    before, comma, part = incomplete.rpartition(",")
    rules = sorted(load_rulebook().rules.values(), key=lambda rule: rule.code)
    codes = [(rule.code, rule.summary) for rule in rules if rule.code.startswith(part)]
    names = [(rule.name, rule.summary) for rule in rules if part and rule.name.startswith(part)]
    return [CompletionItem(f"{before}{comma}{text}", help=summary) for text, summary in (*codes, *names)]
