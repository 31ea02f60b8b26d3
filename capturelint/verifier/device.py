"""What the verifier needs of a device. ``cuda.py`` answers for CUDA; a rehearsal or a test brings its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from capturelint.verifier.sites import Site


@dataclass(slots=True)
class Capture:
    """How one capture went: the graph where it worked, else the error that the body or the end of capture raised."""

    graph: Any = None
    error: BaseException | None = None
    at_end: bool = False
    result: Any = None


class Device(Protocol):
    """Tensors, capture and replay of one device."""

    #: for evidence, such as "NVIDIA H200, torch 2.11"
    name: str

    def holds(self, tensor: Any) -> bool:
        """Whether the tensor lives on the device."""

    def reads(self, tensor: Any) -> bool:
        """Whether the device reads the tensor's memory by address: its own, and pinned host memory."""

    def makes_device_tensor(self, kwargs: dict[str, Any]) -> bool:
        """Whether an operator called with these keywords makes a tensor on the device out of nothing."""

    def outside_capture(self) -> bool:
        """Whether a capture is going on, but not of the current stream."""

    def switched_at(self) -> Site | None:
        """The line of the running capture that put work on another stream last."""

    def capture(
        self, body: Callable[[], Any], *, generators: Sequence[Any] = (), mode: str = "global", join: bool = False
    ) -> Capture:
        """Captures ``body`` on a stream of its own. ``join`` waits for forks that were never joined."""

    def replay(self, graph: Any) -> None: ...

    def synchronize(self) -> None: ...

    def warm_up(self, body: Callable[[], Any]) -> None:
        """Runs ``body`` on a side stream."""

    def random_state(self, generators: Sequence[Any] = ()) -> Any: ...

    def restore_random(self, state: Any) -> None: ...

    def unjoined(self) -> list[tuple[Site, ...]]:
        """Forks of the last capture that were never joined: the lines that have to do with each."""

    def weak(self, storage: Any) -> Any:
        """A reference with ``expired()``, or a stand-in."""
