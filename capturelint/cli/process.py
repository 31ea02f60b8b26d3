"""The end of the process: what a run built up is not freed piece by piece, which on large trees takes seconds."""

from __future__ import annotations

import os
import sys

_kept: list[object] = []


def keep_until_exit(thing: object) -> None:
    """Holds a result (and the index and facts behind it) until the process ends."""
    _kept.append(thing)


def run_process() -> None:
    """The console script: runs the command line and ends the process at once, without freeing what it holds."""
    from capturelint.cli.main import main

    status = main()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue  # closed, or nobody reads it: `main` has said what there is to say
    os._exit(status)
