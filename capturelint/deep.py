"""Room for deep recursion: evaluation follows calls, with some 15 Python frames for each call in checked code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")

#: frames above which Python gives up
RECURSION_LIMIT = 12_000
#: just above half of the 16 MiB that is asked for then, so that nearly as much is left for frames; pages that nobody
#: writes to take no memory
_SLOTS = (8 * 1024 + 64) * 1024 // 8
_HAS_PIECES = sys.implementation.name == "cpython" and tuple(sys.version_info) >= (3, 11)


def with_large_stack(work: Callable[[], _Result]) -> _Result:
    """The result of ``work``, whose frames all lie in one piece of memory.

    CPython keeps frames in pieces of 16 KiB, each of which is given back to the system as soon as its first frame ends:
    calls around the end of a piece then cost a new one each time, with its pages (400,000 times in a check of vLLM, an
    eighth of its time). A piece is as large as its first frame asks for, and holds what is called from there.
    """
    if not _HAS_PIECES:
        return work()

    def call() -> _Result:
        return work()

    call.__code__ = call.__code__.replace(co_stacksize=_SLOTS)
    return call()
