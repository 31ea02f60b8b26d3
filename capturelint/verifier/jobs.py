"""Jobs as they travel from the parent to a worker. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from capturelint.verifier.harness import Harness


@dataclass(frozen=True, slots=True)
class Job:
    """One function to call, or one program to run. Paths are absolute."""

    number: int
    root: str
    #: the file and the dotted name of the region's function; of the holder for programs
    path: str
    line: int
    name: str
    harness: Harness | None
    comparisons: int = 3
    #: seconds, import and set-up included
    time_limit: float = 60.0
    #: host names that findings say can change between capture and replay
    suspects: tuple[str, ...] = ()

    @property
    def is_program(self) -> bool:
        return self.harness is not None and self.harness.run is not None

    def to_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "root": self.root,
            "path": self.path,
            "line": self.line,
            "name": self.name,
            "harness": self.harness.to_json() if self.harness is not None else None,
            "comparisons": self.comparisons,
            "time_limit": self.time_limit,
            "suspects": list(self.suspects),
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> Job:
        harness = Harness.from_json(data["harness"]) if data["harness"] is not None else None
        return Job(**{**data, "harness": harness, "suspects": tuple(data["suspects"])})
