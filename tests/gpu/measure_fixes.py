# ruff: noqa: E402 - the repository goes on the import path first
"""Captures the programs of fixtures/fixes/safe before and after ``--fix`` and writes fixtures/gpu/fixes.json.

``python tests/gpu/measure_fixes.py [workers]`` needs one GPU, and a minute with 8 workers. Each program runs in a
process of its own, since a failed capture may spoil the next. CAPTURELINT_GPU_RESULTS names another directory
to write to.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from fix_programs import Case, cases, differences, files, loaded, made, ran, tensors
from fixing import fixed

RESULTS = Path(os.environ.get("CAPTURELINT_GPU_RESULTS", ROOT / "fixtures" / "gpu"))
#: eager steps of an optimizer and captured ones round in another order
_TOLERANCE = {"optimizer.program": 1e-5}


def captured_and_replayed(case: Case, function: Callable[..., Any], reference: Callable[..., Any]) -> list[str]:
    """What replays on fresh inputs give that eager code does not. Raises what capture raises."""
    import torch

    static = made(case.inputs, 0, "cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        ran(reference, static)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = tensors(function(**static))
    found = []
    for seed in range(1, 4):
        fresh = made(case.inputs, seed, "cuda")
        for name, tensor in static.items():
            tensor.copy_(fresh[name])
        graph.replay()
        torch.cuda.synchronize()
        found += differences([*result, *static.values()], ran(reference, fresh), _TOLERANCE.get(case.id, 0.0))
    return found


def trial(case: Case, text: str, reference: str) -> tuple[str, list[str]]:
    """What capture and replay of a text's program come to, compared with eager code of ``reference``."""
    space, eager = loaded(text, "cuda"), loaded(reference, "cuda")
    try:
        if case.expected:
            expected = tensors(eager[case.expected]())
            return "captured", differences(tensors(space[case.name]()), expected, _TOLERANCE.get(case.id, 0.0))
        return "captured", captured_and_replayed(case, space[case.name], eager[case.name])
    except Exception as error:
        first: BaseException = error
        while first.__context__ is not None:
            first = first.__context__
        return "capture-error", [f"{type(first).__name__}: {' '.join(str(first).split())}"[:160]]


def work(number: int, which: str) -> None:
    """One program, before or after fixing, in this process; one line of JSON."""
    import torch

    warnings.simplefilter("ignore")
    case = list(cases(files("safe")))[number]
    before = case.file.read_text(encoding="utf-8")
    after = next(iter(fixed(case.file).after.values())).decode()
    outcome, details = trial(case, before if which == "before" else after, before)
    torch.cuda.synchronize()
    print(json.dumps({"outcome": outcome, "details": details}))


def measured(number: int, which: str) -> dict[str, Any]:
    command = [sys.executable, __file__, str(number), which]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {"outcome": "lost", "details": done.stderr.splitlines()[-1:]}


def row(number: int, case: Case) -> dict[str, Any]:
    before, after = measured(number, "before"), measured(number, "after")
    right = before["outcome"] == "captured" and not before["details"]
    print(f"{case.id}: before {before['outcome']}, fixed {after['outcome']} {after['details']}", flush=True)
    return {
        "case": case.id,
        "before": "captured and right" if right else before["outcome"],
        "before_details": before["details"][:1],
        "fixed": after["outcome"],
        "differences": after["details"],
    }


def main(workers: int) -> None:
    import torch

    every = list(cases(files("safe")))
    with ThreadPoolExecutor(workers) as pool:
        rows = list(pool.map(row, range(len(every)), every))
    document = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name(), "rows": rows}
    (RESULTS / "fixes.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        work(int(sys.argv[1]), sys.argv[2])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 8)
