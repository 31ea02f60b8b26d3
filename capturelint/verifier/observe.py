"""Watching a program that captures and replays graphs of its own: every graph is examined as its capture begins.

``torch.cuda.graph`` and ``CUDAGraph`` are wrapped while the program runs. Where a capture begins, the block is taken
from its source and tried; then the program's own capture goes on, with the calls shielded that would break it. At
each replay the graph is compared with the block run eagerly. Nothing of the user's is rewritten.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

import torch

from capturelint.verifier import host, naming
from capturelint.verifier.cuda import CudaDevice
from capturelint.verifier.differential import Comparer
from capturelint.verifier.observation import CORRUPTION, Outcome
from capturelint.verifier.record import Recorder
from capturelint.verifier.region import BlockRegion, NotExtractable, between_calls, block_of
from capturelint.verifier.sites import Site, UserCode, first_error, one_line
from capturelint.verifier.traffic import Traffic
from capturelint.verifier.trial import Examination, Examiner
from capturelint.verifier.watching import Watch

#: replays of one graph that are compared
_MOST_COMPARISONS = 6
#: other values tried for what the replaying function hands over
_MOST_VARIATIONS = 8


@dataclass
class _Captured:
    exam: Examination
    region: BlockRegion
    replays: int = 0
    compared: int = 0
    #: host state from before the program's own capture, until that ends
    before: host.HostState | None = None


@dataclass
class Observer:
    """Examines every capture of a program and compares its replays; collects into ``outcome``."""

    device: CudaDevice
    user: UserCode
    outcome: Outcome
    watch: Watch
    traffic: Traffic | None = None
    most_comparisons: int = _MOST_COMPARISONS
    _graphs: dict[int, _Captured] = field(default_factory=dict)
    _generators: dict[int, list[Any]] = field(default_factory=dict)
    _open: list[tuple[_Captured | None, ExitStack]] = field(default_factory=list)
    _busy: bool = False

    # -- a capture begins, and ends

    def begin(self, graph: Any, mode: str, take: Callable[[FrameType], BlockRegion], frame: FrameType | None) -> None:
        """Examines the block that is about to be captured into ``graph``."""
        captured = None
        if frame is not None:
            try:
                region = take(frame)
            except NotExtractable as error:
                self.outcome.notes.append(f"{Site(frame.f_code.co_filename, frame.f_lineno, '')}: {error}")
            else:
                captured = self._examine(graph, region, mode)
        self._open.append((captured, ExitStack()))

    def _examine(self, graph: Any, region: BlockRegion, mode: str) -> _Captured:
        generators = self._generators.get(id(graph), [])
        with self._working():
            exam = Examiner(self.device, self.user, generators, mode).examine(region)
        torch.cuda.synchronize()
        exam.generators = list(generators)
        for observation in exam.observations:
            self.outcome.add(observation)
        self.outcome.seen |= exam.lines.seen
        self.outcome.trials += exam.trials
        self.outcome.trial_seconds.extend(exam.seconds)
        self.outcome.notes.extend(exam.notes)
        self.outcome.captured += 1
        self.outcome.cut = self.outcome.cut or (exam.capture is None and bool(exam.observations))
        captured = _Captured(exam, region)
        captured.before = host.snapshot(region.roots(), self.user)
        self._graphs[id(graph)] = captured
        return captured

    def began(self) -> None:
        """The program's own capture has begun: shields what would break it."""
        captured, stack = self._open[-1]
        book = stack.enter_context(self.device.observing(torch.cuda.current_stream()))
        stack.callback(self._join, book, torch.cuda.current_stream())
        if captured is not None and captured.exam.shields.answers:
            stack.enter_context(Recorder(self.device, self.user, captured.exam.shields).active())

    def _join(self, book: Any, stream: Any) -> None:
        if sys.exc_info()[0] is None:
            for fork, _ in book.unjoined():
                stream.wait_stream(fork)

    def ending(self) -> None:
        if self._open:
            self._open[-1][1].close()

    def ended(self, error: BaseException | None) -> None:
        if not self._open:
            return
        if error is not None:
            self.device.heal()
        captured, _ = self._open.pop()
        if captured is None:
            if error is not None:
                message = one_line(first_error(error))
                self.outcome.add_maybe(
                    naming.capture_raised(self.user.blame(error), None, message, naming.rules_of_call("", message))
                )
            return
        if captured.exam.capture is not None and captured.before is not None and error is None:
            captured.exam.own_marks = {
                change.slot.identity: host.mark(change.slot.value()) for change in host.changes(captured.before)
            }
            self.watch.add(captured.exam, captured.region, captured.before)
            if self.traffic is not None:
                self.traffic.captured(captured.exam)
        captured.before = None

    # -- replays

    def replayed(self, graph: Any) -> None:
        """Called before every replay that the program asks for."""
        captured = self._graphs.get(id(graph))
        if captured is None or self._busy or torch.cuda.is_current_stream_capturing():
            return
        captured.replays += 1
        if captured.compared >= self.most_comparisons or captured.exam.capture is None:
            return
        captured.compared += 1
        if self.traffic is not None:
            with self._working():
                torch.cuda.synchronize()
                self.traffic.replayed(captured.exam)
        when = f"replay {captured.replays} of the program"
        frame = _user_frame(self.user, 3)
        captured.region.take_over(frame)
        captured.exam.suggested = suggestions(captured.region, frame, self.user)
        named = bool(captured.region.overrides or captured.exam.suggested)
        with self._working():
            torch.cuda.synchronize()
            comparison = Comparer(self.device, self.user).compare(captured.exam, when)
        for observation in comparison.observations:
            self.outcome.add(replace(observation, assumed="names" if named else comparison.assumed))
        if named and captured.compared == 1 and comparison.problem is None:
            with self._working():
                self._vary(captured)
        captured.region.overrides, captured.exam.suggested = {}, []
        dead = any(observation.consequence == CORRUPTION for observation in comparison.observations)
        self.watch.replayed(captured.exam, comparison.equal is False, dead)
        if comparison.equal is None:
            if comparison.problem and comparison.problem not in self.outcome.notes:
                self.outcome.notes.append(comparison.problem)
            return
        self.outcome.comparisons += 1
        if when not in self.outcome.tried:
            self.outcome.tried.append(when)
        if comparison.nondeterministic:
            self.outcome.notes.append("two eager runs on the same inputs did not agree")

    def _vary(self, captured: _Captured) -> None:
        """The replaying function hands over values that may differ from call to call: tries others."""
        taken = captured.region.overrides
        for text, names in list(captured.region.variations())[:_MOST_VARIATIONS]:
            captured.region.overrides = names
            comparison = Comparer(self.device, self.user).compare(captured.exam, text)
            for observation in comparison.observations:
                self.outcome.add(replace(observation, assumed="names"))
        captured.region.overrides = taken

    def registered(self, graph: Any, generator: Any) -> None:
        self._generators.setdefault(id(graph), []).append(generator)

    def forget(self, frame: FrameType) -> None:
        """A frame ends: lets go of it."""
        for captured in self._graphs.values():
            if captured.region.frame is frame:
                captured.region.let_go()

    @contextmanager
    def _working(self) -> Iterator[None]:
        """The verifier's own captures and replays are nobody else's business."""
        before, self._busy = self._busy, True
        trace = sys.gettrace()
        sys.settrace(None)
        try:
            yield
        finally:
            self._busy = before
            sys.settrace(trace)

    def files(self) -> set[str]:
        """The files of the blocks captured so far."""
        return {captured.region.path for captured in self._graphs.values()}

    @property
    def busy(self) -> bool:
        return self._busy


def suggestions(region: BlockRegion, frame: FrameType | None, user: UserCode) -> list[tuple[host.Slot, Any]]:
    """Numbers that an object of the block has, and another object of its class, in the replaying function, has not."""
    if frame is None or frame is region.frame:
        return []
    theirs = {type(value): vars(value) for value in frame.f_locals.values() if hasattr(value, "__dict__")}
    found = []
    for slot, value in host.snapshot(region.roots(), user).slots():
        other = theirs.get(type(slot.owner), {}) if slot.kind == "attribute" else {}
        if isinstance(value, (bool, int, float)) and type(other.get(slot.key)) is type(value):
            if other[slot.key] != value and other is not vars(slot.owner):
                found.append((slot, other[slot.key]))
    return found


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Wraps ``torch.cuda.graph`` and ``CUDAGraph`` for ``observer``."""
    graphs, context = torch.cuda.CUDAGraph, torch.cuda.graph
    originals = {
        (owner, name): getattr(owner, name)
        for owner, name in (
            (context, "__enter__"),
            (context, "__exit__"),
            (graphs, "capture_begin"),
            (graphs, "capture_end"),
            (graphs, "replay"),
            (graphs, "register_generator_state"),
        )
    }

    def enter(self: Any) -> Any:
        if observer.busy:
            return originals[context, "__enter__"](self)
        observer.begin(self.cuda_graph, self.capture_error_mode, block_of, _user_frame(observer.user))
        with observer._working():
            result = originals[context, "__enter__"](self)
        observer.began()
        return result

    def leave(self: Any, *details: Any) -> Any:
        if observer.busy:
            return originals[context, "__exit__"](self, *details)
        observer.ending()
        error = details[1]
        try:
            with observer._working():
                return originals[context, "__exit__"](self, *details)
        except BaseException as raised:
            error = raised
            raise
        finally:
            observer.ended(error)

    def begin(self: Any, *args: Any, **kwargs: Any) -> Any:
        if observer.busy:
            return originals[graphs, "capture_begin"](self, *args, **kwargs)
        observer.begin(self, kwargs.get("capture_error_mode", "global"), between_calls, _user_frame(observer.user))
        result = originals[graphs, "capture_begin"](self, *args, **kwargs)
        observer.began()
        return result

    def end(self: Any) -> Any:
        if observer.busy:
            return originals[graphs, "capture_end"](self)
        observer.ending()
        error: BaseException | None = None
        try:
            return originals[graphs, "capture_end"](self)
        except BaseException as raised:
            error = raised
            raise
        finally:
            observer.ended(error)

    def replay(self: Any) -> Any:
        observer.replayed(self)
        return originals[graphs, "replay"](self)

    def register(self: Any, generator: Any) -> Any:
        if not observer.busy:
            observer.registered(self, generator)
        return originals[graphs, "register_generator_state"](self, generator)

    replacements: tuple[Callable[..., Any], ...] = (enter, leave, begin, end, replay, register)
    for (owner, name), replacement in zip(originals, replacements, strict=True):
        setattr(owner, name, replacement)
    try:
        yield
    finally:
        for (owner, name), original in originals.items():
            setattr(owner, name, original)


def _user_frame(user: UserCode, depth: int = 2) -> FrameType | None:
    """The user's frame that begins a capture; None where torch itself does, as compiled code's graphs do."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and frame.f_code.co_filename.endswith("contextlib.py"):
        frame = frame.f_back
    return frame if frame is not None and user.owns(frame.f_code.co_filename) else None
