"""Functions that ran before the capture and still say what it runs: memos and cached answers."""

from __future__ import annotations

from capturelint.project.definitions import FunctionInfo
from capturelint.values.domain import MISSING, Function, Host, Unknown, Value, options


def is_open(info: FunctionInfo, value: Value) -> bool:
    """Whether ``value``, what ``info`` returns as code outside regions has it, leaves open what runs then.

    Inside a region more is known, such as the hardware: there the answer may be one of the several here.
    """
    found = list(options(value))
    if len(found) == 1 and not isinstance(found[0], (Host, Unknown)):
        return False
    if len(found) == 1 and isinstance(found[0], Host) and found[0].const is not MISSING:
        return False
    return any(map(_chooses, found)) or (type(value) is Unknown and _asks_once(info))


def _chooses(option: Value) -> bool:
    """What to call, or which way to go."""
    return isinstance(option, Function) or (isinstance(option, Host) and option.kind in ("bool", "str"))


def _asks_once(info: FunctionInfo) -> bool:
    """Whether a function keeps its one answer, which is one about the machine or the process then."""
    return not info.parameters() and info.has_decorator("lru_cache", "cache")
