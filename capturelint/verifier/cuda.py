"""CUDA as the verifier's device. The first use makes a CUDA context, so only workers import this."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch

from capturelint.verifier import streams
from capturelint.verifier.device import Capture
from capturelint.verifier.sites import Site, UserCode
from capturelint.verifier.storage import weak_storage

_FACTORY_DEVICES = ("cuda",)


class CudaDevice:
    """The current CUDA device."""

    def __init__(self, user: UserCode) -> None:
        self.user = user
        self.failures = 0
        self._capturing = False
        self._unjoined: list[tuple[Any, tuple[Site, ...]]] = []
        version = ".".join(torch.__version__.split("+")[0].split(".")[:2])
        self.name = f"{torch.cuda.get_device_name()}, torch {version}"

    def holds(self, tensor: Any) -> bool:
        return bool(tensor.is_cuda)

    def reads(self, tensor: Any) -> bool:
        return bool(tensor.is_cuda or (tensor.device.type == "cpu" and tensor.is_pinned()))

    def makes_device_tensor(self, kwargs: dict[str, Any]) -> bool:
        device = kwargs.get("device")
        return device is not None and torch.device(device).type in _FACTORY_DEVICES

    def outside_capture(self) -> bool:
        if not self._capturing:
            return False
        if torch.cuda.is_current_stream_capturing():
            book = streams.ledger()
            if book is not None:
                book.worked(torch.cuda.current_stream(), self.user.stack())
            return False
        return True

    def switched_at(self) -> Site | None:
        book = streams.ledger()
        return book.switched if book is not None else None

    @contextmanager
    def observing(self, capturing: Any) -> Iterator[streams.Ledger]:
        """For a capture that somebody else begins on the stream ``capturing``."""
        self._capturing = True
        try:
            with _no_collection(), streams.keep_ledger(self.user, capturing) as book:
                yield book
        finally:
            self._capturing = False

    def capture(
        self,
        body: Callable[[], Any],
        *,
        generators: Sequence[Any] = (),
        mode: str = "global",
        join: bool = False,
    ) -> Capture:
        with _no_collection():
            return self._capture(body, generators, mode, join)

    def _capture(self, body: Callable[[], Any], generators: Sequence[Any], mode: str, join: bool) -> Capture:
        before = torch.cuda.current_stream()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        for generator in generators:
            graph.register_generator_state(generator)
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        capture = Capture()
        try:
            with torch.cuda.stream(stream), self.observing(stream) as book:
                graph.capture_begin(capture_error_mode=mode)
                try:
                    capture.result = body()
                    self._unjoined = book.unjoined()
                    if join:
                        for fork, _ in self._unjoined:
                            stream.wait_stream(fork)
                except BaseException as error:
                    capture.error = error
                self._end(graph, capture)
        finally:
            torch.cuda.set_stream(before)
        if capture.error is None:
            capture.graph = graph
        else:
            self.failures += 1
            self.heal()
        return capture

    def _end(self, graph: Any, capture: Capture) -> None:
        try:
            with warnings.catch_warnings():
                # "the graph is empty": a region that does nothing, or nothing that is captured
                warnings.simplefilter("ignore")
                graph.capture_end()
        except BaseException as error:
            if capture.error is None:
                capture.error, capture.at_end = error, True

    def heal(self) -> None:
        """A failed capture can leave the default generator in capture mode, and an error to be fetched."""
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
        with suppress(AttributeError, RuntimeError):
            generator.graphsafe_set_state(generator.clone_state())
        try:
            torch.cuda.synchronize()
        except RuntimeError:
            torch.cuda.synchronize()

    def replay(self, graph: Any) -> None:
        graph.replay()
        torch.cuda.synchronize()

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def warm_up(self, body: Callable[[], Any]) -> None:
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            body()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()

    def random_state(self, generators: Sequence[Any] = ()) -> Any:
        return [(generator, generator.get_state()) for generator in self._generators(generators)]

    def restore_random(self, state: Any) -> None:
        for generator, saved in state:
            generator.set_state(saved)

    def _generators(self, generators: Sequence[Any]) -> list[Any]:
        default = torch.cuda.default_generators[torch.cuda.current_device()]
        return [default, *(g for g in generators if g is not default and g.device.type == "cuda")]

    def unjoined(self) -> list[tuple[Site, ...]]:
        return [sites for _, sites in self._unjoined]

    def weak(self, storage: Any) -> Any:
        return weak_storage(storage)


@contextmanager
def _no_collection() -> Iterator[None]:
    """No garbage collection: a graph of an earlier trial that is destroyed now would break this capture."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
