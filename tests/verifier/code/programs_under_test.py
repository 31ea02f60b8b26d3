"""Programs that capture and replay by themselves, for the tests of the verifier on the emulated device."""

from __future__ import annotations

from collections.abc import Iterator

import torch


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = torch.nn.Linear(8, 8)
        self.calls = 0
        self.scale = 1.0
        self.seen = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return torch.tanh(self.lin(x)) * self.scale


class Runner:
    """Right: inputs are copied, outputs cloned."""

    def __init__(self, net: torch.nn.Module) -> None:
        self.net = net
        self.x = torch.zeros(4, 8)
        net(self.x)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.y = self.net(self.x)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.x.copy_(x)
        self.graph.replay()
        return self.y.clone()


class Rebinding(Runner):
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.x = x.clone()  # rebound
        self.graph.replay()
        return self.y.clone()


class Partial(Runner):
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        n = x.shape[0]
        self.x[:n].copy_(x)  # tail
        self.graph.replay()
        return self.y.clone()


class PerCall:
    """A number that every call brings along."""

    def __init__(self, factor: float) -> None:
        self.x = torch.zeros(4, 8)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.y = self.x * factor  # number

    def __call__(self, x: torch.Tensor, factor: float) -> torch.Tensor:
        self.x.copy_(x)
        self.graph.replay()
        return self.y.clone()


class Keeping(Runner):
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.x.copy_(x)
        self.graph.replay()
        return self.y  # kept


class Buckets:
    """Right: one graph for each size, captured in a loop."""

    def __init__(self, net: torch.nn.Module) -> None:
        self.net, self.x, self.graphs = net, torch.zeros(4, 8), {}
        for size in (4, 2):
            view = self.x[:size]
            net(view)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = net(view)
            self.graphs[size] = (graph, out)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.x[: x.shape[0]].copy_(x)
        graph, out = self.graphs[x.shape[0]]
        graph.replay()
        return out.clone()


class Recurrent:
    def __init__(self) -> None:
        self.x, self.h = torch.zeros(4, 8), torch.zeros(4, 8)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.h = torch.tanh(self.h + self.x)  # carried

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.x.copy_(x)
        self.graph.replay()
        return self.h.clone()


class BeginEnd:
    def __init__(self) -> None:
        self.x = torch.ones(4, 8)
        self.graph = torch.cuda.CUDAGraph()
        self.graph.capture_begin()
        try:
            self.y = self.x * self.x.sum().item()  # read
        finally:
            self.graph.capture_end()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.x.copy_(x)
        self.graph.replay()
        return self.y.clone()


def inputs(rows: int = 4) -> Iterator[torch.Tensor]:
    for seed in range(3):
        yield torch.randn(rows, 8, generator=torch.Generator().manual_seed(seed))


def right() -> Iterator[torch.Tensor]:
    runner = Runner(Net().requires_grad_(False))
    yield from (runner(x) for x in inputs())


def rebinding() -> Iterator[torch.Tensor]:
    runner = Rebinding(Net().requires_grad_(False))
    yield from (runner(x) for x in inputs())


def swapping_weights() -> Iterator[torch.Tensor]:
    net = Net().requires_grad_(False)
    runner = Runner(net)
    for x in inputs():
        net.lin.weight.data = net.lin.weight.data * 2  # swapped
        yield runner(x)


def keeping() -> Iterator[torch.Tensor]:
    runner = Keeping(Net().requires_grad_(False))
    yield from (runner(x) for x in inputs())


def partial() -> Iterator[torch.Tensor]:
    runner = Partial(Net().requires_grad_(False))
    for rows in (4, 2, 3):
        yield runner(next(inputs(rows)))


def partial_reference() -> Iterator[torch.Tensor]:
    for _ in range(3):
        yield torch.zeros(4, 8)


def per_call() -> Iterator[torch.Tensor]:
    runner = PerCall(1.0)
    for step, x in enumerate(inputs()):
        yield runner(x, step + 0.5)


def per_call_reference() -> Iterator[torch.Tensor]:
    for step, x in enumerate(inputs()):
        yield x * (step + 0.5)


def buckets() -> Iterator[torch.Tensor]:
    runner = Buckets(Net().requires_grad_(False))
    for rows in (4, 2, 4, 2):
        yield runner(next(inputs(rows)))


def recurrent() -> Iterator[torch.Tensor]:
    runner = Recurrent()
    yield from (runner(x) for x in inputs())


def begin_end() -> Iterator[torch.Tensor]:
    runner = BeginEnd()
    yield from (runner(x) for x in inputs())


def stops() -> None:
    raise SystemExit(4)


def captures_nothing() -> None:
    Net()(torch.zeros(4, 8))


def same() -> Iterator[torch.Tensor]:
    runner = PerCall(2.0)
    yield from (runner(x, 2.0) for x in inputs())


def same_reference() -> Iterator[torch.Tensor]:
    yield from (x * 2.0 for x in inputs())


class Stepping:
    def __init__(self) -> None:
        self.x, self.step = torch.zeros(4, 8), 0
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.y = self.advance()

    def advance(self) -> torch.Tensor:
        self.step += 1  # advanced
        return self.x + self.step  # used

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.x.copy_(x)
        self.graph.replay()
        return self.y.clone()


def stepping() -> Iterator[torch.Tensor]:
    runner = Stepping()
    yield from (runner(x) for x in inputs())
