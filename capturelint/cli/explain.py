"""``capturelint explain``: one rule's page, or what is known of an operator."""

from __future__ import annotations

import click

from capturelint.cli.completion import complete_rules
from capturelint.cli.streams import write_stdout
from capturelint.errors import UsageError


@click.command("explain")
@click.argument("rule", metavar="RULE", shell_complete=complete_rules)
def command(rule: str) -> int:
    """Show a rule's page: what it flags, why that breaks a graph, examples, what it misses.

    For a dotted name such as torch.linalg.inv: what that operator does to a capture.
    """
    write_stdout(_operator(rule) if "." in rule else _page(rule))
    return 0


def _page(rule: str) -> str:
    from capturelint.rulebook import load_rulebook, render_page

    rulebook = load_rulebook()
    codes = sorted(rulebook.resolve(rule))
    if len(codes) > 1:
        raise UsageError(f"{rule} stands for {len(codes)} rules; name one of {', '.join(codes)}")
    return render_page(rulebook.rules[codes[0]])


def _operator(dotted: str) -> str:
    from capturelint.rulebook.captured import load_captured
    from capturelint.rulebook.op_page import render_operator
    from capturelint.rulebook.ops import load_ops

    text = render_operator(dotted, load_ops(), load_captured())
    if text is None:
        raise UsageError(f"{dotted}: the operator tables do not know it")
    return text
