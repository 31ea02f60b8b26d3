"""SARIF, against the schema that OASIS publishes and against what GitHub makes of it."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY
from jsonschema import Draft4Validator
from test_report_json import BARE, FINDING, REGION

from capturelint import __version__
from capturelint.model import (
    Applicability,
    CheckResult,
    Diagnostic,
    Edit,
    Failure,
    Fix,
    Frame,
    RegionRef,
    Span,
    Suppression,
    Verdict,
    VerdictStatus,
)
from capturelint.report.options import ReportOptions
from capturelint.report.sarif import render_sarif
from capturelint.rulebook import load_rulebook

OPEN = replace(FINDING, suppressed=None)


@cache
def validator() -> Draft4Validator:
    schema = json.loads((REPOSITORY / "tests" / "schemas" / "sarif-2.1.0.json").read_text(encoding="utf-8"))
    return Draft4Validator(schema)


def sarif(result: CheckResult, **options: Any) -> dict[str, Any]:
    text = render_sarif(result, ReportOptions(**options))
    assert text.isascii()
    document = json.loads(text)
    errors = [f"{'/'.join(map(str, error.path))}: {error.message}" for error in validator().iter_errors(document)]
    assert errors == []
    (run,) = document["runs"]
    return dict(run)


def result_of(run: dict[str, Any]) -> dict[str, Any]:
    (result,) = run["results"]
    return dict(result)


@pytest.fixture(autouse=True)
def _somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_nothing_found(tmp_path: Path) -> None:
    run = sarif(CheckResult())
    assert run["results"] == []
    assert run["invocations"] == [{"executionSuccessful": True, "toolExecutionNotifications": []}]
    assert run["tool"]["driver"]["version"] == __version__
    assert run["originalUriBaseIds"] == {"%SRCROOT%": {"uri": f"{tmp_path.as_uri()}/"}}
    assert run["columnKind"] == "unicodeCodePoints"


def test_a_result() -> None:
    result = result_of(sarif(CheckResult(findings=(OPEN,), regions=(REGION,))))
    place = {
        "physicalLocation": {
            "artifactLocation": {"uri": "src/a.py", "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": 12, "startColumn": 9, "endLine": 12, "endColumn": 23},
        },
        "logicalLocations": [{"fullyQualifiedName": "step", "kind": "function"}],
    }
    assert (result["ruleId"], result["ruleIndex"], result["level"]) == ("CG101", 0, "error")
    assert result["message"] == {"text": "`.item()` makes the CPU wait\nhelp: read it after replay"}
    assert result["locations"] == [place]
    assert result["partialFingerprints"] == {"capturelint/v1": "0123456789abcdef"}
    assert result["suppressions"] == []
    assert result["properties"] == {
        "confidence": "certain",
        "consequence": "capture-error",
        "why": ["self.pool is torch.Tensor: assigned at src/run.py:18"],
        "verdict": {"status": "confirmed", "evidence": "operation not permitted", "how": "gpu"},
    }


def lines_and_texts(locations: list[dict[str, Any]]) -> list[tuple[str, int, str]]:
    return [
        (
            place["physicalLocation"]["artifactLocation"]["uri"],
            place["physicalLocation"]["region"]["startLine"],
            place["message"]["text"],
        )
        for place in locations
    ]


def test_the_way_there() -> None:
    other = RegionRef("torch.compile", "src/other.py", 3, "forward")
    result = result_of(sarif(CheckResult(findings=(replace(OPEN, regions=(*OPEN.regions, other)),))))
    assert [place["id"] for place in result["relatedLocations"]] == [1, 2, 3, 4]
    assert lines_and_texts(result["relatedLocations"]) == [
        ("src/run.py", 40, "captured here: torch.cuda.graph in Runner.capture"),
        ("src/run.py", 41, "called from Runner.capture"),
        ("src/other.py", 3, "also captured here: torch.compile in forward"),
        ("src/run.py", 22, "static input made here"),
    ]
    flows = [
        lines_and_texts([step["location"] for step in flow["threadFlows"][0]["locations"]])
        for flow in result["codeFlows"]
    ]
    assert flows == [
        [
            ("src/run.py", 40, "captured here: torch.cuda.graph in Runner.capture"),
            ("src/run.py", 41, "called from Runner.capture"),
            ("src/a.py", 12, "reads a device tensor"),
        ],
        [
            ("src/other.py", 3, "captured here: torch.compile in forward"),
            ("src/a.py", 12, "reads a device tensor"),
        ],
    ]


def test_rules_are_described() -> None:
    run = sarif(CheckResult(findings=(OPEN, BARE)), rule_url="https://example.org/rules/{code}-{name}")
    rules = run["tool"]["driver"]["rules"]
    assert [(rule["id"], rule["name"], rule["helpUri"]) for rule in rules] == [
        ("CG101", "host-scalar-read", "https://example.org/rules/CG101-host-scalar-read"),
        ("CG102", load_rulebook().rules["CG102"].name, f"https://example.org/rules/CG102-{rules[1]['name']}"),
    ]
    assert [(result["ruleId"], result["ruleIndex"]) for result in run["results"]] == [("CG102", 1), ("CG101", 0)]
    assert rules[0]["shortDescription"] == {"text": "a device value is read as a Python number"}
    assert rules[0]["help"]["text"].startswith("CG101 host-scalar-read\n")
    assert rules[0]["help"]["markdown"].startswith("# CG101 host-scalar-read\n")
    assert "```python\n" in rules[0]["help"]["markdown"]
    assert rules[0]["defaultConfiguration"] == {"level": "error"}
    assert rules[0]["properties"]["tags"] == ["cuda-graphs", "capture-error"]


def test_without_an_address_rules_have_no_link() -> None:
    (rule,) = sarif(CheckResult(findings=(OPEN,)))["tool"]["driver"]["rules"]
    assert "helpUri" not in rule


def test_every_rule_can_be_described() -> None:
    findings = tuple(replace(BARE, rule=rule.code, name=rule.name) for rule in load_rulebook().rules.values())
    run = sarif(CheckResult(findings=findings))
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == sorted(load_rulebook().rules)


def test_suppressions() -> None:
    inline = sarif(CheckResult(findings=(replace(OPEN, suppressed=Suppression("comment", "read once")),)))
    assert result_of(inline)["suppressions"] == [
        {"kind": "inSource", "status": "accepted", "justification": "read once"}
    ]
    baseline = sarif(CheckResult(findings=(replace(OPEN, suppressed=Suppression("baseline")),)))
    assert result_of(baseline)["suppressions"] == [{"kind": "external", "status": "accepted"}]


def test_what_the_verifier_refuted_is_suppressed() -> None:
    refuted = replace(OPEN, verdict=Verdict(VerdictStatus.REFUTED, "on NVIDIA H200: capture succeeds"))
    assert result_of(sarif(CheckResult(findings=(refuted,))))["suppressions"] == [
        {"kind": "external", "status": "accepted", "justification": "refuted on NVIDIA H200: capture succeeds"}
    ]


def test_a_fix() -> None:
    fix = Fix(Applicability.SAFE, "copy in place", (Edit(Span(12, 9, 12, 23), "a.copy_(b)"),))
    assert result_of(sarif(CheckResult(findings=(replace(OPEN, fix=fix),))))["fixes"] == [
        {
            "description": {"text": "copy in place (safe fix)"},
            "artifactChanges": [
                {
                    "artifactLocation": {"uri": "src/a.py", "uriBaseId": "%SRCROOT%"},
                    "replacements": [
                        {
                            "deletedRegion": {"startLine": 12, "startColumn": 9, "endLine": 12, "endColumn": 23},
                            "insertedContent": {"text": "a.copy_(b)"},
                        }
                    ],
                }
            ],
        }
    ]


def uri_of(path: str, base: Path | None = None) -> dict[str, Any]:
    result = result_of(sarif(CheckResult(findings=(replace(OPEN, path=path),)), base=base))
    location = result["locations"][0]["physicalLocation"]["artifactLocation"]
    return dict(location)


def test_uris_start_at_the_repository_s_top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    assert uri_of("a.py", tmp_path) == {"uri": "sub/a.py", "uriBaseId": "%SRCROOT%"}
    assert uri_of(f"{tmp_path}/b.py", tmp_path) == {"uri": "b.py", "uriBaseId": "%SRCROOT%"}
    assert uri_of("/elsewhere/c.py", tmp_path) == {"uri": "file:///elsewhere/c.py"}
    assert uri_of("/elsewhere/c.py") == {"uri": "file:///elsewhere/c.py"}


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("a b/größe.py", "a%20b/gr%C3%B6%C3%9Fe.py"),
        ("100%.py", "100%25.py"),
        ("a#b?.py", "a%23b%3F.py"),
        ("a:b/c.py", "a%3Ab/c.py"),
        ("\udcff.py", "%FF.py"),
    ],
)
def test_uris_hold_any_name(path: str, uri: str) -> None:
    assert uri_of(path) == {"uri": uri, "uriBaseId": "%SRCROOT%"}


def test_what_could_not_be_checked() -> None:
    run = sarif(CheckResult(diagnostics=(Diagnostic("b.py", 3, "cannot be read: Permission denied"),)))
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    assert invocation["toolExecutionNotifications"] == [
        {
            "descriptor": {"id": "CG000"},
            "level": "error",
            "message": {"text": "unreadable-file: cannot be read: Permission denied"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": "b.py", "uriBaseId": "%SRCROOT%"},
                        "region": {"startLine": 3},
                    }
                }
            ],
        }
    ]
    assert [each["id"] for each in run["tool"]["driver"]["notifications"]] == ["CG000"]
    assert run["results"] == []


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("usage-error", "toolConfigurationNotifications"),
        ("config-error", "toolConfigurationNotifications"),
        ("internal-error", "toolExecutionNotifications"),
    ],
)
def test_a_run_that_went_wrong(kind: str, key: str) -> None:
    (invocation,) = sarif(CheckResult(failure=Failure(kind, "it broke", "pyproject.toml")))["invocations"]
    assert invocation["executionSuccessful"] is False
    (notification,) = invocation[key]
    assert notification["message"] == {"text": "it broke"}
    assert notification["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "pyproject.toml"


def test_a_real_run_is_valid(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from capturelint.cli.main import main

    monkeypatch.chdir(repository / "fixtures" / "programs")
    assert main(["check", "decode_runner", "--format", "sarif"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [error.message for error in validator().iter_errors(document)] == []
    found = [result["ruleId"] for result in document["runs"][0]["results"]]
    assert "CG101" in found
    assert all(result["codeFlows"] for result in document["runs"][0]["results"] if result["ruleId"] == "CG101")


def test_hops_keep_their_order() -> None:
    trace = (Frame("a.py", 5, "f"), Frame("b.py", 2, "g"))
    finding = replace(OPEN, regions=(replace(OPEN.regions[0], trace=trace),), related=())
    related = result_of(sarif(CheckResult(findings=(finding,))))["relatedLocations"]
    assert lines_and_texts(related)[1:] == [("a.py", 5, "called from f"), ("b.py", 2, "called from g")]
