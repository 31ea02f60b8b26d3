"""Settings for some of the files: from the configuration to findings and the exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Cli, write_files

#: one error that is certain, one warning, in the region of each file
PROGRAM = """\
import torch

graph = torch.cuda.CUDAGraph()
static = torch.zeros(4, device="cuda")
with torch.cuda.graph(graph):
    static.sum().item()
"""
#: what is only possible: a capture in a loop, with garbage collection on
MAYBE = """\
import torch

pool = torch.cuda.graph_pool_handle()
static = torch.zeros(8, device="cuda")
for size in (8, 4):
    with torch.cuda.graph(torch.cuda.CUDAGraph(), pool=pool):
        static[:size].add_(1)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, {"src/a.py": PROGRAM, "tests/a.py": PROGRAM, "tests/maybe.py": MAYBE, "src/maybe.py": MAYBE})
    return tmp_path


def configure(project: Path, text: str) -> None:
    (project / "capturelint.toml").write_text(text)


def found(cli: Cli, *arguments: str) -> set[tuple[str, str]]:
    report = json.loads(cli("check", "--format", "json", *arguments).out)
    assert report["errors"] == []
    return {(finding["path"], finding["rule"]) for finding in report["findings"]}


def test_without_overrides(project: Path, cli: Cli) -> None:
    configure(project, "")
    assert found(cli, "--select", "CG101,CG809") == {("src/a.py", "CG101"), ("tests/a.py", "CG101")}


def test_rules_are_left_out(project: Path, cli: Cli) -> None:
    configure(project, '[[overrides]]\npaths = ["tests/**"]\nignore = ["CG1"]\n')
    assert found(cli) == {("src/a.py", "CG101")}
    assert cli("check", "tests").status == 0
    assert cli("check", "src").status == 1


def test_rules_are_added(project: Path, cli: Cli) -> None:
    configure(project, 'select = ["CG8"]\n[[overrides]]\npaths = ["src/"]\nselect = ["CG1"]\n')
    assert found(cli) == {("src/a.py", "CG101")}
    assert found(cli, "--select", "CG101") == {("src/a.py", "CG101"), ("tests/a.py", "CG101")}  # for all files
    assert found(cli, "--ignore", "CG101") == set()


def test_confidence(project: Path, cli: Cli) -> None:
    configure(project, '[[overrides]]\npaths = ["tests/**"]\nmin-confidence = "possible"\n')
    possible = ("tests/maybe.py", "CG809")
    assert found(cli) - found(cli, "--min-confidence", "likely") == {possible}
    assert possible not in found(cli, "--min-confidence", "likely")
    assert ("src/maybe.py", "CG809") in found(cli, "--min-confidence", "possible")
    report = json.loads(cli("check", "--format", "json", "--select", "CG809").out)
    assert report["summary"]["hidden"] == 1  # that of src


def test_a_higher_confidence_hides(project: Path, cli: Cli) -> None:
    configure(project, 'min-confidence = "possible"\n[[overrides]]\npaths = ["src"]\nmin-confidence = "certain"\n')
    assert ("src/maybe.py", "CG809") not in found(cli)
    assert ("tests/maybe.py", "CG809") in found(cli)


def test_severity_decides_the_exit_status(project: Path, cli: Cli) -> None:
    write_files(project, {"tests/a.py": "x = 1  # capturelint: ignore[CG101]\n", "src/a.py": ""})
    configure(project, "")
    assert cli("check").status == 0  # an unused suppression is a warning
    configure(project, '[[overrides]]\npaths = ["tests/**"]\nfail-on = "warning"\n')
    assert cli("check").status == 1
    assert cli("check", "src").status == 0
    assert cli("check", "--fail-on", "error").status == 0


def test_the_later_override_counts(project: Path, cli: Cli) -> None:
    configure(
        project,
        '[[overrides]]\npaths = ["tests/**"]\nselect = ["CG8"]\n'
        '[[overrides]]\npaths = ["tests/a.py"]\nselect = ["CG101"]\nignore = ["CG3"]\n',
    )
    assert found(cli) == {("src/a.py", "CG101"), ("tests/a.py", "CG101")}


def test_a_comment_about_a_rule_that_is_off_is_not_unused(project: Path, cli: Cli) -> None:
    suppressed = PROGRAM.replace(".item()", ".item()  # capturelint: ignore[CG101] fine")
    write_files(project, {"tests/a.py": suppressed})
    configure(project, '[[overrides]]\npaths = ["tests/**"]\nignore = ["CG101"]\n')
    assert found(cli) == {("src/a.py", "CG101")}


def test_unknown_rules_and_patterns_are_errors(project: Path, cli: Cli) -> None:
    configure(project, '[[overrides]]\npaths = ["a"]\nselect = ["CG1O1"]\n')
    assert cli("check").err == (
        "error: capturelint.toml: overrides[0].select: unknown rule 'CG1O1'; did you mean 'CG101'?\n"
    )
    configure(project, '[[overrides]]\npaths = ["a", "b/***/["]\nignore = ["CG1"]\n')
    ran = cli("check")
    assert ran.status in (0, 1, 2)
    assert "Traceback" not in ran.err


def test_a_sub_directory_s_run_has_the_same_settings(project: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(project, '[[overrides]]\npaths = ["tests/**"]\nignore = ["CG1"]\n')
    monkeypatch.chdir(project / "tests")
    assert found(cli) == set()
    assert found(cli, "../src") == {(str(project / "src/a.py"), "CG101")}


def test_fingerprints_do_not_depend_on_the_working_directory(
    project: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = (
        PROGRAM + "    static.sum().item()\nx = 1  # capturelint: ignore[CG101]\ny = 1  # capturelint: ignore[CG101]\n"
    )
    write_files(project, {"src/a.py": same})
    configure(project, "")

    def fingerprints(path: str) -> list[str]:
        report = json.loads(cli("check", "--format", "json", path).out)
        return [finding["fingerprint"] for finding in report["findings"]]

    from_the_top = fingerprints("src")
    assert len(set(from_the_top)) == 4
    monkeypatch.chdir(project / "src")
    assert fingerprints(".") == from_the_top
    monkeypatch.chdir(project / "tests")
    assert fingerprints("../src") == from_the_top
