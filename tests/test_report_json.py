from __future__ import annotations

import json
import sys
from dataclasses import replace

from capturelint.model import (
    Applicability,
    CheckResult,
    Confidence,
    Consequence,
    Diagnostic,
    Edit,
    Finding,
    Fix,
    Frame,
    ReachedFunction,
    Region,
    RegionRef,
    Related,
    Severity,
    Span,
    Suppression,
    UnresolvedCall,
    Verdict,
    VerdictStatus,
)
from capturelint.report.json import render_json, render_regions_json

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
REGION = Region(
    "torch.cuda.graph",
    "src/run.py",
    40,
    "Runner.capture",
    (ReachedFunction("src/a.py", 10, "step", Frame("src/run.py", 41, "Runner.capture")),),
    (UnresolvedCall("src/a.py", 11, 5, "plan()", "not defined in the project"),),
    (Frame("src/main.py", 7, "build"),),
)
FINDING = Finding(
    rule="CG101",
    name="host-scalar-read",
    path="src/a.py",
    span=Span(12, 9, 12, 23),
    message="`.item()` makes the CPU wait",
    label="reads a device tensor",
    help="read it after replay",
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    consequence=Consequence.CAPTURE_ERROR,
    regions=(
        RegionRef(
            "torch.cuda.graph",
            "src/run.py",
            40,
            "Runner.capture",
            (Frame("src/run.py", 41, "Runner.capture"),),
        ),
    ),
    related=(Related("src/run.py", 22, "static input made here"),),
    why=("self.pool is torch.Tensor: assigned at src/run.py:18",),
    fix=Fix(Applicability.UNSAFE, "use torch.where", (Edit(Span(12, 9, 12, 23), "größe"),)),
    suppressed=Suppression("inline", "read once"),
    verdict=Verdict(VerdictStatus.CONFIRMED, "operation not permitted"),
    fingerprint="0123456789abcdef",
    scope="step",
)
BARE = Finding(
    rule="CG102",
    name="device-to-host-copy",
    path="src/a.py",
    span=Span(3, 1, 4, 2),
    message="m",
    label="l",
    help="h",
    severity=Severity.WARNING,
    confidence=Confidence.LIKELY,
    consequence=Consequence.COST,
)


def test_a_report_in_full() -> None:
    result = CheckResult(
        findings=(FINDING, BARE),
        regions=(REGION,),
        diagnostics=(Diagnostic("b.py", 3, "invalid syntax"),),
        files=120,
        hidden_in=(("a.py", 3),),
    )
    assert json.loads(render_json(result)) == {
        "version": 1,
        "findings": [
            {
                "rule": "CG102",
                "name": "device-to-host-copy",
                "url": None,
                "path": "src/a.py",
                "cell": None,
                "line": 3,
                "column": 1,
                "end_line": 4,
                "end_column": 2,
                "message": "m",
                "severity": "warning",
                "confidence": "likely",
                "consequence": "cost",
                "regions": [],
                "related": [],
                "why": [],
                "fix": None,
                "suppressed": None,
                "verdict": None,
                "fingerprint": "",
            },
            {
                "rule": "CG101",
                "name": "host-scalar-read",
                "url": None,
                "path": "src/a.py",
                "cell": None,
                "line": 12,
                "column": 9,
                "end_line": 12,
                "end_column": 23,
                "message": "`.item()` makes the CPU wait",
                "severity": "error",
                "confidence": "certain",
                "consequence": "capture-error",
                "regions": [
                    {
                        "kind": "torch.cuda.graph",
                        "path": "src/run.py",
                        "cell": None,
                        "line": 40,
                        "name": "Runner.capture",
                        "trace": [{"path": "src/run.py", "cell": None, "line": 41, "function": "Runner.capture"}],
                    }
                ],
                "related": [{"path": "src/run.py", "cell": None, "line": 22, "message": "static input made here"}],
                "why": ["self.pool is torch.Tensor: assigned at src/run.py:18"],
                "fix": {
                    "applicability": "unsafe",
                    "message": "use torch.where",
                    "edits": [{"line": 12, "column": 9, "end_line": 12, "end_column": 23, "text": "größe"}],
                },
                "suppressed": {"kind": "inline", "reason": "read once"},
                "verdict": {"status": "confirmed", "evidence": "operation not permitted", "how": "gpu"},
                "fingerprint": "0123456789abcdef",
            },
        ],
        "regions": [
            {
                "kind": "torch.cuda.graph",
                "path": "src/run.py",
                "cell": None,
                "line": 40,
                "name": "Runner.capture",
                "reached_functions": 1,
                "unresolved_calls": 1,
            }
        ],
        "diagnostics": [
            {"path": "b.py", "cell": None, "line": 3, "message": f"invalid syntax (read as Python {PYTHON})"}
        ],
        "errors": [],
        "stale": [],
        "summary": {
            "files": 120,
            "regions": 1,
            "findings": 1,
            "suppressed": 1,
            "baseline": 0,
            "hidden": 3,
            "unchanged": 0,
            "fixed": 0,
        },
    }


def test_any_terminal_can_show_it() -> None:
    finding = replace(FINDING, path="src/\udcff名.py")
    assert render_json(CheckResult(findings=(finding,))).isascii()


def test_order_does_not_depend_on_the_order_of_the_run() -> None:
    later = replace(FINDING, span=Span(12, 10, 12, 11))
    other = replace(BARE, path="src/Z.py")
    findings = (FINDING, BARE, later, other)
    regions = (REGION, replace(REGION, path="src/b.py"))
    one = CheckResult(findings=findings, regions=regions)
    two = CheckResult(findings=findings[::-1], regions=regions[::-1])
    assert render_json(one) == render_json(two)


def test_nothing_found() -> None:
    assert json.loads(render_json(CheckResult())) == {
        "version": 1,
        "findings": [],
        "regions": [],
        "diagnostics": [],
        "errors": [],
        "stale": [],
        "summary": {
            "files": 0,
            "regions": 0,
            "findings": 0,
            "suppressed": 0,
            "baseline": 0,
            "hidden": 0,
            "unchanged": 0,
            "fixed": 0,
        },
    }


def test_regions() -> None:
    assert json.loads(render_regions_json(CheckResult(regions=(REGION,), files=2))) == {
        "version": 1,
        "regions": [
            {
                "kind": "torch.cuda.graph",
                "path": "src/run.py",
                "cell": None,
                "line": 40,
                "name": "Runner.capture",
                "reached_functions": 1,
                "unresolved_calls": 1,
                "given_by": [{"path": "src/main.py", "cell": None, "line": 7, "function": "build"}],
                "reached": [
                    {
                        "path": "src/a.py",
                        "cell": None,
                        "line": 10,
                        "name": "step",
                        "called_from": {"path": "src/run.py", "cell": None, "line": 41, "function": "Runner.capture"},
                    }
                ],
                "unresolved": [
                    {
                        "path": "src/a.py",
                        "cell": None,
                        "line": 11,
                        "column": 5,
                        "text": "plan()",
                        "reason": "not defined in the project",
                    }
                ],
            }
        ],
        "diagnostics": [],
        "errors": [],
        "summary": {"files": 2, "regions": 1},
    }
