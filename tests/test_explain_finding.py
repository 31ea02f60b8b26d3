"""``capturelint explain-finding``: what a finding rests on, and what is said where there is none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import write_files

from capturelint.cli.main import main

PROJECT = {
    "pyproject.toml": "",
    "runner.py": """\
import torch

from backends import Backend


class Runner:
    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.x = torch.zeros(8, device="cuda")

    def capture(self) -> None:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.out = self.backend.forward(self.x, True)
""",
    "backends.py": """\
import torch


class Backend:
    def forward(self, x: torch.Tensor, fast: bool) -> torch.Tensor:
        raise NotImplementedError


class Dense(Backend):
    def forward(self, x: torch.Tensor, fast: bool) -> torch.Tensor:
        half = x / 2
        if fast:
            for _ in range(2):
                half = half * half.max().item()
        return half


class Sparse(Backend):
    def forward(self, x: torch.Tensor, fast: bool, hint: int | None = None) -> torch.Tensor:
        if self.table is None:
            self.table = x.cpu()
        return x

    table: torch.Tensor | None = None
""",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_files(tmp_path, PROJECT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def explained(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["explain-finding", *arguments]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["explain-finding", *arguments]) == 2
    return capsys.readouterr().err


def test_shows_region_calls_values_and_branches(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = explained(capsys, "backends.py:14")
    assert "CG101 host-scalar-read [likely]" in text
    assert "runner.py:13  torch.cuda.graph in Runner.capture" in text
    assert "self.out = self.backend.forward(self.x, True)\n      likely: one of 2 callees" in text
    assert "line 14  half.max()\n      a device tensor [certain]" in text
    assert "line 11  half = x / 2" in text
    assert "line 12  if fast:\n      where this holds; known at capture to be True" in text
    assert "line 13  for _ in range(2):\n      in this loop" in text


def test_says_why_a_finding_is_only_possible(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = explained(capsys, "backends.py:21")
    assert "[possible]" in text
    assert "line 20  if self.table is None:\n      where this holds; not decided" in text
    assert "only possible at capture: it runs until it has set what it asks for" in text


def test_a_rule_chooses_and_a_column_is_let_be(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "CG101" in explained(capsys, "backends.py:14:27:", "host-scalar-read")
    assert "no finding of CG301 at backends.py:14; there is CG101" in refused(capsys, "backends.py:14", "CG301")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("backends.py", "names no line: it has to be PATH:LINE"),
        ("backends.py:0", "names no line"),
        ("backends.py:x", "names no line"),
        (":3", "names no line"),
        ("", "names no line"),
        (".:3", "is a directory"),
        ("missing.py:3", "missing.py"),
        ("backends.py:999", "no finding at backends.py:999; the nearest are on line"),
        ("runner.py:1", "no finding at runner.py:1"),
    ],
)
def test_says_what_is_wrong_with_a_place(
    project: Path, capsys: pytest.CaptureFixture[str], place: str, message: str
) -> None:
    assert message in refused(capsys, place)


def test_unknown_rules_and_files_that_cannot_be_parsed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "CG9999" in refused(capsys, "backends.py:14", "CG9999")
    (project / "broken.py").write_text("def f(:\n", encoding="utf-8")
    assert "broken.py:1: invalid syntax" in refused(capsys, "broken.py:1")


def test_help_says_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    text = explained(capsys, "--help")
    assert "explain-finding [OPTIONS] PATH:LINE [RULE]" in text
    assert "how sure it is" in text


def test_readme_shows_what_it_says(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    top = Path(__file__).parent.parent
    monkeypatch.chdir(top)
    readme = (top / "README.md").read_text(encoding="utf-8")
    sample = re.search(
        r"<!-- explanation -->\n```console\n\$ capturelint explain-finding (\S+)\n(.*?)\.\.\.\n", readme, re.S
    )
    assert sample is not None
    assert explained(capsys, sample[1]).startswith(sample[2])
