"""``rules/ops/captured.json``: what a GPU did with each operator of torch's operator database while capturing.

Loaded when first asked for: checks do not need it. An operator that is not in it was not measured, which is not to say
that it captures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from capturelint.errors import RulebookError
from capturelint.rulebook.location import rules_directory

#: outcomes over all samples of an operator, as users read them; ``unknown`` counts as not measured
OUTCOMES = {"ok": "captures", "error": "fails", "depends": "depends on its arguments"}
NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class CapturedOperator:
    """``call`` is the dotted name to call it by, empty where it has none; a sample is an outcome and its arguments."""

    capture: str
    call: str = ""
    samples: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Captured:
    torch: str
    gpu: str
    operators: Mapping[str, CapturedOperator]

    def outcome(self, dotted: str) -> str:
        """What capture of an operator, by its dotted name, came to over all variants that were tried."""
        names = {dotted, dotted.replace("torch.Tensor.", "torch.")}  # a method is the function of that name
        found = {
            operator.capture
            for operator in self.operators.values()
            if operator.call in names and operator.capture in OUTCOMES
        }
        if not found:
            return NOT_MEASURED
        return OUTCOMES[found.pop() if len(found) == 1 else "depends"]


@lru_cache(maxsize=2)
def load_captured(path: Path | None = None) -> Captured:
    """Raises RulebookError, naming the file, where it is missing or wrong."""
    path = path or rules_directory() / "ops" / "captured.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        operators = {
            name: CapturedOperator(
                row["capture"], row.get("call", ""), tuple((each[0], each[1]) for each in row.get("samples", ()))
            )
            for name, row in data["operators"].items()
        }
        return Captured(data["torch"], data["gpu"], operators)
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise RulebookError(f"{path}: {error}") from None
