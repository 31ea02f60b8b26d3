"""What ``rules/ops/optimizers.yaml`` says of each optimizer is what its captured ``step()`` did on a GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from capturelint.rulebook.ops import load_ops

RECORD = Path(__file__).resolve().parents[1] / "fixtures" / "gpu" / "training_steps.json"
CASES: dict[str, dict[str, Any]] = json.loads(RECORD.read_text(encoding="utf-8"))["cases"]
NAMES = sorted({case.split()[1] for case in CASES if case.startswith("optimizer ")})


def step(name: str, variant: str) -> dict[str, Any]:
    return CASES[f"optimizer {name} | {variant}"]


def refused(row: dict[str, Any]) -> bool:
    """Whether torch's own check of ``capturable`` stopped the capture, not CUDA."""
    return row["outcome"] == "capture-error" and "capturable" in row["error"]


def read(row: dict[str, Any]) -> bool:
    return row["outcome"] == "capture-error" and "operation not permitted" in row["error"]


def takes(row: dict[str, Any], argument: str) -> bool:
    return f"unexpected keyword argument '{argument}'" not in row.get("error", "")


@pytest.mark.parametrize("name", NAMES)
def test_the_table_agrees(name: str) -> None:
    spec = load_ops().optimizers[f"torch.optim.{name}"]
    assert spec.capturable == takes(step(name, "capturable"), "capturable")
    assert spec.fused == takes(step(name, "fused"), "fused")
    assert spec.refuses == refused(step(name, "plain"))
    assert spec.reads == read(step(name, "set later"))  # with its groups made capturable, so that nothing is refused
    assert spec.reads_lr == (step(name, "plain")["outcome"] == "captured" and read(step(name, "tensor lr")))
    if spec.capturable:
        assert step(name, "capturable")["outcome"] == "captured"
        assert step(name, "tensor lr capturable")["differs after lr * 10"] == 0.0


def test_every_optimizer_was_measured_but_the_sparse_one() -> None:
    assert {f"torch.optim.{name}" for name in NAMES} == set(load_ops().optimizers) - {"torch.optim.SparseAdam"}


def test_what_the_pages_say() -> None:
    """CG901 to CG904: what captures and gives stale values, and what does not."""
    assert step("Adagrad", "lr decay")["differs after 5"] > 0.002
    assert step("Adam", "cpu tensor lr capturable")["differs after lr * 10"] > 0.05  # a CPU tensor is a number
    assert read(CASES["scaler step"])
    assert all(
        CASES[f"scaler {what}"]["outcome"] == "captured" for what in ("step fused", "update", "unscale_", "scale")
    )
    assert CASES["autocast warm-up before"]["replay differs"] > 1
    assert CASES["autocast cache off"]["after new weights"] == 0.0
    assert CASES["pinned staging overwritten"]["wrong"] > CASES["pinned staging waited"]["wrong"] == 0
