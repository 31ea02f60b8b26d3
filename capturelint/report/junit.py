"""JUnit XML: a test suite a file, a test case a finding. What would not fail the run is no failed test."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from xml.etree import ElementTree

from capturelint.model import CheckResult, Diagnostic, Failure, Finding, VerdictStatus, within
from capturelint.report.diagnostics import in_order, message_of, name_of
from capturelint.report.options import ReportOptions
from capturelint.report.paths import shown_from_base

_NAME = "capturelint"
#: what XML 1.0 cannot hold, however it is written
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(result: CheckResult, options: ReportOptions) -> str:
    """Failed: what fails the run. Error: what could not be checked. Skipped: suppressed or refuted. Else: passed."""
    suites = ElementTree.Element("testsuites", name=_NAME)
    for name, cases in _suites(result, options):
        suites.append(_counted(ElementTree.Element("testsuite", name=name), cases))
    _count(suites, list(suites.iter("testcase")))
    ElementTree.indent(suites, " ")
    text = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _suites(result: CheckResult, options: ReportOptions) -> Iterator[tuple[str, Sequence[ElementTree.Element]]]:
    if result.failure is not None:
        yield _NAME, [_failure(result.failure, options)]
        return
    by_path: dict[str, list[ElementTree.Element]] = {}
    for item in in_order(result.diagnostics):
        by_path.setdefault(item.path, []).append(_diagnostic(item, options))
    findings = sorted(result.findings, key=lambda finding: finding.sort_key)
    for path, group in groupby(findings, key=lambda finding: finding.path):
        by_path.setdefault(path, []).extend(_finding(finding, options) for finding in group)
    for path in sorted(by_path):
        yield _legal(shown_from_base(path, options.base)), by_path[path]
    if not by_path:  # a report without a test reads as one that is missing
        yield _NAME, [_case("check", _NAME, 1)]


def _failure(failure: Failure, options: ReportOptions) -> ElementTree.Element:
    case = _case(failure.kind, shown_from_base(failure.path, options.base) if failure.path else _NAME, 1)
    _outcome(case, "error", failure.kind, failure.message, failure.message)
    return case


def _diagnostic(item: Diagnostic, options: ReportOptions) -> ElementTree.Element:
    case = _case(f"{item.rule} {name_of(item)}", shown_from_base(item.path, options.base), item.line)
    _outcome(
        case, "error", item.rule, message_of(item), f"{within(item.path, item.cell)}:{item.line}: {message_of(item)}"
    )
    return case


def _finding(finding: Finding, options: ReportOptions) -> ElementTree.Element:
    span = finding.span
    path = shown_from_base(finding.path, options.base)
    case = _case(f"{finding.rule} {within(finding.name, finding.cell)}:{span.line}:{span.column}", path, span.line)
    text = "\n".join(_text(finding))
    if (reason := _skipped(finding)) is not None:
        ElementTree.SubElement(case, "skipped", message=_legal(reason))
    elif options.gate.fails(finding):
        _outcome(case, "failure", finding.severity.value, finding.message, text)
    else:
        ElementTree.SubElement(case, "system-out").text = _legal(f"{finding.severity.value}: {text}")
    return case


def _skipped(finding: Finding) -> str | None:
    """Why a finding does not count, whatever its severity."""
    if finding.suppressed is not None:
        return finding.suppressed.reason or finding.suppressed.kind
    if finding.verdict is not None and finding.verdict.status is VerdictStatus.REFUTED:
        return f"refuted {finding.verdict.evidence}"
    return None


def _text(finding: Finding) -> Iterator[str]:
    yield f"{within(finding.path, finding.cell)}:{finding.span.line}:{finding.span.column}: {finding.message}"
    for region in finding.regions[:1]:
        yield f"captured here: {within(region.path, region.cell)}:{region.line}"
        yield from (f"called from: {within(frame.path, frame.cell)}:{frame.line}" for frame in region.trace)
    if finding.help:
        yield f"help: {finding.help}"
    if finding.verdict is not None:
        yield f"{finding.verdict.status.value}: {finding.verdict.evidence}"


def _case(name: str, path: str, line: int) -> ElementTree.Element:
    legal = _legal(path)
    return ElementTree.Element("testcase", name=_legal(name), classname=legal, file=legal, line=str(line))


def _outcome(case: ElementTree.Element, tag: str, kind: str, message: str, text: str) -> None:
    ElementTree.SubElement(case, tag, type=kind, message=_legal(message)).text = _legal(text)


def _counted(suite: ElementTree.Element, cases: Sequence[ElementTree.Element]) -> ElementTree.Element:
    suite.extend(cases)
    _count(suite, cases)
    return suite


def _count(element: ElementTree.Element, cases: Sequence[ElementTree.Element]) -> None:
    element.set("tests", str(len(cases)))
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(name, str(sum(case.find(tag) is not None for case in cases)))


def _legal(text: str) -> str:
    return _ILLEGAL.sub("?", text)
