"""Tensor specs: ``"float16[8, 4096]"``, ``"int32[8] in 1..4096"``, ``"float32[]"``. Imports no torch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from capturelint.errors import UsageError
from capturelint.suggest import did_you_mean

_DTYPES = [
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "bool",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
]
_ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "int": "int32",
    "long": "int64",
    "short": "int16",
}
_NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_SPEC = re.compile(
    rf"\s*(?:torch\.)?(?P<dtype>\w+)\s*\[(?P<shape>[\d\s,]*)\]\s*(?:in\s+(?P<low>{_NUMBER})\s*\.\.\s*(?P<high>{_NUMBER}))?\s*"
    r"(?P<device>cpu|pinned)?\s*"
)


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor to make up. Bounds are inclusive for integers; ``device`` is ``cuda``, ``cpu`` or ``pinned``."""

    dtype: str
    shape: tuple[int, ...]
    low: float | None = None
    high: float | None = None
    device: str = "cuda"


def parse_spec(text: str) -> TensorSpec:
    """Reads one spec. Raises UsageError, which shows the spec and what is wrong with it."""
    match = _SPEC.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not a tensor spec such as 'float16[8, 4096]' or 'int32[8] in 1..4096'")
    dtype = _ALIASES.get(match["dtype"], match["dtype"])
    if dtype not in _DTYPES:
        raise UsageError(f"{text!r}: no dtype {match['dtype']!r}{did_you_mean(match['dtype'], _DTYPES)}")
    sizes = [part.strip() for part in match["shape"].split(",")]
    if sizes[-1] == "":
        sizes.pop()
    if "" in sizes:
        raise UsageError(f"{text!r}: a size is missing")
    low = float(match["low"]) if match["low"] else None
    high = float(match["high"]) if match["high"] else None
    if low is not None and high is not None and low > high:
        raise UsageError(f"{text!r}: the range is empty")
    return TensorSpec(dtype, tuple(int(size) for size in sizes), low, high, match["device"] or "cuda")


def parse_value(text: str) -> TensorSpec | int | float | bool | str | None:
    """A spec, or a plain value for an argument that is no tensor: ``8``, ``0.5``, ``true``, ``none``, ``'text'``."""
    plain: Mapping[str, Any] = {"true": True, "false": False, "none": None}
    stripped = text.strip()
    if stripped.lower() in plain:
        value: Any = plain[stripped.lower()]
        return value  # type: ignore[no-any-return]
    if re.fullmatch(r"-?\d+", stripped):
        return int(stripped)
    if re.fullmatch(_NUMBER, stripped):
        return float(stripped)
    if len(stripped) >= 2 and stripped[0] == stripped[-1] and stripped[0] in "'\"":
        return stripped[1:-1]
    return parse_spec(text)
