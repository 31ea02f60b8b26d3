"""What a run of the verifier saw, before it is matched with findings. Imports no torch: the parent reads it too."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

CAPTURE_ERROR, STALE, CORRUPTION = "capture-error", "stale-replay", "corruption"
#: the first rule of an observation that says that the graph reads memory which nobody holds any more
FREED = "CG504"


@dataclass(frozen=True, slots=True)
class Observation:
    """One thing that went wrong. ``also`` are other lines of the same cause, such as the callers' and the fork's."""

    consequence: str
    path: str
    line: int
    text: str
    #: rules that say this, the best first; those that the rulebook lacks are passed over
    rules: tuple[str, ...] = ()
    also: tuple[tuple[str, int], ...] = ()
    function: str = ""
    #: what it rests on: ``progress`` (host state taken to have gone on as eager runs would have left it), ``names``
    #: (the replaying function's values for names of the block); such is dropped where a reference run speaks against it
    assumed: str = ""
    #: says that something is wrong and not why: counts where nothing else of its region does
    weak: bool = False
    #: proves a finding, but is no hazard by itself: never reported where the linter found nothing
    only_confirms: bool = False

    @property
    def frees(self) -> bool:
        """Whether it explains why memory of a graph is gone."""
        return bool({"CG501", "CG505", "CG902", "CG304"} & set(self.rules))

    @property
    def key(self) -> tuple[str, str, int, str]:
        return (self.consequence, self.path, self.line, self.rules[0] if self.rules else "")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> Observation:
        return Observation(
            data["consequence"],
            data["path"],
            data["line"],
            data["text"],
            tuple(data["rules"]),
            tuple((path, line) for path, line in data["also"]),
            data["function"],
            data["assumed"],
            data["weak"],
            data["only_confirms"],
        )


@dataclass
class Outcome:
    """What became of one job: observations and coverage, or why there are none."""

    observations: list[Observation] = field(default_factory=list)
    #: lines of user code that ran inside a region
    seen: set[tuple[str, int]] = field(default_factory=set)
    #: lines of user code that ran at all, where a whole program did
    ran: set[tuple[str, int]] = field(default_factory=set)
    #: an error that cannot be shielded ended every trial: what comes after it in the region was not tried
    cut: bool = False
    #: why nothing, or not everything, could be tried
    problem: str | None = None
    #: ``inconclusive`` or ``unverified``, for findings that the problem leaves open
    status: str = "inconclusive"
    trials: int = 0
    comparisons: int = 0
    captured: int = 0
    tried: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    trial_seconds: list[float] = field(default_factory=list)
    device: str = ""

    def to_json(self) -> dict[str, Any]:
        data = {key: value for key, value in vars(self).items() if key not in ("observations", "seen", "ran")}
        data["ran"] = sorted(self.ran)
        data["observations"] = [observation.to_json() for observation in self.observations]
        data["seen"] = sorted(self.seen)
        return data

    @staticmethod
    def from_json(data: dict[str, Any]) -> Outcome:
        rest = {key: value for key, value in data.items() if key not in ("observations", "seen", "ran")}
        return Outcome(
            observations=[Observation.from_json(item) for item in data["observations"]],
            seen={(path, line) for path, line in data["seen"]},
            ran={(path, line) for path, line in data["ran"]},
            **rest,
        )

    def settle(self) -> None:
        """Drops what other observations explain: bare divergences, and reads of memory whose loss has a cause."""
        stale = [item for item in self.observations if item.consequence != CAPTURE_ERROR and not item.only_confirms]
        causes = [item for item in stale if not item.weak and item.rules[0] != FREED]
        if causes:
            self.observations[:] = [
                item
                for item in self.observations
                if not item.weak and (item.rules[0] != FREED or not any(cause.frees for cause in causes))
            ]

    def add_maybe(self, observation: Observation | None) -> None:
        if observation is not None:
            self.add(observation)

    def add(self, observation: Observation) -> None:
        if all(observation.key != known.key for known in self.observations):
            self.observations.append(observation)
