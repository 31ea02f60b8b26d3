"""The lines of user code that run: in order, as a set, and with a check after each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from capturelint.verifier.sites import Site, UserCode

_LONGEST = 20_000


@dataclass
class LineTrace:
    """What ran: ``order`` holds (path, line, function) up to a limit, ``seen`` every (path, line)."""

    order: list[tuple[str, int, str]] = field(default_factory=list)
    seen: set[tuple[str, int]] = field(default_factory=set)
    last: Site | None = None

    def first_fork(self, other: LineTrace) -> tuple[Site, int, int] | None:
        """Where two runs part: the last line that both ran, and the next line of each (0: none)."""
        mine, theirs = self.order, other.order
        for index in range(max(len(mine), len(theirs))):
            here = mine[index] if index < len(mine) else None
            there = theirs[index] if index < len(theirs) else None
            if here == there:
                continue
            if index == 0 or ((len(mine) >= _LONGEST or len(theirs) >= _LONGEST) and (here is None or there is None)):
                return None
            return Site(*mine[index - 1]), here[1] if here else 0, there[1] if there else 0
        return None

    def after_fork(self, other: LineTrace) -> tuple[str, int] | None:
        """File and line of the first line that this run does and ``other`` does not, where they part."""
        for index, here in enumerate(self.order):
            if index >= len(other.order) or other.order[index] != here:
                return here[0], here[1]
        return None


@contextmanager
def tracing(
    user: UserCode,
    after_line: Callable[[Site], None] | None = None,
    on_return: Callable[[FrameType], None] | None = None,
) -> Iterator[LineTrace]:
    """Follows the user's lines while the block runs, in frames that begin within it.

    ``after_line`` is called when a line is done, ``on_return`` when a frame is about to end.
    """
    trace = LineTrace()
    local = _local_tracer(trace, after_line, on_return)

    def start(frame: FrameType, event: str, argument: Any) -> Any:
        return local if user.owns(frame.f_code.co_filename) else None

    before = sys.gettrace()
    sys.settrace(start)
    try:
        yield trace
    finally:
        sys.settrace(before)
        if after_line is not None and trace.last is not None:
            after_line(trace.last)


def _local_tracer(
    trace: LineTrace,
    after_line: Callable[[Site], None] | None,
    on_return: Callable[[FrameType], None] | None,
) -> Any:
    stack: dict[int, Site] = {}

    def local(frame: FrameType, event: str, argument: Any) -> Any:
        path, line, name = frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
        if event == "line":
            done = stack.get(id(frame))
            if after_line is not None and trace.last is not None:
                # what the line called is done as well; the line of this frame is the one that is left
                after_line(trace.last if done is None else done)
            trace.seen.add((path, line))
            if len(trace.order) < _LONGEST:
                trace.order.append((path, line, name))
            trace.last = stack[id(frame)] = Site(path, line, name)
        elif event == "return":
            done = stack.pop(id(frame), None)
            if after_line is not None and done is not None:
                after_line(done)
            if on_return is not None:
                on_return(frame)
            caller = frame.f_back
            trace.last = stack.get(id(caller)) if caller is not None else None
        return local

    return local
