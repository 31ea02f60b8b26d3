"""The commands that verify, on a machine without a GPU; what they do with one is in tests/gpu."""

from __future__ import annotations

from pathlib import Path

import pytest

from capturelint.cli.main import main

torch = pytest.importorskip("torch")
without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="about machines without a GPU")

SOURCE = """\
import torch

from capturelint import capture_region


@capture_region(inputs={"x": "float32[8, 16]"})
def region(x: torch.Tensor) -> torch.Tensor:
    return x * x.sum().item()


def capture(model, x):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x)
    return graph, y
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "a.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "capturelint.toml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@without_gpu
@pytest.mark.parametrize("arguments", [["check", "a.py", "--verify-on-gpu"], ["verify", "a.py"]])
def test_without_a_gpu_it_says_so_in_one_line_and_exits_with_2(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert "CUDA" in captured.err


@without_gpu
def test_if_possible_checks_all_the_same(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "a.py", "--verify-if-possible"]) == 1
    captured = capsys.readouterr()
    assert "CG101" in captured.out
    assert captured.err.startswith("not verified: ")


def test_only_confirmed_needs_a_verifier(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Alone it would let every finding pass without a word."""
    assert main(["check", "a.py"]) == 1
    capsys.readouterr()
    assert main(["check", "a.py", "--only-confirmed"]) == 2
    assert capsys.readouterr().err.startswith("error: --only-confirmed needs --verify-on-gpu")


def test_init_writes_a_harness_that_can_be_read(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--init"]) == 0
    file = project / "capturelint-harness.yaml"
    assert capsys.readouterr().out == file.read_text(encoding="utf-8")
    from capturelint.verifier.harness import read_file

    (entry,) = read_file(file, file.name)
    assert entry.region == "a.py:capture"
    assert main(["verify", "--init"]) == 2


def test_a_bad_harness_is_one_line_with_file_and_key(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "h.yaml").write_text("harness:\n  - region: a.py:capture\n    rum: x:y\n", encoding="utf-8")
    assert main(["verify", "a.py", "--harness", "h.yaml"]) == 2
    assert "h.yaml: harness[0].rum: unknown key; did you mean 'run'?" in capsys.readouterr().err


def test_help_says_that_the_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--help"]) == 0
    assert "THIS RUNS THE CODE" in " ".join(capsys.readouterr().out.split())
    assert main(["check", "--help"]) == 0
    assert "THIS RUNS THE CODE" in " ".join(capsys.readouterr().out.split())


@without_gpu
def test_the_function_says_what_it_needs() -> None:
    import capturelint
    from capturelint.errors import UsageError

    with pytest.raises(UsageError, match="needs a CUDA device"):
        capturelint.verify(lambda x: x, inputs=["float32[4]"])
