"""A device without a GPU: CPU tensors that may not be read while a capture records them, and replay by running again.

0-d int64 tensors count as host tensors; every other tensor lives on the "device".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from capturelint.verifier.device import Capture
from capturelint.verifier.sites import Site
from capturelint.verifier.storage import Written, put_back, weak_storage

NOT_PERMITTED = "operation not permitted when stream is capturing"


def on_device(tensor: torch.Tensor) -> bool:
    return not (tensor.dim() == 0 and tensor.dtype is torch.int64)


class _Tape(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, Any, Any, Any]] = []
        self.written: dict[int, Written] = {}
        self.made: set[int] = set()
        self.held: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        reads = func in (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.equal.default)
        dynamic = torch.Tag.dynamic_output_shape in func.tags
        if (reads or dynamic) and any(on_device(tensor) for tensor in tensors):
            raise RuntimeError(NOT_PERMITTED)
        if func._schema.is_mutable:
            for tensor in tensors:
                storage = tensor.untyped_storage()
                if storage.data_ptr() not in self.made and storage.data_ptr() not in self.written:
                    entry = Written(weak_storage(storage), tensor.device)
                    entry.before = entry.copy()
                    self.written[storage.data_ptr()] = entry
        result = func(*args, **kwargs)
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.made.add(leaf.untyped_storage().data_ptr())
                self.held.append(leaf)
        self.calls.append((func, args, kwargs, result))
        return result

    def play(self) -> None:
        for func, args, kwargs, result in self.calls:
            again = func(*args, **kwargs)
            for ours, theirs in zip(tree_leaves(result), tree_leaves(again), strict=True):
                if isinstance(ours, torch.Tensor) and not func.is_view and ours is not theirs:
                    ours.copy_(theirs)


class _NoForks:
    def unjoined(self) -> list[Any]:
        return []


@dataclass
class EmulatedDevice:
    name: str = "an emulated device"
    failures: int = 0
    forks: list[tuple[Site, ...]] = field(default_factory=list)

    def holds(self, tensor: Any) -> bool:
        return on_device(tensor)

    def reads(self, tensor: Any) -> bool:
        return on_device(tensor)

    def makes_device_tensor(self, kwargs: dict[str, Any]) -> bool:
        return False

    def outside_capture(self) -> bool:
        return False

    def switched_at(self) -> Site | None:
        return None

    def capture(
        self, body: Callable[[], Any], *, generators: Sequence[Any] = (), mode: str = "global", join: bool = False
    ) -> Capture:
        tape = _Tape()
        capture = Capture()
        try:
            with tape:
                capture.result = body()
        except BaseException as error:
            capture.error = error
            self.failures += 1
        put_back(tape.written.values())
        if capture.error is None:
            capture.graph = tape
        return capture

    def replay(self, graph: Any) -> None:
        with torch.no_grad():
            graph.play()

    def synchronize(self) -> None:
        return None

    def warm_up(self, body: Callable[[], Any]) -> None:
        body()

    def random_state(self, generators: Sequence[Any] = ()) -> Any:
        return torch.get_rng_state()

    def restore_random(self, state: Any) -> None:
        torch.set_rng_state(state)

    def unjoined(self) -> list[tuple[Site, ...]]:
        return self.forks

    def weak(self, storage: Any) -> Any:
        return weak_storage(storage)

    @contextmanager
    def observing(self, capturing: Any) -> Iterator[_NoForks]:
        yield _NoForks()

    def heal(self) -> None:
        return None


class EmulatedGraph:
    """Stands for ``torch.cuda.CUDAGraph`` in a program under test."""

    capturing: EmulatedGraph | None = None

    def __init__(self) -> None:
        self.tape = _Tape()

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        EmulatedGraph.capturing = self
        self.tape.__enter__()

    def capture_end(self) -> None:
        self.tape.__exit__(None, None, None)
        EmulatedGraph.capturing = None
        put_back(self.tape.written.values())

    def replay(self) -> None:
        with torch.no_grad():
            self.tape.play()

    def register_generator_state(self, generator: Any) -> None:
        return None


class EmulatedGraphContext:
    """Stands for ``torch.cuda.graph``."""

    def __init__(self, cuda_graph: EmulatedGraph, capture_error_mode: str = "global") -> None:
        self.cuda_graph, self.capture_error_mode = cuda_graph, capture_error_mode

    def __enter__(self) -> None:
        self.cuda_graph.capture_begin(capture_error_mode=self.capture_error_mode)

    def __exit__(self, *details: Any) -> None:
        self.cuda_graph.capture_end()


def emulate(monkeypatch: Any) -> None:
    """Puts the emulated classes where programs look for torch's."""
    monkeypatch.setattr(torch.cuda, "CUDAGraph", EmulatedGraph)
    monkeypatch.setattr(torch.cuda, "graph", EmulatedGraphContext)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: None)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda *_: None)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: EmulatedGraph.capturing is not None)
