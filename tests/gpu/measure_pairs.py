# ruff: noqa: E402 - the tests' folder goes on the import path first
"""Captures the one-line snippets of ``tests/pairs.py`` and writes what came out to fixtures/gpu/index_pairs.json.

``python tests/gpu/measure_pairs.py [workers]`` needs one GPU, torch and NumPy, and a minute with 8 workers. A worker
goes on until its process can capture no more, and a fresh one takes over.
CAPTURELINT_GPU_RESULTS names another directory to write to.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests")]

from pairs import LETTERS, VALUES, Snippet, snippets

RESULTS = Path(os.environ.get("CAPTURELINT_GPU_RESULTS", ROOT / "fixtures" / "gpu"))
#: what an error says after which the process is of no more use: its cause may be an earlier snippet
_BROKEN = ("device-side assert", "illegal memory access")


def trial(snippet: Snippet) -> str | None:
    """What capturing the snippet comes to; None where the process was broken before it began."""
    import numpy as np
    import torch

    space: dict[str, Any] = {"torch": torch, "np": np}
    try:
        exec(snippet.prepare, space)
        with torch.cuda.stream(torch.cuda.Stream()):
            exec(snippet.code, space)
        torch.cuda.synchronize()
        exec(snippet.prepare, space)
        torch.cuda.synchronize()
    except Exception as error:
        return None if any(text in str(error) for text in _BROKEN) else "eager-error"
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            exec(snippet.code, space)
        graph.replay()
        torch.cuda.synchronize()
    except Exception:
        return "capture-error"
    return "captured"


def usable() -> bool:
    """Whether the process still captures: after a failed capture it may not."""
    import torch

    try:
        x = torch.zeros(4, device="cuda")
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = x + 1
        graph.replay()
        return bool((y == 1).all())
    except Exception:
        return False


def work(numbers: list[int]) -> None:
    """Runs these snippets in this process, one line each, as long as it is of use."""
    warnings.simplefilter("ignore")
    every = list(snippets())
    for count, number in enumerate(numbers):
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            outcome = trial(every[number])
        if outcome is None and count:
            return
        sys.stdout.write(json.dumps([number, outcome or "lost"]) + "\n")
        sys.stdout.flush()
        if outcome is None or (outcome == "capture-error" and not usable()):
            return


def drive(numbers: list[int]) -> dict[int, str]:
    """The outcomes of some snippets, from as many processes as it takes."""
    outcomes: dict[int, str] = {}
    while numbers:
        command = [sys.executable, __file__, "--work", *map(str, numbers)]
        try:
            output = subprocess.run(command, capture_output=True, text=True, timeout=240).stdout
        except subprocess.TimeoutExpired as error:
            output = (error.stdout or b"").decode()
        found = dict(json.loads(line) for line in output.splitlines() if line.startswith("["))
        outcomes.update(found or {numbers[0]: "lost"})
        numbers = [number for number in numbers if number not in outcomes]
    return outcomes


def record(outcomes: dict[int, str]) -> dict[str, Any]:
    """One letter for each value that is written, in the order of ``values``; a word for each other snippet."""
    pairs: dict[str, dict[str, dict[str, str]]] = {}
    others: dict[str, str] = {}
    for number, snippet in enumerate(snippets()):
        outcome = outcomes.get(number, "lost")
        if snippet.kind == "other":
            others[snippet.code] = outcome
            continue
        row = pairs.setdefault(snippet.base, {}).setdefault(snippet.index, {})
        row[snippet.kind] = row.get(snippet.kind, "") + LETTERS[outcome]
    return {"letters": LETTERS, "values": list(VALUES), "pairs": pairs, "others": others}


def text_of(document: dict[str, Any]) -> str:
    """JSON with a line for each index and each other snippet."""
    lines = [f" {json.dumps(key)}: {json.dumps(value)}," for key, value in document.items() if key not in _TABLES]
    bases = []
    for base, rows in document["pairs"].items():
        inner = ",\n".join(f"   {json.dumps(index)}: {json.dumps(row)}" for index, row in rows.items())
        bases.append(f"  {json.dumps(base)}: {{\n{inner}\n  }}")
    others = ",\n".join(f"  {json.dumps(code)}: {json.dumps(outcome)}" for code, outcome in document["others"].items())
    tables = ' "pairs": {\n' + ",\n".join(bases) + '\n },\n "others": {\n' + others + "\n }"
    return "{\n" + "\n".join(lines) + "\n" + tables + "\n}\n"


_TABLES = ("pairs", "others")


def main(workers: int) -> None:
    import torch

    total = sum(1 for _ in snippets())
    outcomes: dict[int, str] = {}
    with ThreadPoolExecutor(workers) as pool:
        for part in pool.map(drive, (list(range(start, total, workers)) for start in range(workers))):
            outcomes.update(part)
    device = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name()}
    (RESULTS / "index_pairs.json").write_text(text_of({**device, **record(outcomes)}), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work([int(number) for number in sys.argv[2:]])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 8)
