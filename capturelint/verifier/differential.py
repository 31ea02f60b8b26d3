"""Replay against an eager run on the same inputs and host state, and where the two part."""

from __future__ import annotations

import difflib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from capturelint.verifier import host, naming
from capturelint.verifier.device import Device
from capturelint.verifier.host import Change, Slot
from capturelint.verifier.lines import LineTrace, tracing
from capturelint.verifier.observation import CORRUPTION, Observation
from capturelint.verifier.reading import cached_function, where_read
from capturelint.verifier.record import Recorder, Recording, Step
from capturelint.verifier.region import tensors_of
from capturelint.verifier.sites import Site, UserCode, one_line
from capturelint.verifier.storage import Died, Written, put_back
from capturelint.verifier.tolerance import difference
from capturelint.verifier.trial import KEEP_BYTES, Examination

_MOST_STEPS_TO_ALIGN = 20_000


@dataclass
class Comparison:
    """One replay compared. ``equal`` is None where no comparison was possible, and ``problem`` says why."""

    equal: bool | None = None
    observations: list[Observation] = field(default_factory=list)
    problem: str | None = None
    nondeterministic: bool = False
    #: whether host state was taken to have gone on as eager runs would have left it
    assumed: str = ""


@dataclass
class _Run:
    """One eager run: results by place, and what it did."""

    results: list[torch.Tensor]
    written: dict[int, torch.Tensor]
    slots: list[tuple[Change, torch.Tensor]]
    changes: list[Change]
    recording: Recording
    lines: LineTrace
    #: changed slots whose tensor, after replay, is not what the eager run stored
    stale: list[Change] = field(default_factory=list)


@dataclass
class Comparer:
    """Compares replays of examined regions with eager runs; leaves device and host state as it finds them."""

    device: Device
    user: UserCode
    #: where each slot that an eager run changes is changed
    _change_sites: dict[tuple[int, Any], Site | None] = field(default_factory=dict)

    def compare(self, exam: Examination, when: str) -> Comparison:
        """Replays ``exam``'s graph on the inputs and state of this moment. ``when`` says which, for evidence."""
        comparison = Comparison()
        if exam.capture is None:
            return Comparison(problem="no capture of it worked")
        self._dead(exam, comparison, when)
        for identity, (slot, _) in list(exam.shadow.items()):
            if host.mark(slot.value()) != exam.shadow_base[identity]:
                # the program itself has set it since
                del exam.shadow[identity]
        comparison.assumed = "progress" if exam.shadow else ""
        generators = [*exam.generators, *exam.recording.generators]
        generator_states = self.device.random_state(generators)
        on_host = _host_random()
        try:
            run = self._eager(exam)
            self.device.restore_random(generator_states)
        except Died as error:
            comparison.problem = str(error)
            return comparison
        except Exception as error:
            self.device.restore_random(generator_states)
            comparison.problem = f"the eager run to compare with raised: {one_line(error)}"
            return comparison
        causes = list(self._host_causes(exam, run, when))
        try:
            differences = list(self._replay(exam, run))
        except RuntimeError as error:
            comparison.equal = False
            comparison.problem = f"the replay raised: {one_line(error)}"
            for _, observation in causes:
                _note(comparison, observation)
            return comparison
        self.device.restore_random(generator_states)
        if any(observation.consequence == CORRUPTION for observation in comparison.observations):
            for _, observation in causes:
                if observation is not None and observation.rules[0] == "CG304":
                    _note(comparison, observation)
        comparison.equal = not differences
        if differences:
            self._explain(exam, run, comparison, causes, differences, when)
        self._elided(exam, run, comparison)
        self._advance(exam, run)
        _restore_host_random(on_host)
        return comparison

    def _advance(self, exam: Examination, run: _Run) -> None:
        """Lets plain host state go on as eager runs would have left it: the next comparison starts there."""
        for change in run.changes:
            if isinstance(change.after, (bool, int, float, str)) and change.slot.kind in ("attribute", "item"):
                exam.shadow_base[change.slot.identity] = host.mark(change.slot.value())
                exam.shadow[change.slot.identity] = (change.slot, change.after)

    # -- the two runs

    def _eager(self, exam: Examination) -> _Run:
        state = host.snapshot(exam.region.roots(), self.user)
        for slot in exam.unset_before:
            if exam.tensor_in(slot) is exam.bound.get(slot.identity):
                slot.put(None)
        for slot, value in (*exam.shadow.values(), *exam.suggested):
            slot.put(value)
        recorder = Recorder(self.device, self.user, exam.shields, keep_bytes=KEEP_BYTES, save_written=True)
        recording = recorder.recording
        try:
            with tracing(self.user) as lines, recorder.active():
                result = exam.region.call()
            self.device.synchronize()
            changed = host.changes(state)
            run = _Run(
                [tensor.detach().clone() for tensor in tensors_of(result)],
                {address: copy for address, entry in recording.written.items() if (copy := entry.copy()) is not None},
                [
                    (c, c.after.detach().clone())
                    for c in changed
                    if isinstance(c.after, torch.Tensor) and not c.appeared
                ],
                changed,
                recording,
                lines,
            )
        finally:
            put_back(recording.written.values())
            state.restore()
        return run

    def _replay(self, exam: Examination, run: _Run) -> Iterator[tuple[str, str]]:
        """Replays, yields what differs from the eager run, and puts written memory back."""
        assert exam.capture is not None
        graph_writes = {
            address: Written(entry.storage, entry.device, dtype=entry.dtype)
            for address, entry in exam.recording.written.items()
        }
        for entry in graph_writes.values():
            entry.before = entry.copy()
        try:
            self.device.replay(exam.capture.graph)
            found = tensors_of(exam.capture.result)
            if len(found) != len(run.results):
                yield "result", f"{len(found)} tensors at capture, {len(run.results)} now"
            for index, (ours, theirs) in enumerate(zip(found, run.results, strict=False)):
                if (text := difference(ours, theirs)) is not None:
                    yield f"result {index}", text
            for address, theirs in run.written.items():
                entry = run.recording.written[address]
                held = entry.whole()
                if held is not None and (text := difference(held, theirs, entry.dtype)) is not None:
                    yield "memory that it writes", text
            for address, entry in graph_writes.items():
                now = entry.whole()
                if address not in run.written and now is not None and entry.before is not None:
                    if (text := difference(now, entry.before, entry.dtype)) is not None:
                        yield "memory that an eager run no longer writes", text
            for change, theirs in run.slots:
                ours = exam.tensor_in(change.slot)
                text = difference(ours, theirs) if isinstance(ours, torch.Tensor) else "bound by the eager run alone"
                if text is not None:
                    run.stale.append(change)
                    yield f"`{change.slot.name}`", text
        finally:
            put_back(graph_writes.values())

    # -- why they differ

    def _explain(
        self,
        exam: Examination,
        run: _Run,
        comparison: Comparison,
        causes: list[tuple[int, Observation | None]],
        differences: list[tuple[str, str]],
        when: str,
    ) -> None:
        before = len(comparison.observations)
        for _, observation in causes:
            _note(comparison, observation)
        divergent = self._first_divergent(exam, run)
        if divergent is not None and not any(index <= divergent[0] for index, _ in causes):
            index, text = divergent
            step = exam.recording.steps[index]
            seeding = _last_seeding(exam.recording.steps[:index]) if step.random else None
            if seeding is not None:
                _note(comparison, naming.reseeded(seeding.sites, seeding.op, step.op, when))
            elif self._stable(exam, run):
                _note(comparison, naming.diverged(step.sites, step.op, text, when))
            else:
                comparison.nondeterministic = True
        if len(comparison.observations) == before and not comparison.nondeterministic:
            if not self._stable(exam, run):
                comparison.nondeterministic = True
                return
            site = (Site(exam.region.path, exam.region.line, exam.region.name),)
            place, text = differences[0]
            _note(comparison, naming.diverged(site, place, text, when))

    def _host_causes(self, exam: Examination, run: _Run, when: str) -> Iterator[tuple[int, Observation | None]]:
        """Frozen branches, scalars and addresses: (index of the captured step, what it shows)."""
        captured, now = exam.recording.steps, run.recording.steps
        fork = exam.lines.first_fork(run.lines)
        blocks = _aligned(captured, now)
        differing = [block for block in blocks if block[0] != "equal"]
        #: sizes that differ because of what came before: (at capture, now)
        resized: set[tuple[str, str]] = set()
        if fork is not None and differing:
            site, before, after = fork
            entered = run.lines.after_fork(exam.lines)
            cached = cached_function(*entered) if entered is not None else None
            if cached is not None and entered is not None:
                yield differing[0][1], naming.evicted(Site(entered[0], *cached), site, when)
            yield differing[0][1], naming.frozen_branch(site, naming.line_word(before), naming.line_word(after), when)
        for tag, i1, i2, j1, j2 in blocks:
            if tag != "equal":
                if fork is None and not resized:
                    step = captured[i1] if i1 < i2 else now[j1]
                    if step.sites:
                        was = captured[i1].op if i1 < i2 else "nothing"
                        now_op = now[j1].op if j1 < j2 else "nothing"
                        yield i1, naming.frozen_branch(step.sites[0], f"`{was}`", f"`{now_op}`", when)
                continue
            for i, j in zip(range(i1, i2), range(j1, j2), strict=True):
                yield from ((i, seen) for seen in self._step_causes(exam, captured[i], now[j], resized, when))
                resized |= _resized(captured[i], now[j])

    def _step_causes(
        self, exam: Examination, captured: Step, now: Step, resized: set[tuple[str, str]], when: str
    ) -> Iterator[Observation | None]:
        if captured.scalars != now.scalars:
            pairs = [pair for pair in _unequal(captured.scalars, now.scalars) if pair not in resized]
            if not pairs:
                # it only follows the size of a tensor, which differs already
                return
            was, new = pairs[0]
            yield naming.frozen_scalar(captured.sites, captured.op, was, new, when)
        elif len(captured.reads) == len(now.reads):
            for was_read, now_read in zip(captured.reads, now.reads, strict=True):
                if was_read.address != now_read.address:
                    name = self._name_of(exam, now_read.address)
                    # what has no name is made below the dispatcher, anew in every run
                    if name is not None:
                        yield naming.moved(captured.sites, name, was_read.storage.expired(), when)
                        return
                if was_read.offset != now_read.offset:
                    was, new = f"offset {was_read.offset}", f"offset {now_read.offset}"
                    yield naming.frozen_scalar(captured.sites, captured.op, was, new, when)
                    return

    def _name_of(self, exam: Examination, address: int) -> str | None:
        for slot in host.snapshot(exam.region.roots(), self.user).tensor_slots():
            value = slot.value()
            try:
                if value.untyped_storage().data_ptr() == address:
                    return f"`{slot.name}`"
            except (RuntimeError, NotImplementedError):
                continue
        return None

    def _first_divergent(self, exam: Examination, run: _Run) -> tuple[int, str] | None:
        """The first step whose result differs, by the copies that both runs kept."""
        assert exam.capture is not None
        graph_writes = [Written(entry.storage, entry.device) for entry in exam.recording.written.values()]
        for entry in graph_writes:
            entry.before = entry.copy()
        try:
            self.device.replay(exam.capture.graph)
            for tag, i1, i2, j1, _ in _aligned(exam.recording.steps, run.recording.steps):
                if tag != "equal":
                    return None
                for i, j in zip(range(i1, i2), range(j1, j1 + i2 - i1), strict=True):
                    ours, theirs = exam.recording.steps[i].values, run.recording.steps[j].values
                    if ours is None or theirs is None:
                        continue
                    for one, other in zip(ours, theirs, strict=False):
                        if (text := difference(one, other)) is not None and not _uninitialized(exam.recording.steps[i]):
                            return i, text
        finally:
            put_back(graph_writes)
        return None

    def _stable(self, exam: Examination, run: _Run) -> bool:
        """Whether a second eager run gives what the first gave."""
        generators = [*exam.generators, *exam.recording.generators]
        generator_states = self.device.random_state(generators)
        try:
            again = self._eager(exam)
        finally:
            self.device.restore_random(generator_states)
        return len(again.results) == len(run.results) and all(
            difference(one, other) is None for one, other in zip(again.results, run.results, strict=True)
        )

    # -- side effects

    def _elided(self, exam: Examination, run: _Run, comparison: Comparison) -> None:
        plain = [change for change in run.changes if not change.tensors]
        if not run.changes:
            return
        fresh = [change for change in run.changes if change.slot.identity not in self._change_sites]
        if fresh:
            self._locate(exam, fresh)
        for change in plain:
            site = self._change_sites.get(change.slot.identity)
            if site is None:
                continue
            read = where_read(change.slot.word, site, self.user)
            if read is not None:
                _note(comparison, naming.elided(site, str(change), read))
        for change in run.stale:
            site = self._change_sites.get(change.slot.identity)
            identity = change.slot.identity
            # an output that the slot still holds is stale because of other lines
            if site is not None and (
                identity in exam.carried or exam.tensor_in(change.slot) is not exam.bound.get(identity)
            ):
                _note(comparison, naming.stored(site, change.slot.name))

    def _locate(self, exam: Examination, changes: list[Change]) -> None:
        """Runs eagerly with a watch on the slots, to learn on which line each is changed."""
        state = host.snapshot(exam.region.roots(), self.user)
        sites: dict[tuple[int, Any], Site] = {}
        here: list[Site | None] = [None]

        def report(slot: Slot, before: str, after: str) -> None:
            if here[0] is not None:
                sites.setdefault(slot.identity, here[0])

        check = host.watcher([change.slot for change in changes], report)

        def after_line(site: Site) -> None:
            here[0] = site
            check()

        recorder = Recorder(self.device, self.user, exam.shields, save_written=True)
        generators = [*exam.generators, *exam.recording.generators]
        generator_states = self.device.random_state(generators)
        try:
            with tracing(self.user, after_line), recorder.active():
                exam.region.call()
        except Exception:
            pass
        finally:
            put_back(recorder.recording.written.values())
            state.restore()
            self.device.restore_random(generator_states)
        for change in changes:
            self._change_sites[change.slot.identity] = sites.get(change.slot.identity)

    def _dead(self, exam: Examination, comparison: Comparison, when: str) -> None:
        autocast: tuple[str, int] | None = getattr(exam.region, "autocast", None)
        for step in exam.recording.steps:
            for read in step.reads:
                if read.storage.expired() and autocast is not None:
                    _note(comparison, naming.autocast_cache(Site(*autocast, ""), step.sites, when))
                elif read.storage.expired():
                    _note(comparison, naming.moved(step.sites, "an input", True, when))


def _host_random() -> Any:
    """The program's own random numbers go on as if nothing had been compared."""
    return random.getstate(), torch.get_rng_state()


def _restore_host_random(state: Any) -> None:
    random.setstate(state[0])
    torch.set_rng_state(state[1])


def _note(comparison: Comparison, observation: Observation | None) -> None:
    if observation is not None and all(observation.key != known.key for known in comparison.observations):
        comparison.observations.append(observation)


def _unequal(one: tuple[str, ...], other: tuple[str, ...]) -> list[tuple[str, str]]:
    if len(one) != len(other):
        return [(f"{len(one)} values", f"{len(other)} values")]
    return [(left, right) for left, right in zip(one, other, strict=True) if left != right]


def _resized(captured: Step, now: Step) -> set[tuple[str, str]]:
    if captured.shapes == now.shapes:
        return set()
    return {
        (repr(was), repr(new))
        for one, other in zip(captured.shapes, now.shapes, strict=False)
        for was, new in zip(one, other, strict=False)
        if was != new
    }


def _last_seeding(steps: list[Step]) -> Step | None:
    return next((step for step in reversed(steps) if "manual_seed" in step.op), None)


def _uninitialized(step: Step) -> bool:
    return step.op.startswith(("aten.empty", "aten.new_empty"))


def _aligned(captured: list[Step], now: list[Step]) -> list[tuple[str, int, int, int, int]]:
    one = [(step.op, step.site) for step in captured]
    other = [(step.op, step.site) for step in now]
    if one == other:
        return [("equal", 0, len(one), 0, len(other))]
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    rest_one, rest_other = one[start : start + _MOST_STEPS_TO_ALIGN], other[start : start + _MOST_STEPS_TO_ALIGN]
    matcher = difflib.SequenceMatcher(a=rest_one, b=rest_other, autojunk=len(rest_one) > 3000)
    blocks: list[tuple[str, int, int, int, int]] = [
        (tag, i1 + start, i2 + start, j1 + start, j2 + start) for tag, i1, i2, j1, j2 in matcher.get_opcodes()
    ]
    return [("equal", 0, start, 0, start), *blocks] if start else blocks
