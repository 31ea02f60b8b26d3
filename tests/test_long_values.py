"""A value that is worked out line after line, each time from itself, is followed in the time that its lines take."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from conftest import write_files

LINES = "\n".join(f"        x = self.layer(x + {number}) + self.mix(x)" for number in range(40))
PROGRAM = f"""\
import torch


class Runner:
    def __init__(self, layer, mix, rows: int):
        self.layer, self.mix = layer, mix
        self.x = torch.zeros(rows, 8, device="cuda")
        self.graph = torch.cuda.CUDAGraph()

    def body(self, x):
{LINES}
        return x.mean(dim=0)

    def capture(self):
        self.body(self.x)
        with torch.cuda.graph(self.graph):
            self.out = self.body(self.x)

    def step(self, x):
        self.x[: x.size(0)] = x
        self.graph.replay()
        return self.out.clone()
"""


def test_what_is_reduced_is_followed_back_once(tmp_path: Path) -> None:
    """Followed back by each way of its own, the sum of forty lines takes longer than anyone waits."""
    write_files(tmp_path, {"run.py": PROGRAM})
    command = [sys.executable, "-m", "capturelint", "check", "--no-cache", "--format", "concise", str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    lines = [int(line.split(":")[1]) for line in found.stdout.splitlines() if "CG506" in line]
    assert lines == [PROGRAM.splitlines().index("        self.x[: x.size(0)] = x") + 1], found.stderr
