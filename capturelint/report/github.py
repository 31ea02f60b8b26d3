"""Workflow commands: annotations on the lines of a pull request. GitHub reads them from a job's output."""

from __future__ import annotations

from collections.abc import Iterator

from capturelint.model import CheckResult, Failure, Finding, Severity, within
from capturelint.report.diagnostics import in_order, message_of, name_of
from capturelint.report.options import ReportOptions
from capturelint.report.outcome import reported
from capturelint.report.paths import shown_from_base, within_cell


def render_github(result: CheckResult, options: ReportOptions) -> str:
    """One command a finding that is neither suppressed nor refuted; nothing at all when there is none."""
    return "".join(f"{line}\n" for line in _commands(result, options))


def _commands(result: CheckResult, options: ReportOptions) -> Iterator[str]:
    if result.failure is not None:
        yield _failure(result.failure, options)
    for item in in_order(result.diagnostics):
        properties = {"title": f"capturelint ({item.rule})", "file": _file(item.path, options), "line": item.line}
        yield _command("error", properties, f"{within_cell(item)}{name_of(item)}: {message_of(item)}")
    yield from (_finding(finding, options) for finding in reported(result))


def _failure(failure: Failure, options: ReportOptions) -> str:
    properties: dict[str, object] = {"title": f"capturelint ({failure.kind})"}
    if failure.path:
        properties["file"] = _file(failure.path, options)
    return _command("error", properties, failure.message)


def _finding(finding: Finding, options: ReportOptions) -> str:
    span = finding.span
    properties: dict[str, object] = {
        "title": f"capturelint ({finding.rule})",
        "file": _file(finding.path, options),
        "line": span.line,
        "endLine": span.end_line,
    }
    if span.line == span.end_line:  # columns of an annotation over several lines are refused
        properties |= {"col": span.column, "endColumn": span.end_column}
    level = "error" if finding.severity is Severity.ERROR else "warning"
    return _command(level, properties, "\n".join(_text(finding, options)))


def _text(finding: Finding, options: ReportOptions) -> Iterator[str]:
    yield f"{within_cell(finding)}{finding.name} [{finding.confidence.value}]: {finding.message}"
    for region in finding.regions[:1]:
        yield f"captured here: {within(_file(region.path, options), region.cell)}:{region.line}"
        for frame in region.trace:
            yield f"called from: {within(_file(frame.path, options), frame.cell)}:{frame.line}"
    if finding.help:
        yield f"help: {finding.help}"
    if finding.verdict is not None:
        yield f"{finding.verdict.status.value}: {finding.verdict.evidence}"
    if (url := options.url_of(finding.rule, finding.name)) is not None:
        yield url


def _file(path: str, options: ReportOptions) -> str:
    return shown_from_base(path, options.base)


def _command(level: str, properties: dict[str, object], message: str) -> str:
    written = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{level} {written}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
