"""Two parts of a check at the same time: one of them in a process that is forked off with all that is known by then.

What regions and functions evaluate to lies in a web of objects that would take longer to copy than to work out. A fork
copies nothing, so that only what the part found has to come back.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, TypeVar

_First = TypeVar("_First")
_Second = TypeVar("_Second")


def can_fork() -> bool:
    """On macOS forking is unsafe, and Windows has none; workers of a pool may have no children."""
    return sys.platform == "linux" and not multiprocessing.current_process().daemon


def cores() -> int:
    """How many processes may run at a time."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def both(first: Callable[[], _First], second: Callable[[], _Second], *, at_once: bool) -> tuple[_First, _Second]:
    """The results of both, ``first``'s from a process of its own; what it returns must be plain data.

    Neither sees what the other finds out, at once or in turn: results don't hang on the number of processes. Should
    the process end without a result, ``first`` runs here: what is wrong with it then comes out here too.
    """
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=_send, args=(sender, first), daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the thread that shows progress waits for a clock
        try:
            process.start()
        except OSError:  # too many processes, or too little memory
            receiver.close()
            sender.close()
            return first(), second()
    sender.close()
    try:
        sent = _received(receiver) if not at_once else None
        done = second()
        if at_once:
            sent = _received(receiver)
    finally:
        receiver.close()
        process.terminate()
        process.join()
    return (sent[0] if sent is not None else first(), done)


def _received(receiver: Connection) -> tuple[Any] | None:
    try:
        sent: tuple[Any] = receiver.recv()
    except (EOFError, OSError):
        return None
    return sent


def _send(sender: Connection, work: Callable[[], object]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the first process says what there is to say
    try:
        result = work()
    except Exception:
        return  # it runs again in the first process, and fails there
    with contextlib.suppress(OSError):  # the first process may be gone
        sender.send((result,))
