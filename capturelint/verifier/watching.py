"""Names that hold what a graph reads or writes, watched after capture: which line binds them to something else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType

import torch

from capturelint.verifier import host, naming
from capturelint.verifier.host import Slot
from capturelint.verifier.observation import Observation
from capturelint.verifier.region import BlockRegion
from capturelint.verifier.sites import Site, UserCode
from capturelint.verifier.storage import address_of
from capturelint.verifier.trial import Examination


@dataclass
class _Rebound:
    site: Site
    name: str
    exam: Examination


@dataclass
class Watch:
    """Checks, after every line of the program, the slots of all graphs captured so far."""

    user: UserCode
    note: Callable[[Observation | None], None]
    _checks: list[Callable[[], None]] = field(default_factory=list)
    _frames: list[tuple[FrameType, BlockRegion, Examination, dict[str, int]]] = field(default_factory=list)
    _rebound: list[_Rebound] = field(default_factory=list)
    _here: Site | None = None

    def add(self, exam: Examination, region: BlockRegion, before: host.HostState) -> None:
        """Begins to watch the slots that hold tensors of ``exam``'s graph, now that it is captured."""
        known = {slot.identity for slot, _ in before.slots()}
        changed = {change.slot.identity for change in host.changes(before)}
        used = set(exam.recording.external)
        slots = [
            slot
            for slot in host.snapshot(region.roots(), self.user).tensor_slots()
            if slot.identity in changed or address_of(slot.value()) in used or slot.identity not in known
        ]

        def report(slot: Slot, was: str, now: str) -> None:
            if self._here is not None:
                self._rebound.append(_Rebound(self._here, slot.name, exam))

        self._checks.append(host.watcher(slots, report))
        if region.frame is not None:
            names = {
                name: address_of(value)
                for name, value in region.frame.f_locals.items()
                if isinstance(value, torch.Tensor) and address_of(value) in used
            }
            self._frames.append((region.frame, region, exam, names))

    def after_line(self, site: Site) -> None:
        """To be called when a line of the program is done."""
        if not self._checks:
            return
        self._here = site
        for check in self._checks:
            check()
        for frame, _, exam, names in self._frames:
            if frame.f_code.co_filename != site.path or frame.f_code.co_name != site.function:
                continue
            for name in list(names):
                value = frame.f_locals.get(name)
                if value is None or address_of(value) != names[name]:
                    del names[name]
                    self._rebound.append(_Rebound(site, name, exam))

    def leave(self, frame: FrameType) -> None:
        self._frames = [entry for entry in self._frames if entry[0] is not frame]

    def replayed(self, exam: Examination, differs: bool, dead: bool) -> None:
        """A replay was compared: where it is wrong, what was rebound since capture is why."""
        if not (differs or dead):
            return
        for rebound in [entry for entry in self._rebound if entry.exam is exam]:
            self.note(naming.rebound(rebound.site, rebound.name, dead))
        self._rebound = [entry for entry in self._rebound if entry.exam is not exam]
