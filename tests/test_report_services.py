"""The formats that services read beside SARIF: GitHub's commands, GitLab's issues, JUnit's test cases."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from test_report_json import BARE, FINDING

from capturelint.model import (
    CheckResult,
    Confidence,
    Diagnostic,
    Failure,
    Severity,
    Span,
    Suppression,
    Verdict,
    VerdictStatus,
)
from capturelint.report.concise import render_concise
from capturelint.report.github import render_github
from capturelint.report.gitlab import render_gitlab
from capturelint.report.json import render_json
from capturelint.report.junit import render_junit
from capturelint.report.options import ReportOptions
from capturelint.report.outcome import Gate
from capturelint.report.statistics import render_statistics, render_statistics_json
from capturelint.report.text import render_text

OPEN = replace(FINDING, suppressed=None, verdict=None)
REFUTED = replace(OPEN, verdict=Verdict(VerdictStatus.REFUTED, "on NVIDIA H200: capture succeeds"))
DIAGNOSTIC = Diagnostic("b.py", 3, "cannot be read: Permission denied")
FAILURE = CheckResult(failure=Failure("config-error", "pyproject.toml: slect: unknown key", "pyproject.toml", "slect"))
QUIET = ReportOptions(quiet=True)


# concise


def test_concise() -> None:
    result = CheckResult(findings=(OPEN, BARE, FINDING), diagnostics=(DIAGNOSTIC,), files=3)
    assert render_concise(result, ReportOptions()) == (
        "src/a.py:3:1: warning CG102 device-to-host-copy [likely] m\n"
        "src/a.py:12:9: error CG101 host-scalar-read [certain] `.item()` makes the CPU wait\n"
        "b.py:3:1: error CG000 unreadable-file  cannot be read: Permission denied\n"
        "1 error, 1 warning, 1 suppressed (2 files checked, 0 regions); 1 file could not be checked\n"
        "1 fixable with --fix --unsafe-fixes\n"
    )


def test_concise_is_one_line_whatever_the_message_holds() -> None:
    verdict = Verdict(VerdictStatus.CONFIRMED, "e")
    finding = replace(OPEN, path="a\nb.py", message="two\nlines \x1b[31m", verdict=verdict)
    assert render_concise(CheckResult(findings=(finding,)), QUIET) == (
        "a?b.py:12:9: error CG101 host-scalar-read [certain] two lines ?[31m (confirmed)\n"
    )
    assert render_concise(CheckResult(), QUIET) == ""


def test_rules_are_links_on_a_terminal() -> None:
    options = ReportOptions(color=True, rule_url="https://example.org/{code}.md", quiet=True)
    linked = "\x1b]8;;https://example.org/CG101.md\x1b\\"
    for render in (render_concise, render_text):
        assert linked in render(CheckResult(findings=(OPEN,)), options)
        assert "\x1b]8" not in render(CheckResult(findings=(OPEN,)), replace(options, color=False))
        assert "\x1b]8" not in render(CheckResult(findings=(OPEN,)), replace(options, rule_url=None))


def test_the_full_format_says_where_a_rule_s_page_is() -> None:
    options = ReportOptions(rule_url="https://example.org/{code}.md", quiet=True)
    assert render_text(CheckResult(findings=(OPEN,)), options).endswith("  see: https://example.org/CG101.md\n")
    assert json.loads(render_json(CheckResult(findings=(OPEN,)), options))["findings"][0]["url"] == (
        "https://example.org/CG101.md"
    )


# GitHub


def test_github() -> None:
    assert render_github(CheckResult(findings=(OPEN,)), ReportOptions()) == (
        "::error title=capturelint (CG101),file=src/a.py,line=12,endLine=12,col=9,endColumn=23"
        "::host-scalar-read [certain]: `.item()` makes the CPU wait%0Acaptured here: src/run.py:40"
        "%0Acalled from: src/run.py:41%0Ahelp: read it after replay\n"
    )


def test_github_leaves_columns_out_over_several_lines() -> None:
    assert render_github(CheckResult(findings=(BARE,)), ReportOptions()) == (
        "::warning title=capturelint (CG102),file=src/a.py,line=3,endLine=4"
        "::device-to-host-copy [likely]: m%0Ahelp: h\n"
    )


def test_github_escapes() -> None:
    finding = replace(OPEN, path="a,b:c%.py", message="100%\r\n::error::x", regions=(), help="")
    assert render_github(CheckResult(findings=(finding,)), ReportOptions()) == (
        "::error title=capturelint (CG101),file=a%2Cb%3Ac%25.py,line=12,endLine=12,col=9,endColumn=23"
        "::host-scalar-read [certain]: 100%25%0D%0A::error::x\n"
    )


def test_github_shows_what_counts() -> None:
    assert render_github(CheckResult(findings=(FINDING, REFUTED)), ReportOptions()) == ""
    assert render_github(CheckResult(diagnostics=(DIAGNOSTIC,)), ReportOptions()) == (
        "::error title=capturelint (CG000),file=b.py,line=3::unreadable-file: cannot be read: Permission denied\n"
    )
    assert render_github(FAILURE, ReportOptions()) == (
        "::error title=capturelint (config-error),file=pyproject.toml::pyproject.toml: slect: unknown key\n"
    )


def test_paths_start_at_the_repository_s_top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    result, options = CheckResult(findings=(OPEN,)), ReportOptions(base=tmp_path)
    assert "file=sub/src/a.py,line=12" in render_github(result, options)
    assert json.loads(render_gitlab(result, options))[0]["location"]["path"] == "sub/src/a.py"
    assert 'file="sub/src/a.py"' in render_junit(result, options)


# GitLab


def issues(*findings: Any, diagnostics: tuple[Diagnostic, ...] = ()) -> list[dict[str, Any]]:
    return list(json.loads(render_gitlab(CheckResult(findings=findings, diagnostics=diagnostics), ReportOptions())))


def test_gitlab() -> None:
    assert issues(OPEN) == [
        {
            "type": "issue",
            "check_name": "CG101",
            "description": "host-scalar-read [certain]: `.item()` makes the CPU wait",
            "categories": ["Bug Risk"],
            "severity": "major",
            "fingerprint": "0123456789abcdef",
            "location": {"path": "src/a.py", "lines": {"begin": 12, "end": 12}},
        }
    ]
    assert issues() == []
    assert issues(FINDING, REFUTED) == []


def test_gitlab_severities() -> None:
    (unchecked, warning, error) = issues(OPEN, BARE, diagnostics=(DIAGNOSTIC,))
    assert [each["severity"] for each in (unchecked, warning, error)] == ["blocker", "minor", "major"]
    assert unchecked["location"] == {"path": "b.py", "lines": {"begin": 3, "end": 3}}


def test_gitlab_fingerprints_are_unique_and_never_empty() -> None:
    same = replace(OPEN, span=Span(13, 9, 13, 23))
    assert [each["fingerprint"] for each in issues(OPEN, same)] == ["0123456789abcdef", "0123456789abcdef-2"]
    bare = [each["fingerprint"] for each in issues(BARE, replace(BARE, span=Span(9, 1, 9, 2)))]
    assert len({*bare, ""}) == 3


def test_gitlab_of_a_run_that_went_wrong() -> None:
    (issue,) = json.loads(render_gitlab(FAILURE, ReportOptions()))
    assert (issue["check_name"], issue["severity"]) == ("config-error", "blocker")
    assert issue["description"] == "pyproject.toml: slect: unknown key"
    assert issue["location"] == {"path": "pyproject.toml", "lines": {"begin": 1, "end": 1}}


# JUnit


def suites(result: CheckResult, gate: Gate | None = None) -> ElementTree.Element:
    return ElementTree.fromstring(render_junit(result, ReportOptions(gate=gate or Gate())))


def counts(element: ElementTree.Element) -> tuple[int, ...]:
    return tuple(int(element.attrib[name]) for name in ("tests", "failures", "errors", "skipped"))


def test_junit() -> None:
    top = suites(CheckResult(findings=(OPEN, BARE, FINDING), diagnostics=(DIAGNOSTIC,)))
    assert counts(top) == (4, 1, 1, 1)
    assert [(suite.attrib["name"], counts(suite)) for suite in top] == [
        ("b.py", (1, 0, 1, 0)),
        ("src/a.py", (3, 1, 0, 1)),
    ]
    (failure,) = top.iter("failure")
    assert failure.attrib == {"type": "error", "message": "`.item()` makes the CPU wait"}
    assert failure.text == (
        "src/a.py:12:9: `.item()` makes the CPU wait\ncaptured here: src/run.py:40\ncalled from: src/run.py:41\n"
        "help: read it after replay"
    )
    (skipped,) = top.iter("skipped")
    assert skipped.attrib == {"message": "read once"}
    assert [case.attrib["line"] for case in top.iter("testcase")] == ["3", "3", "12", "12"]


def test_junit_fails_what_fails_the_run() -> None:
    result = CheckResult(findings=(OPEN, BARE))
    assert counts(suites(result)) == (2, 1, 0, 0)
    assert counts(suites(result, Gate(fail_on=Severity.WARNING))) == (2, 2, 0, 0)
    assert counts(suites(result, Gate(Severity.WARNING, Confidence.CERTAIN))) == (2, 1, 0, 0)
    top = suites(CheckResult(findings=(REFUTED,)))
    assert counts(top) == (1, 0, 0, 1)
    assert [each.attrib["message"] for each in top.iter("skipped")] == ["refuted on NVIDIA H200: capture succeeds"]


def test_junit_of_nothing_is_a_test_that_passes() -> None:
    assert counts(suites(CheckResult())) == (1, 0, 0, 0)


def test_junit_of_a_run_that_went_wrong() -> None:
    top = suites(FAILURE)
    assert counts(top) == (1, 0, 1, 0)
    (error,) = top.iter("error")
    assert error.attrib == {"type": "config-error", "message": "pyproject.toml: slect: unknown key"}


def test_junit_holds_any_text() -> None:
    odd = replace(
        OPEN, path="a\x00<&\udcff.py", message='"\x1b]\ud800 größe & <b>', suppressed=Suppression("c", "\x07")
    )
    top = suites(CheckResult(findings=(odd, replace(odd, suppressed=None))))
    (failure,) = top.iter("failure")
    assert failure.attrib["message"] == '"?]? größe & <b>'
    assert [suite.attrib["name"] for suite in top] == ["a?<&?.py"]


# statistics


def test_statistics() -> None:
    result = CheckResult(findings=(BARE, OPEN, replace(OPEN, span=Span(1, 1, 1, 2)), FINDING), files=2)
    assert render_statistics(result, ReportOptions()) == (
        "2  CG101  host-scalar-read\n"
        "1  CG102  device-to-host-copy\n"
        "2 errors, 1 warning, 1 suppressed (2 files checked, 0 regions)\n"
        "2 fixable with --fix --unsafe-fixes\n"
    )
    assert json.loads(render_statistics_json(result, ReportOptions())) == {
        "version": 1,
        "statistics": [
            {"rule": "CG101", "name": "host-scalar-read", "severity": "error", "count": 2},
            {"rule": "CG102", "name": "device-to-host-copy", "severity": "warning", "count": 1},
        ],
        "errors": [],
    }
    assert render_statistics(CheckResult(), QUIET) == ""
