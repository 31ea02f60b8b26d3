"""Files that are handed over one by one, as pre-commit does: what is told of them, and of no other file."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import write_files
from scoring import check

_RUNNER = """
import torch
from torch import nn


class Runner:
    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.x = torch.zeros(8, 16, device="cuda")
        self.graph = torch.cuda.CUDAGraph()

    def capture(self) -> None:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self.model(self.x)
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(self.graph):
            self.y = self.model(self.x)
"""
_SERVE = """
import torch

from pkg.runner import Runner


def serve(model: torch.nn.Module, batches: list[torch.Tensor]) -> list[torch.Tensor]:
    runner = Runner(model)
    runner.capture()
    outputs = []
    for batch in batches:
        runner.x = batch.cuda()
        runner.graph.replay()
        outputs.append(runner.y.clone())
    return outputs
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_files(tmp_path, {"pkg/__init__.py": "", "pkg/runner.py": _RUNNER, "pkg/serve.py": _SERVE})
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("asked", ["pkg", "pkg/serve.py"])
def test_a_file_that_replays_is_judged_by_the_capture_elsewhere(root: Path, asked: str) -> None:
    (finding,) = check(root / asked, root).findings
    assert (finding.rule, finding.path, finding.span.line) == ("CG501", "pkg/serve.py", 12)


def test_nothing_is_said_of_a_file_that_was_not_asked_about(root: Path) -> None:
    result = check(root / "pkg" / "runner.py", root)
    assert len(result.regions) == 1
    assert result.findings == ()
