"""Version ranges of torch such as ``>=2.3,<2.11``: which facts hold for the versions that a project uses."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

#: the newest torch that facts were looked up for: a range that ends before it is about older versions alone
NEWEST = "2.13"

_PART = re.compile(r"\s*(?P<compare>>=|<=|==|!=|<|>)\s*(?P<version>\d+(?:\.\d+)*)\s*")
_COMPARE: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}


def is_range(text: str) -> bool:
    return all(_PART.fullmatch(part) for part in text.split(","))


def holds(versions: str, version: str | None) -> bool:
    """Whether ``version`` (``2.11``, ``2.11.0+cu130``) is in the range; with None, whether the newest is."""
    if not versions:
        return True
    wanted = _numbers(version or NEWEST)
    parts = [match for part in versions.split(",") if (match := _PART.fullmatch(part))]
    return all(_COMPARE[part["compare"]](wanted, _numbers(part["version"])) for part in parts)


def _numbers(version: str) -> tuple[int, ...]:
    """Major and minor: patch releases change none of these facts."""
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:2])
