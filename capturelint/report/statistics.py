"""Counts a rule: where a code base stands, and what to look at first."""

from __future__ import annotations

import json
from collections import Counter

from capturelint.model import CheckResult, Finding
from capturelint.report.json import VERSION
from capturelint.report.options import ReportOptions
from capturelint.report.style import Style
from capturelint.report.text import footer


def render_statistics(result: CheckResult, options: ReportOptions) -> str:
    """One line a rule with findings that are not suppressed, most first, and the report's closing line."""
    rows = _rows(result)
    style = Style(options.color)
    width = max((len(str(number)) for _, number in rows), default=0)
    lines = [f"{number:>{width}}  {style.severity(first.rule, first.severity)}  {first.name}" for first, number in rows]
    if not options.quiet:
        lines.append(footer(result, options, style))
    return "".join(f"{line}\n" for line in lines)


def render_statistics_json(result: CheckResult, options: ReportOptions) -> str:
    """The same for tools."""
    entries = [
        {"rule": first.rule, "name": first.name, "severity": first.severity.value, "count": number}
        for first, number in _rows(result)
    ]
    errors = [] if result.failure is None else [{"kind": result.failure.kind, "message": result.failure.message}]
    return json.dumps({"version": VERSION, "statistics": entries, "errors": errors}, indent=1) + "\n"


def _rows(result: CheckResult) -> list[tuple[Finding, int]]:
    """An example of each rule, and how often it is found."""
    counted = [finding for finding in result.findings if finding.suppressed is None]
    numbers = Counter(finding.rule for finding in counted)
    examples = {finding.rule: finding for finding in counted}
    return [(examples[rule], number) for rule, number in sorted(numbers.items(), key=lambda item: (-item[1], item[0]))]
