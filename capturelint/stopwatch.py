"""How long each stage of a run took, and which one it is at."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Stopwatch:
    """``progress`` is called with the name of each stage that begins."""

    progress: Callable[[str], object] = str
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        self.progress(name)
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def add(self, seconds: dict[str, float]) -> None:
        """Adds what another one measured."""
        for name, each in seconds.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + each
