"""What the command line refuses, so that nothing is lost or passed over."""

from __future__ import annotations

from pathlib import Path

import pytest

from capturelint.cli.main import main

HAZARD = """
import torch

def step(x: torch.Tensor):  # capturelint: region
    return x.item()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "a.py").write_text(HAZARD, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_report_does_not_overwrite_python_files(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--output", "json:a.py", "a.py"]) == 2
    assert "a report would overwrite it" in capsys.readouterr().err
    assert (project / "a.py").read_text(encoding="utf-8") == HAZARD


def test_a_bad_pattern_in_per_file_ignores_names_the_key(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "capturelint.toml").write_text('[per-file-ignores]\n"[z-a].py" = ["CG1"]\n', encoding="utf-8")
    assert main(["check", "a.py"]) == 2
    error = capsys.readouterr().err
    assert error.startswith('error: capturelint.toml: per-file-ignores."[z-a].py": not a pattern')


def test_code_nested_too_deeply_is_said_and_hides_nothing_elsewhere(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    terms = " + ".join(["x"] * 20_000)
    deep = f"import torch\n\ndef deep(x: torch.Tensor):  # capturelint: region\n    return {terms}\n"
    (project / "deep.py").write_text(deep, encoding="utf-8")
    assert main(["check", "."]) == 1
    out = capsys.readouterr().out
    assert "nested too deeply" in out
    assert "a.py:5:12: error CG101" in out


def test_a_selection_that_ignores_everything_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--select", "CG101", "--ignore", "CG101", "a.py"]) == 2
    assert "no rule is left to check" in capsys.readouterr().err
    assert main(["check", "--select", "CG101", "--ignore", "CG1", "a.py"]) == 1  # the more precise selector wins


def test_the_two_ways_to_verify_exclude_each_other(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--verify-on-gpu", "--verify-if-possible", "a.py"]) == 2
    assert "give one of them" in capsys.readouterr().err


def test_a_working_directory_that_is_gone_is_said(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = project / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    try:
        assert main(["check"]) == 2
    finally:
        monkeypatch.chdir(project)
    assert capsys.readouterr().err == "error: the working directory does not exist any more\n"


@pytest.mark.parametrize("limit", ["nan", "inf", "0"])
def test_time_limits_are_numbers_of_seconds(project: Path, capsys: pytest.CaptureFixture[str], limit: str) -> None:
    assert main(["check", "--verify-if-possible", "--time-limit", limit, "a.py"]) == 2
    assert "--time-limit" in capsys.readouterr().err
