"""What a long run is at, on a terminal."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TextIO

#: a run that ends before that shows nothing
_DELAY, _INTERVAL = 2.0, 0.25
_CLEAR = "\r\x1b[K"


class Progress:
    """A line on stderr that is written anew while the block runs, and gone after it. Called with the stage that begins.

    Nothing is shown where nobody looks: when stderr is no terminal, or one that cannot clear a line.
    """

    def __init__(self, stream: TextIO | None = None, *, wanted: bool = True, delay: float = _DELAY) -> None:
        self._stream: TextIO | None = stream if stream is not None else sys.stderr  # None where it is closed
        self._delay = delay
        self._stage = "start"
        self._done = threading.Event()
        shown = wanted and self._stream is not None and self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._thread = threading.Thread(target=self._show, daemon=True) if shown else None

    def __call__(self, stage: str) -> None:
        self._stage = stage

    def __enter__(self) -> Progress:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def _show(self) -> None:
        start = time.monotonic()
        if self._done.wait(self._delay):
            return
        try:
            while True:
                self._write(f"{_CLEAR}checking: {self._stage} ({time.monotonic() - start:.0f} s)")
                if self._done.wait(_INTERVAL):
                    break
            self._write(_CLEAR)
        except (OSError, ValueError):
            return  # the terminal has gone away; that changes nothing about the run

    def _write(self, text: str) -> None:
        assert self._stream is not None
        self._stream.write(text)
        self._stream.flush()
