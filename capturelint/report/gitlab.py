"""GitLab's code quality report: a list of issues, each with a fingerprint of its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from capturelint.model import CheckResult, Diagnostic, Failure, Finding, Severity
from capturelint.report.diagnostics import in_order, message_of, name_of
from capturelint.report.options import ReportOptions
from capturelint.report.outcome import reported
from capturelint.report.paths import shown_from_base, within_cell

#: what could not be checked at all comes before what was found
_UNCHECKED = "blocker"


def render_gitlab(result: CheckResult, options: ReportOptions) -> str:
    """Findings that are neither suppressed nor refuted. Paths start at the repository's top, which GitLab requires."""
    issues = list(_issues(result, options))
    seen: dict[str, int] = {}
    for issue in issues:  # GitLab shows one issue a fingerprint
        name = issue["fingerprint"]
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            issue["fingerprint"] = f"{name}-{seen[name]}"
    return json.dumps(issues, indent=1) + "\n"


def _issues(result: CheckResult, options: ReportOptions) -> Iterator[dict[str, Any]]:
    if result.failure is not None:
        yield _failure(result.failure, options)
    for item in in_order(result.diagnostics):
        yield _diagnostic(item, options)
    yield from (_finding(finding, options) for finding in reported(result))


def _failure(failure: Failure, options: ReportOptions) -> dict[str, Any]:
    path = shown_from_base(failure.path, options.base) if failure.path else "."
    return _issue(failure.kind, failure.message, _UNCHECKED, path, (1, 1), _hash(failure.kind, failure.message))


def _diagnostic(item: Diagnostic, options: ReportOptions) -> dict[str, Any]:
    path, message = shown_from_base(item.path, options.base), message_of(item)
    issue_hash = _hash(item.rule, path, item.message)
    return _issue(
        item.rule,
        f"{within_cell(item)}{name_of(item)}: {message}",
        _UNCHECKED,
        path,
        (item.line, item.line),
        issue_hash,
    )


def _finding(finding: Finding, options: ReportOptions) -> dict[str, Any]:
    path, span = shown_from_base(finding.path, options.base), finding.span
    severity = "major" if finding.severity is Severity.ERROR else "minor"
    description = f"{within_cell(finding)}{finding.name} [{finding.confidence.value}]: {finding.message}"
    fingerprint = finding.fingerprint or _hash(finding.rule, path, str(span))
    return _issue(finding.rule, description, severity, path, (span.line, span.end_line), fingerprint)


def _issue(
    check_name: str, description: str, severity: str, path: str, lines: tuple[int, int], fingerprint: str
) -> dict[str, Any]:
    return {
        "type": "issue",
        "check_name": check_name,
        "description": description,
        "categories": ["Bug Risk"],
        "severity": severity,
        "fingerprint": fingerprint,
        "location": {"path": path, "lines": {"begin": lines[0], "end": lines[1]}},
    }


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
