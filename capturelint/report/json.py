"""The report as JSON, version 1. Other tools read it: fields may be added within a version, never changed.

Lines and columns count from 1, columns in characters; paths are relative to the working directory, with ``/``. Every
field is always there; ``cell``, ``fix``, ``suppressed`` and ``verdict`` are null where there is none. ``findings``
holds the suppressed ones too; in ``summary``, ``findings`` counts those that are not, ``suppressed`` those that are,
``hidden`` and ``unchanged`` those that are in no list, since they are less sure than was asked for, and since they
were there before the change that was asked about, and ``fixed`` those that ``--fix`` took away before. ``errors`` says
why the run as a whole went wrong; all else is empty then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from capturelint.model import (
    CheckResult,
    Finding,
    Fix,
    Frame,
    Region,
    RegionRef,
    Related,
    Span,
)
from capturelint.report.diagnostics import in_order, message_of
from capturelint.report.options import DEFAULTS, ReportOptions

if TYPE_CHECKING:
    from capturelint.rulebook import Rule

VERSION = 1


def render_json(result: CheckResult, options: ReportOptions = DEFAULTS) -> str:
    """The report of one run, ASCII only, findings sorted by path and place."""
    findings = sorted(result.findings, key=lambda finding: finding.sort_key)
    suppressed = sum(finding.suppressed is not None for finding in findings)
    report = {
        "version": VERSION,
        "findings": [_finding(finding, options.url_of(finding.rule, finding.name)) for finding in findings],
        "regions": [_region_summary(region) for region in sorted(result.regions, key=lambda region: region.sort_key)],
        "diagnostics": _diagnostics(result),
        "errors": _errors(result),
        "stale": [{"path": e.path, "description": e.description, "count": e.count} for e in result.stale],
        "summary": {
            "files": result.files,
            "regions": len(result.regions),
            "findings": len(findings) - suppressed,
            "suppressed": suppressed,
            "baseline": sum(f.suppressed is not None and f.suppressed.kind == "baseline" for f in findings),
            "hidden": result.hidden,
            "unchanged": result.unchanged,
            "fixed": result.fixed,
        },
    }
    return _dump(report)


def render_regions_json(result: CheckResult, options: ReportOptions = DEFAULTS) -> str:
    """The report of ``capturelint regions``: each region as above, with what it reaches and what was not followed."""
    regions = sorted(result.regions, key=lambda region: region.sort_key)
    report = {
        "version": VERSION,
        "regions": [_region_with_reach(region) for region in regions],
        "diagnostics": _diagnostics(result),
        "errors": _errors(result),
        "summary": {"files": result.files, "regions": len(regions)},
    }
    return _dump(report)


def render_rules_json(rules: Iterable[Rule]) -> str:
    """The catalogue, in the order given."""
    entries = [
        {
            "code": rule.code,
            "name": rule.name,
            "summary": rule.summary,
            "severity": rule.severity.value,
            "consequence": rule.consequence.value,
            "since": rule.since,
            "help": rule.help,
        }
        for rule in rules
    ]
    return _dump({"version": VERSION, "rules": entries})


def _dump(report: Any) -> str:
    return json.dumps(report, indent=1) + "\n"


def _region_summary(region: Region) -> dict[str, Any]:
    return {
        "kind": region.kind,
        "path": region.path,
        "cell": region.cell,
        "line": region.line,
        "name": region.name,
        "reached_functions": len(region.reached),
        "unresolved_calls": len(region.unresolved),
    }


def _errors(result: CheckResult) -> list[dict[str, Any]]:
    failure = result.failure
    if failure is None:
        return []
    return [{"kind": failure.kind, "message": failure.message, "path": failure.path, "key": failure.key}]


def _diagnostics(result: CheckResult) -> list[dict[str, Any]]:
    return [
        {"path": diagnostic.path, "cell": diagnostic.cell, "line": diagnostic.line, "message": message_of(diagnostic)}
        for diagnostic in in_order(result.diagnostics)
    ]


def _region_with_reach(region: Region) -> dict[str, Any]:
    reached = [
        {
            "path": function.path,
            "cell": function.cell,
            "line": function.line,
            "name": function.name,
            "called_from": _frame(function.called_from),
        }
        for function in region.reached
    ]
    unresolved = [
        {
            "path": call.path,
            "cell": call.cell,
            "line": call.line,
            "column": call.column,
            "text": call.text,
            "reason": call.reason,
        }
        for call in region.unresolved
    ]
    given_by = [_frame(frame) for frame in region.given_by]
    return {**_region_summary(region), "given_by": given_by, "reached": reached, "unresolved": unresolved}


def _finding(finding: Finding, url: str | None) -> dict[str, Any]:
    suppressed, verdict = finding.suppressed, finding.verdict
    return {
        "rule": finding.rule,
        "name": finding.name,
        "url": url,
        "path": finding.path,
        "cell": finding.cell,
        **_span(finding.span),
        "message": finding.message,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "consequence": finding.consequence.value,
        "regions": [_region_ref(region) for region in finding.regions],
        "related": [_related(related) for related in finding.related],
        "why": list(finding.why),
        "fix": None if finding.fix is None else _fix(finding.fix),
        "suppressed": None if suppressed is None else {"kind": suppressed.kind, "reason": suppressed.reason},
        "verdict": None
        if verdict is None
        else {"status": verdict.status.value, "evidence": verdict.evidence, "how": verdict.how},
        "fingerprint": finding.fingerprint,
    }


def _span(span: Span) -> dict[str, int]:
    return {"line": span.line, "column": span.column, "end_line": span.end_line, "end_column": span.end_column}


def _frame(frame: Frame) -> dict[str, Any]:
    return {"path": frame.path, "cell": frame.cell, "line": frame.line, "function": frame.function}


def _region_ref(region: RegionRef) -> dict[str, Any]:
    return {
        "kind": region.kind,
        "path": region.path,
        "cell": region.cell,
        "line": region.line,
        "name": region.name,
        "trace": [_frame(frame) for frame in region.trace],
    }


def _related(related: Related) -> dict[str, Any]:
    return {"path": related.path, "cell": related.cell, "line": related.line, "message": related.message}


def _fix(fix: Fix) -> dict[str, Any]:
    edits = [{**_span(edit.span), "text": edit.text} for edit in fix.edits]
    return {"applicability": fix.applicability.value, "message": fix.message, "edits": edits}
