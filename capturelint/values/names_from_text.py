"""Names that a program puts together: ``getattr(self, f"forward_{kind}")``.

Formatted text is not worked out elsewhere: layers get their prefix that way, and each would be a value of its own.
"""

from __future__ import annotations

import ast
from itertools import product
from typing import TYPE_CHECKING

from capturelint.values.domain import Host, Value, options
from capturelint.values.expressions import evaluate

if TYPE_CHECKING:
    from capturelint.values.frame import Frame

_MAX_NAMES = 8
_AS_TEXT = (-1, ord("s"))


def of_argument(call: ast.AST, index: int, value: Value, frame: Frame) -> list[str] | None:
    """The texts that an argument, evaluated to ``value``, may be; None where they are not all known."""
    found = list(options(value))
    known = [option.const for option in found if isinstance(option, Host) and isinstance(option.const, str)]
    if len(known) == len(found):
        return known
    if isinstance(call, ast.Call) and index < len(call.args) and isinstance(call.args[index], ast.JoinedStr):
        return _formatted(call.args[index], frame)  # type: ignore[arg-type]
    return None


def _formatted(text: ast.JoinedStr, frame: Frame) -> list[str] | None:
    parts: list[list[str]] = []
    count = 1
    for part in text.values:
        if isinstance(part, ast.Constant):
            parts.append([str(part.value)])
            continue
        if not isinstance(part, ast.FormattedValue) or part.format_spec is not None or part.conversion not in _AS_TEXT:
            return None
        found = list(options(evaluate(part.value, frame)))
        texts = [str(each.const) for each in found if isinstance(each, Host) and isinstance(each.const, (str, int))]
        count *= len(texts)
        if len(texts) != len(found) or count > _MAX_NAMES:
            return None
        parts.append(texts)
    return ["".join(each) for each in product(*parts)] if parts else []
