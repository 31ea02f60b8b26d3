"""The fork and join ledger: which streams joined a capture, on which lines, and which never came back."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from capturelint.verifier.sites import Site, UserCode


@dataclass
class _Fork:
    stream: Any
    sites: list[Site]
    joined: bool = False


@dataclass
class Ledger:
    """Forks and joins of one capture. ``capturing`` is the stream on which the capture began."""

    user: UserCode
    capturing: Any
    forks: dict[Any, _Fork] = field(default_factory=dict)
    events: dict[int, Any] = field(default_factory=dict)
    #: the line that switched to the current stream last
    switched: Site | None = None

    def _part(self, stream: Any) -> bool:
        return stream == self.capturing or _key(stream) in self.forks

    def waited(self, waiting: Any, source: Any) -> None:
        """``waiting`` now waits for the work that ``source`` holds."""
        if self._part(source) and not self._part(waiting):
            self.forks[_key(waiting)] = _Fork(waiting, self._here())
        elif self._part(waiting) and _key(source) in self.forks and source != waiting:
            self.forks[_key(source)].joined = True

    def recorded(self, event: Any, stream: Any) -> None:
        self.events[id(event)] = stream

    def waited_event(self, waiting: Any, event: Any) -> None:
        source = self.events.get(id(event))
        if source is not None:
            self.waited(waiting, source)

    def worked(self, stream: Any, sites: tuple[Site, ...]) -> None:
        fork = self.forks.get(_key(stream))
        if fork is not None:
            fork.joined = False
            for site in sites[:1]:
                if site not in fork.sites:
                    fork.sites.append(site)

    def unjoined(self) -> list[tuple[Any, tuple[Site, ...]]]:
        return [(fork.stream, tuple(fork.sites)) for fork in self.forks.values() if not fork.joined]

    def _here(self) -> list[Site]:
        return list(self.user.stack()[:1])


def _key(stream: Any) -> tuple[int, int]:
    return (stream.stream_id, stream.device_index)


_ledgers: list[Ledger] = []


def ledger() -> Ledger | None:
    return _ledgers[-1] if _ledgers else None


@contextmanager
def keep_ledger(user: UserCode, capturing: Any) -> Iterator[Ledger]:
    """Keeps a ledger while the block runs, which captures on the stream ``capturing``."""
    book = Ledger(user, capturing)
    _ledgers.append(book)
    try:
        yield book
    finally:
        _ledgers.remove(book)


@contextmanager
def stream_calls() -> Iterator[None]:
    """Wraps the stream and event methods that fork and join."""
    with ExitStack() as stack:
        stream, event = torch.cuda.Stream, torch.cuda.Event
        stack.enter_context(_patched(stream, "wait_stream", _after_wait_stream))
        stack.enter_context(_patched(stream, "wait_event", _after_wait_event))
        stack.enter_context(_patched(stream, "record_event", _after_record_event))
        stack.enter_context(_patched(torch.cuda.StreamContext, "__enter__", _after_switch))
        stack.enter_context(_patched(event, "record", _after_record))
        stack.enter_context(_patched(event, "wait", _after_event_wait))
        yield


@contextmanager
def _patched(owner: Any, name: str, note: Any) -> Iterator[None]:
    original = getattr(owner, name)

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        book = ledger()
        if book is not None:
            note(book, self, result, *args, **kwargs)
        return result

    own = name in vars(owner)
    setattr(owner, name, call)
    try:
        yield
    finally:
        if own:
            setattr(owner, name, original)
        else:
            delattr(owner, name)


def _after_switch(book: Ledger, context: Any, result: Any) -> None:
    book.switched = next(iter(book.user.stack()), None)


def _after_wait_stream(book: Ledger, stream: Any, result: Any, other: Any) -> None:
    book.waited(stream, other)


def _after_wait_event(book: Ledger, stream: Any, result: Any, event: Any) -> None:
    book.waited_event(stream, event)


def _after_record_event(book: Ledger, stream: Any, result: Any, event: Any = None) -> None:
    book.recorded(result, stream)


def _after_record(book: Ledger, event: Any, result: Any, stream: Any = None) -> None:
    book.recorded(event, stream if stream is not None else torch.cuda.current_stream())


def _after_event_wait(book: Ledger, event: Any, result: Any, stream: Any = None) -> None:
    book.waited_event(stream if stream is not None else torch.cuda.current_stream(), event)
