"""What a program copies into graphs' inputs between replays: rows left as they were, pinned memory written too soon."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from capturelint.verifier import naming
from capturelint.verifier.device import Device
from capturelint.verifier.observation import Observation
from capturelint.verifier.region import tensors_of
from capturelint.verifier.sites import Site, UserCode
from capturelint.verifier.storage import Written
from capturelint.verifier.tolerance import difference
from capturelint.verifier.trial import Examination

#: larger inputs are not copied aside
_LARGEST = 256 << 20
#: clock cycles, some 10 ms, by which copies out of pinned memory are held up
_DELAY = 20_000_000


@dataclass
class _Fed:
    """Byte ranges of one storage that the program filled since the last replay."""

    ranges: list[tuple[int, int]] = field(default_factory=list)
    site: Site | None = None
    #: whether it holds integers
    indices: bool = False


@dataclass
class Traffic:
    """Follows ``copy_``, ``fill_``, ``zero_`` and item assignment of the program, outside of regions."""

    device: Device
    user: UserCode
    note: Callable[[Observation | None], None]
    #: whether the verifier itself is at work
    busy: Callable[[], bool]
    _fed: dict[int, _Fed] = field(default_factory=dict)
    _pending: dict[int, tuple[Any, Site]] = field(default_factory=dict)
    #: contents of inputs right after capture, by address
    _pristine: dict[int, torch.Tensor] = field(default_factory=dict)

    def captured(self, exam: Examination) -> None:
        """A graph was captured: keeps what its inputs hold now."""
        for address, watch in exam.recording.external.items():
            whole = Written(watch, watch.device).whole() if address not in self._pristine else None
            if whole is not None and whole.numel() <= _LARGEST:
                try:
                    self._pristine[address] = whole.clone()
                except RuntimeError:
                    continue

    def idle(self) -> bool:
        """Whether nothing is to be followed at this moment."""
        return not self._pristine or self.busy() or torch.cuda.is_current_stream_capturing()

    def changes(self, target: torch.Tensor, source: Any, non_blocking: bool, run: Callable[[], Any]) -> Any:
        """One call that fills ``target``, which ``run`` makes."""
        site = next(iter(self.user.stack()), None)
        if not self.device.holds(target):
            self._overwritten(target, site)
            return run()
        staged = non_blocking and isinstance(source, torch.Tensor) and self._pinned(source)
        if staged:
            # a busy GPU: the copy is done later than here, as in a loaded server
            torch.cuda._sleep(_DELAY)  # type: ignore[no-untyped-call]
        result = run()
        self._feed(target, site)
        if staged:
            event = torch.cuda.Event()  # type: ignore[no-untyped-call]
            event.record()
            if site is not None:
                self._pending[source.untyped_storage().data_ptr()] = (event, site)
        return result

    def _pinned(self, source: torch.Tensor) -> bool:
        return not self.device.holds(source) and self.device.reads(source)

    def _overwritten(self, target: torch.Tensor, site: Site | None) -> None:
        pending = self._pending.get(target.untyped_storage().data_ptr())
        if pending is not None and site is not None and not pending[0].query():
            self.note(naming.overwritten_pinned(site, pending[1]))

    def _feed(self, target: torch.Tensor, site: Site | None) -> None:
        address = target.untyped_storage().data_ptr()
        if address not in self._pristine or not target.is_contiguous():
            return
        start = target.storage_offset() * target.element_size()
        fed = self._fed.setdefault(address, _Fed())
        fed.ranges.append((int(start), int(start) + target.numel() * target.element_size()))
        fed.indices = not target.is_floating_point()
        # the longest fill is the one that feeds; resetting a tail comes beside it
        fed.site = site if len(fed.ranges) == 1 else fed.site

    def replayed(self, exam: Examination) -> None:
        """Before a replay: whether rows that were not filled since the last one matter for what the graph gives."""
        found: list[tuple[bool, Observation | None]] = []
        for address, fed in self._fed.items():
            watch = exam.recording.external.get(address)
            gaps = _gaps(fed.ranges, self._pristine[address].numel())
            if watch is not None and gaps and fed.site is not None and exam.capture is not None:
                entry = Written(watch, watch.device)
                if self._gaps_matter(exam, entry, address, gaps):
                    found.append((fed.indices, naming.tail_left(fed.site, sum(end - start for start, end in gaps))))
        self._fed.clear()
        # stale indices say where to write; other stale rows matter for rows that nobody looks at
        worst = any(indices for indices, _ in found)
        for indices, observation in found:
            if indices == worst:
                self.note(observation)

    def _gaps_matter(self, exam: Examination, entry: Written, address: int, gaps: list[tuple[int, int]]) -> bool:
        assert exam.capture is not None
        writes = [Written(item.storage, item.device) for item in exam.recording.written.values()]
        for item in (*writes, entry):
            item.before = item.copy()
        now = entry.whole()
        if now is None or all(torch.equal(now[a:b], self._pristine[address][a:b]) for a, b in gaps):
            return False
        outcomes = []
        for clean in (False, True):
            if clean:
                for start, end in gaps:
                    now[start:end].copy_(self._pristine[address][start:end])
            self.device.replay(exam.capture.graph)
            given = [*tensors_of(exam.capture.result), *exam.bound.values()]
            results = [tensor.detach().clone() for tensor in given]
            outcomes.append([*results, *(copy for item in writes if (copy := item.copy()) is not None)])
            for item in (*writes, entry):
                item.put(item.before)
        return any(difference(one, other) is not None for one, other in zip(*outcomes, strict=False))


def _gaps(ranges: list[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    """The parts of ``range(size)`` that no range covers."""
    gaps, at = [], 0
    for start, end in sorted(ranges):
        if start > at:
            gaps.append((at, start))
        at = max(at, end)
    if at < size:
        gaps.append((at, size))
    return gaps


@contextmanager
def following(traffic: Traffic) -> Iterator[None]:
    """Wraps the methods that fill tensors while the block runs."""
    tensor = torch.Tensor
    originals = {name: getattr(tensor, name) for name in ("copy_", "fill_", "zero_", "__setitem__")}

    def wrap(name: str, original: Any) -> Any:
        @functools.wraps(original)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if traffic.idle():
                return original(self, *args, **kwargs)
            target, source, non_blocking = self, args[0] if args else None, False
            if name == "copy_":
                non_blocking = bool(kwargs.get("non_blocking", args[1] if len(args) > 1 else False))
            elif name == "__setitem__":
                target, source = _part(self, args[0]), args[1]
            if target is None:
                return original(self, *args, **kwargs)
            return traffic.changes(target, source, non_blocking, lambda: original(self, *args, **kwargs))

        return call

    for name, original in originals.items():
        setattr(tensor, name, wrap(name, original))
    try:
        yield
    finally:
        for name, original in originals.items():
            if name in vars(torch._C.TensorBase):
                delattr(tensor, name)
            else:
                setattr(tensor, name, original)


def _part(tensor: torch.Tensor, index: Any) -> torch.Tensor | None:
    """The view that a plain index selects; None where the index is a tensor or a list."""
    parts = index if isinstance(index, tuple) else (index,)
    if all(part is Ellipsis or part is None or isinstance(part, (int, slice)) for part in parts):
        if any(isinstance(bound, torch.Tensor) for p in parts if isinstance(p, slice) for bound in (p.start, p.stop)):
            return None
        return tensor.detach()[index]
    return None
