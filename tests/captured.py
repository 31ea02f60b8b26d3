"""Regions that call one operator each, written from ``rules/ops/captured.json``: what a GPU did with each operator."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from capturelint.rulebook.captured import Captured

_TENSOR = re.compile(r"\bT(?P<rank>\d)(?P<kind>[ibc]?)(?P<host>@cpu)?(?![\w.])")
_DTYPES = {"": "float32", "i": "int64", "b": "bool", "c": "complex64"}
_HEAD = "import torch\n\nfrom capturelint import capture_region\n\n"


@dataclass(frozen=True, slots=True)
class Sample:
    """One call of an operator that was captured: ``fails`` is None where the same arguments did both."""

    operator: str
    call: str
    arguments: str
    fails: bool | None


def samples(captured: Captured) -> Iterator[Sample]:
    for name, operator in captured.operators.items():
        outcomes: dict[str, set[str]] = {}
        for outcome, arguments in operator.samples:
            outcomes.setdefault(arguments, set()).add(outcome)
        for arguments, found in outcomes.items():
            fails = found == {"error"} if len(found) == 1 else None
            yield Sample(name, operator.call, arguments, fails)


def region(sample: Sample, name: str, *, method: bool = False) -> list[str]:
    """The lines of a region that makes the sample's call, as a function or as a method."""
    inputs: dict[str, str] = {}

    def parameter(match: re.Match[str]) -> str:
        if match["host"]:
            return f"HOST{match['rank']}"
        spelled = f"x{len(inputs)}"
        inputs[spelled] = f"{_DTYPES[match['kind']]}[{', '.join(['4'] * int(match['rank']))}]"
        return spelled

    arguments = _TENSOR.sub(parameter, sample.arguments)
    call = f"{sample.call}({arguments})"
    if method:
        first, _, rest = arguments.partition(", ")
        call = f"{first}.{sample.call.rpartition('.')[2]}({rest})"
    names = ", ".join(f"{each}: torch.Tensor" for each in inputs)
    specs = ", ".join(f'"{each}": "{spec}"' for each, spec in inputs.items())
    return [f"@capture_region(inputs={{{specs}}})", f"def {name}({names}):", f"    return {call}", ""]


def module(regions: Iterable[list[str]]) -> tuple[str, list[int]]:
    """The source of all, and the line of each one's call."""
    lines = [*_HEAD.splitlines(), *(f"HOST{rank} = torch.zeros({[4] * rank})" for rank in range(4)), ""]
    calls = []
    for each in regions:
        calls.append(len(lines) + 3)
        lines += each
    return "\n".join(lines) + "\n", calls


def shares(captured: Captured) -> str:
    """What of the operators can be called in a generated region, and what is left out."""
    counts = Counter(
        (operator.capture, "spelled" if operator.samples else "left out") for operator in captured.operators.values()
    )
    return ", ".join(f"{outcome} {how}: {count}" for (outcome, how), count in sorted(counts.items()))
