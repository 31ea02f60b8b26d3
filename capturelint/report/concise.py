"""One line a finding: what editors and ``grep`` read."""

from __future__ import annotations

from collections.abc import Iterator

from capturelint.model import CheckResult, Finding
from capturelint.report.options import ReportOptions
from capturelint.report.style import Style
from capturelint.report.text import footer, one_line, place_of, render_diagnostics, rule_of


def render_concise(result: CheckResult, options: ReportOptions) -> str:
    """``path:line:column: error CG101 host-scalar-read [certain] message``; suppressed findings are only counted."""
    return "".join(f"{line}\n" for line in _lines(result, options))


def _lines(result: CheckResult, options: ReportOptions) -> Iterator[str]:
    style = Style(options.color)
    for finding in sorted(result.findings, key=lambda finding: finding.sort_key):
        if finding.suppressed is None:
            yield _line(finding, options, style)
    if result.diagnostics:
        yield render_diagnostics(result.diagnostics, style)
    if not options.quiet:
        yield footer(result, options, style)


def _line(finding: Finding, options: ReportOptions, style: Style) -> str:
    verdict = "" if finding.verdict is None else f" ({finding.verdict.status.value})"
    head = f"{style.strong(place_of(finding))} {rule_of(finding, options, style)}"
    return f"{head} {one_line(finding.message)}{verdict}"
