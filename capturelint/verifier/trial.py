"""Trials: capture a region as it is, then with each hazard found so far shielded, until the next shows or none does."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from capturelint.verifier import host, naming
from capturelint.verifier.device import Capture, Device
from capturelint.verifier.lines import LineTrace, tracing
from capturelint.verifier.observation import Observation
from capturelint.verifier.record import Failure, Recorder, Recording
from capturelint.verifier.region import Region
from capturelint.verifier.shield import Key, Shields
from capturelint.verifier.sites import Site, UserCode, first_error, one_line
from capturelint.verifier.storage import Died, address_of, put_back

#: hazards after which a region is given up
_MOST_HAZARDS = 80
#: device memory for copies of intermediate results
KEEP_BYTES = 1 << 30


@dataclass
class Examination:
    """A region that was tried: what failed, and the graph of it with every failing call shielded."""

    region: Region
    observations: list[Observation] = field(default_factory=list)
    shields: Shields = field(default_factory=Shields)
    #: the graph to replay, and how its capture ran; None where no capture worked
    capture: Capture | None = None
    recording: Recording = field(default_factory=Recording)
    lines: LineTrace = field(default_factory=LineTrace)
    generators: list[Any] = field(default_factory=list)
    trials: int = 0
    seconds: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    #: slots that capture bound to tensors of this graph
    bound: dict[Any, torch.Tensor] = field(default_factory=dict)
    #: the same slots as the program's own capture left them; None where this graph is the program's
    own_marks: dict[Any, Any] | None = None
    #: those of them whose tensor from before capture the graph reads: state that is handed on from call to call
    carried: set[Any] = field(default_factory=set)
    #: gradients that were not there before capture
    unset_before: list[host.Slot] = field(default_factory=list)
    #: other values for plain host state, tried by one comparison
    suggested: list[tuple[host.Slot, Any]] = field(default_factory=list)
    #: plain host values that eager runs would have reached by now, by slot identity
    shadow: dict[Any, tuple[host.Slot, Any]] = field(default_factory=dict)
    #: what the program itself held in those slots at that time
    shadow_base: dict[Any, Any] = field(default_factory=dict)

    def tensor_in(self, slot: host.Slot) -> Any:
        """What ``slot`` holds, with this graph's tensor for what a program's own capture bound there."""
        value = slot.value()
        mine = self.bound.get(slot.identity)
        if mine is not None and self.own_marks is not None and host.mark(value) == self.own_marks.get(slot.identity):
            return mine
        return value

    def observe(self, observation: Observation | None) -> bool:
        if observation is None or any(observation.key == known.key for known in self.observations):
            return False
        self.observations.append(observation)
        return True


@dataclass
class Examiner:
    """Runs trials on one device. ``generators`` are registered with every graph, as the user's program does."""

    device: Device
    user: UserCode
    generators: Sequence[Any] = ()
    mode: str = "global"

    def examine(self, region: Region, *, leave_host: bool = False) -> Examination:
        """Tries ``region``. Its host state is put back; with ``leave_host`` it stays as the last capture left it."""
        exam = Examination(region)
        state = host.snapshot(region.roots(), self.user)
        bare = self._bare(exam, region)
        state.restore()
        self._discover(exam, region, state, bare)
        if exam.capture is None and bare.error is None:
            self._fall_back(exam, region, state)
        if exam.capture is not None:
            bound = [change for change in host.changes(state) if isinstance(change.after, torch.Tensor)]
            exam.bound = {change.slot.identity: change.after for change in bound}
            exam.carried = {
                change.slot.identity for change in bound if address_of(change.before) in exam.recording.external
            }
            exam.unset_before = [
                change.slot for change in bound if change.slot.kind == "grad" and change.before is None
            ]
        if not (leave_host and exam.capture is not None):
            state.restore()
        for step in exam.recording.steps:
            if step.outside:
                exam.observe(naming.outside(step.sites, step.op, step.switched))
        return exam

    def _bare(self, exam: Examination, region: Region) -> Capture:
        """Capture without any of the verifier's modes: whether it fails at all is this trial's word."""
        with tracing(self.user) as exam.lines, self._timed(exam):
            capture = self.device.capture(region.call, generators=self.generators, mode=self.mode)
        capture.graph = capture.result = None
        return capture

    def _discover(self, exam: Examination, region: Region, state: host.HostState, bare: Capture) -> None:
        join = False
        while exam.trials < _MOST_HAZARDS:
            capture, recording, lines = self._shielded(exam, region, join)
            exam.lines.seen |= lines.seen
            if capture.error is None:
                exam.capture, exam.recording, exam.lines.order = capture, _outlived(recording), lines.order
                break
            exam.recording = recording
            if not self._failed(exam, region, state, capture, recording.failure, join):
                break
            join = join or capture.at_end
            state.restore()
        self._agree(exam, bare)

    def _fall_back(self, exam: Examination, region: Region, state: host.HostState) -> None:
        """Capture works, but not under the modes: keeps a plain graph, with the operators of an eager run."""
        state.restore()
        recorder = Recorder(self.device, self.user, Shields(), save_written=True)
        try:
            with recorder.active():
                region.call()
        except Exception:
            recorder.recording.steps.clear()
        finally:
            put_back(recorder.recording.written.values())
        state.restore()
        capture = self.device.capture(region.call, generators=self.generators, mode=self.mode)
        if capture.error is None:
            exam.capture, exam.recording = capture, recorder.recording

    def _shielded(self, exam: Examination, region: Region, join: bool) -> tuple[Capture, Recording, LineTrace]:
        recorder = Recorder(self.device, self.user, exam.shields, keep_bytes=KEEP_BYTES)

        def body() -> Any:
            with recorder.active():
                return region.call()

        with tracing(self.user) as lines, self._timed(exam):
            capture = self.device.capture(body, generators=self.generators, mode=self.mode, join=join)
        return capture, recorder.recording, lines

    def _failed(
        self,
        exam: Examination,
        region: Region,
        state: host.HostState,
        capture: Capture,
        failure: Failure | None,
        join: bool,
    ) -> bool:
        """Notes a failed trial and shields its cause. False where nothing more can be tried."""
        assert capture.error is not None
        forks = self.device.unjoined() if capture.at_end else []
        if forks and failure is None:
            for sites in forks:
                exam.observe(naming.unjoined(sites))
            return not join
        error = failure.error if failure is not None else capture.error
        self._observe_error(exam, error, failure)
        if failure is None or failure.key is None:
            exam.notes.append("what comes after this error was not tried: the call that failed cannot be shielded")
            return False
        return self._shield(exam, region, state, failure.key)

    def _observe_error(self, exam: Examination, error: BaseException, failure: Failure | None) -> None:
        sites = failure.sites if failure is not None and failure.sites else self.user.blame(error)
        message = one_line(first_error(error) if failure is None else error)
        if "legacy stream" in message:
            # not the line that raised is to blame but how the region was warmed up
            own = [site for site in sites if site.path == exam.region.path and site.line >= exam.region.line]
            sites = tuple(dict.fromkeys((*own[-1:], *sites)))
        name = failure.key.name if failure is not None and failure.key is not None else None
        exam.observe(naming.capture_raised(sites, name, message, naming.rules_of_call(name or "", message)))

    def _shield(self, exam: Examination, region: Region, state: host.HostState, key: Key) -> bool:
        """Runs eagerly once more to record what the failing call gives, and shields it from now on."""
        if exam.shields.covers(key):
            exam.notes.append(f"`{key.name}` on line {key.line} fails although it is shielded")
            return False
        state.restore()
        recorder = Recorder(self.device, self.user, exam.shields, want=frozenset({key}), save_written=True)
        random = self.device.random_state(self.generators)
        try:
            with recorder.active():
                region.call()
            self.device.synchronize()
        except Exception as error:
            exam.notes.append(f"the eager run that records `{key.name}` raised: {one_line(error)}")
            return False
        finally:
            put_back(recorder.recording.written.values())
            self.device.restore_random(random)
        if key not in recorder.recording.results:
            exam.notes.append(f"`{key.name}` on line {key.line} did not run eagerly, so it could not be shielded")
            return False
        exam.shields = exam.shields.with_answers(recorder.recording.results)
        return True

    def _agree(self, exam: Examination, bare: Capture) -> None:
        """The trial without modes has the last word on whether capture fails at all."""
        if bare.error is None:
            if exam.observations:
                texts = "; ".join(observation.text for observation in exam.observations)
                exam.notes.append(f"capture works, but not under the verifier's modes ({texts}), which does not count")
                exam.observations.clear()
            return
        if isinstance(first_error(bare.error), Died):
            exam.notes.append(str(first_error(bare.error)))
            return
        sites = self.user.blame(bare.error)
        lines = {(site.path, site.line) for site in sites[:1]}
        known = {(o.path, o.line) for o in exam.observations} | {line for o in exam.observations for line in o.also}
        if (sites and not lines & known) or not exam.observations:
            message = one_line(first_error(bare.error))
            exam.observe(
                naming.capture_raised(sites or self._begin(exam), None, message, naming.rules_of_call("", message))
            )

    def _begin(self, exam: Examination) -> tuple[Site, ...]:
        return (Site(exam.region.path, exam.region.line, exam.region.name),)

    def _timed(self, exam: Examination) -> _Timer:
        exam.trials += 1
        return _Timer(exam.seconds)


def _outlived(recording: Recording) -> Recording:
    """Drops reads of memory that is gone already: torch made it inside the region, below what the modes see."""
    for step in recording.steps:
        step.reads = tuple(read for read in step.reads if not read.storage.expired())
    return recording


class _Timer:
    def __init__(self, into: list[float]) -> None:
        self.into = into

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.into.append(time.perf_counter() - self.start)
