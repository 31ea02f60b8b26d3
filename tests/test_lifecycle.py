"""The model of a graph's life: what is told of where it is kept, what it reads and gives, and where it is replayed."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from capturelint.check import CheckOptions, check_paths
from capturelint.config import Config
from capturelint.lifecycle.life import Life, lives
from capturelint.model import Confidence
from capturelint.reach import Evidence

RUNNER = """
import torch
from torch import nn


class Runner:
    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.x = torch.zeros(8, 16, device="cuda")
        self.graphs = {}

    def capture(self, size: int) -> None:
        x = self.x[:size]
        self.model(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = self.model(x)
        self.graphs[size] = (graph, out)

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        size = batch.shape[0]
        self.x[:size].copy_(batch)
        graph, out = self.graphs[size]
        graph.replay()
        return out


def serve(model: nn.Module, batches: list[torch.Tensor]) -> list[torch.Tensor]:
    runner = Runner(model)
    runner.capture(8)
    return [runner(batch) for batch in batches]
"""

CLOSURE = """
import torch
from torch import nn


def graphed(model: nn.Module, example: torch.Tensor):
    x = example.clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x)

    def run(batch: torch.Tensor) -> torch.Tensor:
        x.copy_(batch)
        graph.replay()
        return y

    return run


def main(model: nn.Module, batches: list[torch.Tensor]) -> None:
    step = graphed(model, batches[0])
    for batch in batches:
        print(step(batch).sum())
"""

CALLABLES = """
import torch
from torch import nn


class Trainer:
    def __init__(self, encoder: nn.Module, example: torch.Tensor) -> None:
        self.encoder = torch.cuda.make_graphed_callables(encoder, (example,))
        self.scale = torch.compile(lambda x: x * 2, mode="reduce-overhead")

    def step(self, batch: torch.Tensor) -> torch.Tensor:
        return self.scale(self.encoder(batch))
"""


@pytest.fixture
def life_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    def made(source: str) -> list[Life]:
        (tmp_path / "case.py").write_text(source, encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        evidence = check_paths(
            CheckOptions(
                paths=(tmp_path,), config=Config(), select=(), ignore=(), min_confidence=Confidence.LIKELY,
                root=tmp_path,
            )
        ).behind  # fmt: skip
        assert isinstance(evidence, Evidence)
        return lives(evidence.engine, evidence.reaches).all

    return made


def named(places: object) -> set[str]:
    return {f"{getattr(p.owner, 'qualname', p.owner.name)}:{p.name}" for p in places}  # type: ignore[attr-defined]


def calls(life: Life) -> set[tuple[int, str]]:
    return {(replay.depth, replay.function.qualname if replay.function else "") for replay in life.replays}


def test_a_runner_that_keeps_its_graphs_by_size(life_of) -> None:  # type: ignore[no-untyped-def]
    (life,) = life_of(RUNNER)
    assert named(life.graph) == {"Runner.capture:graph"}
    assert named(life.outputs) == {"Runner.capture:out"}
    assert {"Runner:model", "Runner:x", "serve:model"} <= named(life.reads)
    assert calls(life) == {(0, "Runner.__call__"), (1, "serve")}


def test_a_graph_and_its_output_in_one_tuple_are_told_apart(life_of) -> None:  # type: ignore[no-untyped-def]
    (life,) = life_of(RUNNER)
    function = next(info for info in life.declaration.module.all_functions() if info.name == "__call__")
    returned = next(node for node in ast.walk(function.node) if isinstance(node, ast.Return))
    replay = next(each for each in life.replays if each.depth == 0)
    assert life.is_output(function, function.module, returned.value)
    assert not life.is_output(function, function.module, replay.call.func.value)  # type: ignore[attr-defined]


def test_a_closure_that_replays(life_of) -> None:  # type: ignore[no-untyped-def]
    (life,) = life_of(CLOSURE)
    assert calls(life) == {(0, "graphed.<locals>.run"), (1, "main")}
    assert {"graphed:x", "graphed:model", "main:model"} <= named(life.reads)


def test_calls_of_graphed_and_compiled_callables_are_replays(life_of) -> None:  # type: ignore[no-untyped-def]
    found = life_of(CALLABLES)
    assert [named(life.graph) for life in found] == [{"Trainer:encoder"}, {"Trainer:scale"}]
    assert all((0, "Trainer.step") in calls(life) for life in found)


def test_an_attribute_that_many_files_bind_is_looked_for_where_the_graph_is(tmp_path: Path) -> None:
    program = """\
import torch


class Runner:
    def __init__(self):
        self.x = torch.zeros(8, device="cuda")
        self.graph = torch.cuda.CUDAGraph()

    def capture(self):
        with torch.cuda.graph(self.graph):
            self.out = self.x * 2

    def run(self, x):
        self.x = x
        self.graph.replay()
"""
    for count in range(80):
        Path(tmp_path, f"other_{count}.py").write_text(f"class C{count}:\n    def f(self):\n        self.x = 1\n")
    Path(tmp_path, "runner.py").write_text(program)
    result = check_paths(CheckOptions((tmp_path,), Config(), (), (), Confidence.LIKELY, tmp_path))
    assert [(each.rule, each.span.line) for each in result.findings] == [("CG501", 14)]
