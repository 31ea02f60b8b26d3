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


HEAD = """\
import torch

def run(graph, x: torch.Tensor, flag, self):
    x = x.cuda()
    with torch.cuda.graph(graph):
"""


def findings_of(tmp_path: Path, body: str) -> set[tuple[str, int]]:
    """Rules and lines (of the region's block) that are reported, by a process that is given a minute."""
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    write_files(tmp_path, {"run.py": f"{HEAD}{lines}\n"})
    command = [sys.executable, "-m", "capturelint", "check", "--no-cache", "--format", "concise", str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "internal error" not in found.stderr
    reports = [line for line in found.stdout.splitlines() if " CG" in line]
    return {(line.split(" CG")[1][:3], int(line.split(":")[1]) - 5) for line in reports}


DOUBLED = "\n".join(["pair = (pair, pair)", "rows = [rows, rows]", "table = {1: table, 2: table}"] * 40)


def test_what_doubles_with_each_line_is_not_followed_into_its_billions(tmp_path: Path) -> None:
    body = f"pair = rows = table = x\n{DOUBLED}\nif flag:\n    pair = rows\nprint(pair, rows, table)\nx.item()"
    assert findings_of(tmp_path, body) == {("101", 125)}


def test_what_is_a_few_levels_down_is_found(tmp_path: Path) -> None:
    body = "pair = (x, 1)\nfor _ in range(1):\n    deep = ([pair, 2], {'a': (pair, 3)})\ndeep[1]['a'][0][0].item()"
    assert findings_of(tmp_path, body) == {("101", 4)}


def test_lists_that_are_added_to_themselves_end_as_some_list(tmp_path: Path) -> None:
    body = "rows = [x]\n" + "rows = rows + rows\n" * 60 + "rows[0].item()\nx.item()"
    assert ("101", 63) in findings_of(tmp_path, body)


def test_texts_that_double_end_as_some_text(tmp_path: Path) -> None:
    body = "text = 'ab'\n" + "text = text + text\n" * 60 + "if text == 'ab':\n    x.cpu()\nx.item()"
    assert ("101", 64) in findings_of(tmp_path, body)


def test_names_put_together_from_many_parts_are_not_all_made(tmp_path: Path) -> None:
    parts = "".join(f"a{i} = 'p' if flag else 'q'\n" for i in range(40))
    name = "".join(f"{{a{i}}}" for i in range(40))
    assert findings_of(tmp_path, f"{parts}getattr(self, f'{name}')(x)\nx.item()") == {("101", 42)}
