"""A fault of the tool's own in one rule about graphs costs what that rule says of one graph, and is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import write_files

from capturelint.check import CheckOptions, check_paths
from capturelint.config import Config
from capturelint.model import Confidence

PROGRAM = """\
import torch


class Runner:
    def __init__(self, model, x: torch.Tensor):
        self.model = model
        self.x = x.cuda()
        self.graph = torch.cuda.CUDAGraph()

    def capture(self):
        with torch.cuda.graph(self.graph):
            self.out = self.model(self.x)

    def step(self, x):
        self.x = x
        self.graph.replay()
        return self.out.clone()
"""


def test_what_other_rules_say_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, {"run.py": PROGRAM})
    monkeypatch.delenv("CAPTURELINT_DEBUG", raising=False)
    monkeypatch.setattr("capturelint.lifecycle.padding.find", lambda *_: 1 / 0)
    result = check_paths(CheckOptions((tmp_path,), Config(), (), (), Confidence.LIKELY, tmp_path))
    (diagnostic,) = result.diagnostics
    assert diagnostic.line == 11
    assert diagnostic.message.startswith("internal error: ZeroDivisionError: division by zero")
    assert {(finding.rule, finding.span.line) for finding in result.findings} == {("CG501", 15)}
