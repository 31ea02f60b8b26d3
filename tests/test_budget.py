"""A function that takes too long to follow is said to be left there, and the rest goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import write_files

from capturelint.check import CheckOptions, check_paths
from capturelint.config import Config
from capturelint.model import CheckResult, Confidence
from capturelint.report.regions_text import render_regions

LINES = "\n".join(f"    y = y + {number}" for number in range(100))
PROGRAM = f"""\
import torch


def long(x):
    y = x.max().item()
{LINES}
    y.cpu()


def short(x):
    return x.tolist()


def run(g, x: torch.Tensor):
    static = torch.zeros(4, device="cuda")
    with torch.cuda.graph(g):
        long(static)
        short(static)
"""


def check(root: Path) -> CheckResult:
    return check_paths(CheckOptions((root,), Config(), (), (), Confidence.LIKELY, root))


def test_what_is_beyond_the_budget_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, {"run.py": PROGRAM})
    monkeypatch.setattr("capturelint.values.statements._BUDGET", 50)
    result = check(tmp_path)
    (left,) = result.regions[0].unresolved
    assert (left.line, left.reason) == (55, "too many ways to get here; what follows is not looked at")
    assert {(finding.rule, finding.span.line) for finding in result.findings} == {("CG101", 5), ("CG101", 110)}
    assert "could not follow 1 call" in render_regions(result)


def test_expressions_count_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, {"run.py": PROGRAM})
    monkeypatch.setattr("capturelint.values.statements._EXPRESSIONS", 150)
    (left,) = check(tmp_path).regions[0].unresolved
    assert left.reason == "too many ways to get here; what follows is not looked at"
    assert 50 < left.line < 105


def test_usual_functions_are_followed_to_their_end(tmp_path: Path) -> None:
    write_files(tmp_path, {"run.py": PROGRAM.replace("y = x.max().item()", "y = x")})
    result = check(tmp_path)
    assert result.regions[0].unresolved == ()
    assert ("CG102", 106) in {(finding.rule, finding.span.line) for finding in result.findings}


LOOPS = "\n".join("    " * (level + 2) + "for rows in rows:" for level in range(8))
ENDS = "\n".join("    " * (level + 3) + "rows = (rows, y)" for level in reversed(range(8)))
NESTED = f"""\
import torch


def run(graph, x: torch.Tensor):
    x = x.cuda()
    with torch.cuda.graph(graph):
        rows = y = x
{LOOPS}
{"    " * 10}y = [rows, 1]
{ENDS}
        x.item()
"""


@pytest.mark.parametrize(("budget", "found"), [(3000, set()), (5000, {("CG101", 25)})])
def test_large_values_count_by_their_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: int, found: set[tuple[str, int]]
) -> None:
    """The same thousand statements take longer where each round puts more around a value."""
    write_files(tmp_path, {"run.py": NESTED})
    monkeypatch.setattr("capturelint.values.statements._EXPRESSIONS", budget)
    result = check(tmp_path)
    assert {(finding.rule, finding.span.line) for finding in result.findings} == found
    assert bool(result.regions[0].unresolved) is not bool(found)
