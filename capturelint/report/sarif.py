"""SARIF 2.1.0, for GitHub code scanning and other viewers.

Paths start at the base directory, which ``originalUriBaseIds`` names. Columns count characters. The way from a region
to a finding stands twice: as related locations, which most viewers show, and as code flows, one a region.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from capturelint import __version__
from capturelint.model import (
    CheckResult,
    Diagnostic,
    Failure,
    Finding,
    Fix,
    RegionRef,
    Span,
    VerdictStatus,
)
from capturelint.report.diagnostics import in_order, message_of, name_of
from capturelint.report.options import ReportOptions
from capturelint.report.paths import as_uri, directory_uri, relative_to_base, within_cell
from capturelint.report.sarif_rules import describe, descriptors

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
#: the name that GitHub and others know the sources' top directory by
_BASE_ID = "%SRCROOT%"
_FINGERPRINT = "capturelint/v1"
#: what kinds of suppression stand in the source itself
_IN_SOURCE = ("comment", "inline")
#: a configuration that is wrong is not a fault of the run
_OF_CONFIGURATION = ("usage-error", "config-error", "rulebook-error")


def render_sarif(result: CheckResult, options: ReportOptions) -> str:
    """One run, ASCII only."""
    findings = sorted(result.findings, key=lambda finding: finding.sort_key)
    rules = descriptors({finding.rule for finding in findings}, options)
    index = {rule["id"]: number for number, rule in enumerate(rules)}
    writer = _Writer(options)
    run = {
        "tool": {"driver": _driver(rules, result, options)},
        "invocations": [writer.invocation(result)],
        "originalUriBaseIds": {_BASE_ID: {"uri": directory_uri(options.base or Path.cwd())}},
        "columnKind": "unicodeCodePoints",
        "results": [writer.result(finding, index) for finding in findings],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _driver(rules: list[dict[str, Any]], result: CheckResult, options: ReportOptions) -> dict[str, Any]:
    driver = {
        "name": "capturelint",
        "version": __version__,
        "semanticVersion": __version__,
        "shortDescription": {"text": "Finds what breaks CUDA graphs before capture does."},
        "rules": rules,
    }
    if result.diagnostics:
        driver["notifications"] = [describe(code, options) for code in sorted({d.rule for d in result.diagnostics})]
    return driver


class _Writer:
    def __init__(self, options: ReportOptions) -> None:
        self.options = options

    def invocation(self, result: CheckResult) -> dict[str, Any]:
        """What could not be checked makes the results incomplete: such a run is not called successful."""
        invocation: dict[str, Any] = {
            "executionSuccessful": result.failure is None and not result.diagnostics,
            "toolExecutionNotifications": [self._diagnostic(item) for item in in_order(result.diagnostics)],
        }
        if result.failure is not None:
            of_configuration = result.failure.kind in _OF_CONFIGURATION
            key = "toolConfigurationNotifications" if of_configuration else "toolExecutionNotifications"
            invocation.setdefault(key, []).append(self._failure(result.failure))
        return invocation

    def result(self, finding: Finding, index: dict[str, int]) -> dict[str, Any]:
        location = self._location(finding.path, finding.span)
        if finding.scope:
            location["logicalLocations"] = [{"fullyQualifiedName": finding.scope, "kind": "function"}]
        help_text = f"\nhelp: {finding.help}" if finding.help else ""
        written: dict[str, Any] = {
            "ruleId": finding.rule,
            "ruleIndex": index[finding.rule],
            "level": finding.severity.value,
            "message": {"text": f"{within_cell(finding)}{finding.message}{help_text}"},
            "locations": [location],
            "relatedLocations": list(self._related(finding)),
            "suppressions": list(_suppressions(finding)),
            "properties": _properties(finding),
        }
        flows = [flow for region in finding.regions if (flow := self._flow(region, finding))]
        if flows:
            written["codeFlows"] = flows
        if finding.fingerprint:
            written["partialFingerprints"] = {_FINGERPRINT: finding.fingerprint}
        if finding.fix is not None:
            written["fixes"] = [self._fix(finding.fix, finding.path)]
        return written

    def _related(self, finding: Finding) -> Iterator[dict[str, Any]]:
        places = [place for region in finding.regions[:1] for place in _way(region)]
        for other in finding.regions[1:]:
            places.append(
                (other.path, other.line, f"{within_cell(other)}also captured here: {other.kind} in {other.name}")
            )
        places += [(item.path, item.line, within_cell(item) + item.message) for item in finding.related]
        for number, (path, line, text) in enumerate(places, 1):
            yield {"id": number, **self._location(path, line), "message": {"text": text}}

    def _flow(self, region: RegionRef, finding: Finding) -> dict[str, Any]:
        steps = [
            {"location": {**self._location(path, line), "message": {"text": text}}} for path, line, text in _way(region)
        ]
        end = {**self._location(finding.path, finding.span), "message": {"text": finding.label or finding.message}}
        return {
            "message": {"text": f"from the {region.kind} region in {region.name}"},
            "threadFlows": [{"locations": [*steps, {"location": end}]}],
        }

    def _fix(self, fix: Fix, path: str) -> dict[str, Any]:
        replacements = [
            {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.text}} for edit in fix.edits
        ]
        change = {"artifactLocation": self._artifact(path), "replacements": replacements}
        return {"description": {"text": f"{fix.message} ({fix.applicability.value} fix)"}, "artifactChanges": [change]}

    def _diagnostic(self, item: Diagnostic) -> dict[str, Any]:
        return {
            "descriptor": {"id": item.rule},
            "level": "error",
            "message": {"text": f"{within_cell(item)}{name_of(item)}: {message_of(item)}"},
            "locations": [self._location(item.path, item.line)],
        }

    def _failure(self, failure: Failure) -> dict[str, Any]:
        places = [{"physicalLocation": {"artifactLocation": self._artifact(failure.path)}}] if failure.path else []
        return {
            "descriptor": {"id": failure.kind},
            "level": "error",
            "message": {"text": failure.message},
            "locations": places,
        }

    def _location(self, path: str, place: Span | int) -> dict[str, Any]:
        region = _region(place) if isinstance(place, Span) else {"startLine": place}
        return {"physicalLocation": {"artifactLocation": self._artifact(path), "region": region}}

    def _artifact(self, path: str) -> dict[str, Any]:
        relative = relative_to_base(path, self.options.base)
        if relative is None:
            return {"uri": "file://" + as_uri(path if path.startswith("/") else f"/{path}")}
        return {"uri": as_uri(relative), "uriBaseId": _BASE_ID}


def _region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }


def _way(region: RegionRef) -> Sequence[tuple[str, int, str]]:
    begin = (region.path, region.line, f"{within_cell(region)}captured here: {region.kind} in {region.name}")
    return [
        begin,
        *((frame.path, frame.line, f"{within_cell(frame)}called from {frame.function}") for frame in region.trace),
    ]


def _suppressions(finding: Finding) -> Iterator[dict[str, Any]]:
    if finding.suppressed is not None:
        kind = "inSource" if finding.suppressed.kind in _IN_SOURCE else "external"
        yield _suppression(kind, finding.suppressed.reason)
    if finding.verdict is not None and finding.verdict.status is VerdictStatus.REFUTED:
        yield _suppression("external", f"refuted {finding.verdict.evidence}")


def _suppression(kind: str, justification: str | None) -> dict[str, Any]:
    return {"kind": kind, "status": "accepted", **({"justification": justification} if justification else {})}


def _properties(finding: Finding) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "confidence": finding.confidence.value,
        "consequence": finding.consequence.value,
        "why": list(finding.why),
    }
    if finding.verdict is not None:
        verdict = finding.verdict
        properties["verdict"] = {"status": verdict.status.value, "evidence": verdict.evidence, "how": verdict.how}
    return properties
