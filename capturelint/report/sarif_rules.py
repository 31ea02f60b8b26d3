"""What a SARIF report says about rules: their page, as viewers show it beside a finding."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from capturelint.model import Consequence
from capturelint.report.options import ReportOptions
from capturelint.rulebook import Rule, load_rulebook, render_page


def descriptors(codes: Collection[str], options: ReportOptions) -> list[dict[str, Any]]:
    """One a rule, by code. Rules without a result are left out: to load all their pages would take seconds."""
    return [describe(code, options) for code in sorted(codes)]


def describe(code: str, options: ReportOptions) -> dict[str, Any]:
    """One rule. A code that the rulebook does not know has only itself to show."""
    rule = load_rulebook().get(code)
    if rule is None:
        return {"id": code}
    page = rule.page
    described: dict[str, Any] = {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": page.what_it_flags},
        "help": {"text": render_page(rule), "markdown": _markdown(rule)},
        "defaultConfiguration": {"level": rule.severity.value},
        "properties": {
            "tags": _tags(rule),
            "problem.severity": rule.severity.value,
        },
    }
    if (url := options.url_of(rule.code, rule.name)) is not None:
        described["helpUri"] = url
    return described


def _tags(rule: Rule) -> list[str]:
    return ["cuda-graphs"] if rule.consequence is Consequence.NONE else ["cuda-graphs", rule.consequence.value]


def _markdown(rule: Rule) -> str:
    """The page's prose and its first examples; ``capturelint explain`` has the rest."""
    page = rule.page
    parts = [
        f"# {rule.code} {rule.name}",
        rule.summary[:1].upper() + rule.summary[1:] + ".",
        "## What it flags",
        page.what_it_flags,
        "## Why it breaks a graph",
        page.why_it_breaks_a_graph,
    ]
    for heading, examples in (("Wrong", page.bad), ("Right", page.good)):
        for example in examples[:1]:
            parts.append(f"## {heading}: {example.title}\n\n```python\n{example.code.rstrip()}\n```")
    parts += ["## When it is fine", page.when_it_is_fine]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"
