"""Runs a command to its end: seconds on the clock and on the processors, and the peak memory of its largest process."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Measured:
    seconds: float
    #: on all processors together
    busy: float
    mebibytes: float
    status: int
    out: str
    err: str
    timed_out: bool = False


def run(
    command: Sequence[str], *, cwd: Path, environment: Mapping[str, str] | None = None, limit: float = 3600
) -> Measured:
    """Kills the command, and what it started, when it takes longer than ``limit`` seconds."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        killed = threading.Event()

        def kill() -> None:
            killed.set()
            os.killpg(process.pid, signal.SIGKILL)

        alarm = threading.Timer(limit, kill)
        alarm.start()
        _, status, usage = os.wait4(process.pid, 0)
        alarm.cancel()
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return Measured(
            seconds,
            usage.ru_utime + usage.ru_stime,
            usage.ru_maxrss / 1024,
            process.returncode,
            out.read().decode(errors="replace"),
            err.read().decode(errors="replace"),
            killed.is_set(),
        )
