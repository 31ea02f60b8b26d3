"""Code that a graph is not made for: branches for training, for tensors on the host, for what nobody handed over.

A test that nothing decides may still say that a captured run takes its other side. What such code does at capture is
only possible.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from capturelint.values.domain import Device, Tensor, Value, is_none, options
from capturelint.values.narrowing import device_test, open_part, subject_of
from capturelint.values.scope import Scope

if TYPE_CHECKING:
    from capturelint.values.frame import Frame

#: so many conditions joined by `and` make a flag that says whether a faster way applies
_MANY_CONDITIONS = 4


NOT_HANDED_OVER = "it makes up for what some callers hand over"


def branch_is_elsewhere(test: ast.expr, side: bool, frame: Frame) -> str | None:
    """Why one side of an undecided ``if`` is for other runs than the captured one, or None where nothing says so."""
    return "it is for training" if _trains(test, side) else _elsewhere(test, side, frame)


def rest_is_elsewhere(test: ast.expr, before: dict[str, Value], frame: Frame) -> str | None:
    """``if x.is_cuda: return ...`` and then code for other runs, by the names as the test saw them."""
    scope = frame.scope
    assert isinstance(scope, Scope)
    after, scope.names = scope.names, before
    why = _elsewhere(test, False, frame)
    scope.names = after
    return why


def falls_back(test: ast.expr, holds: bool, frame: Frame) -> bool:
    """``if hint is None:`` where some callers hand a hint over: what nobody handed over is made up for."""
    return _asks_for_none(test, holds) and _handed_over(test, frame)


def _elsewhere(test: ast.expr, holds: bool, frame: Frame) -> str | None:
    if _on_host(test, holds, frame):
        return "it is for tensors on the host"
    if _lacks_fast_path(test, holds, frame):
        return "it runs where one of many conditions for the usual way fails"
    return NOT_HANDED_OVER if falls_back(test, holds, frame) else None


def _trains(test: ast.expr, side: bool) -> bool:
    """``if self.training:``: what is captured for inference has left training mode."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _trains(test.operand, not side)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return side and any(_trains(part, side) for part in test.values)
    return side and isinstance(test, ast.Attribute) and test.attr == "training"


def _on_host(test: ast.expr, holds: bool, frame: Frame) -> bool:
    """Whether code runs only for tensors on the host, by a test of one that nothing says is there."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _on_host(test.operand, not holds, frame)
    if isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) is holds:
            return any(_on_host(part, holds, frame) for part in test.values)
        part = open_part(test, holds, frame)
        return part is not None and _on_host(part, holds, frame)
    asked = device_test(test)
    if asked is None or asked[1] is holds:
        return False
    subject = subject_of(asked[0], frame)
    known = options(subject[1]) if subject is not None else ()
    return not any(isinstance(option, Tensor) and option.device is Device.HOST for option in known)


def _lacks_fast_path(test: ast.expr, holds: bool, frame: Frame) -> bool:
    """``fast = a and b and c and d``, ``if not fast:``: what runs where one condition for the usual way fails."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _lacks_fast_path(test.operand, not holds, frame)
    if holds or not isinstance(test, ast.Name) or frame.function is None:
        return False
    made = frame.function.assigned.get(test.id, [])
    return len(made) == 1 and (
        isinstance(made[0], ast.BoolOp) and isinstance(made[0].op, ast.And) and len(made[0].values) >= _MANY_CONDITIONS
    )


def _asks_for_none(test: ast.expr, holds: bool) -> bool:
    """Whether code runs only where something is None."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _asks_for_none(test.operand, not holds)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is holds:
        return any(_asks_for_none(part, holds) for part in test.values)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Is, ast.IsNot)):
        return False
    other = test.comparators[0]
    return isinstance(other, ast.Constant) and other.value is None and isinstance(test.ops[0], ast.Is) is holds


def _handed_over(test: ast.expr, frame: Frame) -> bool:
    """Whether what a test compares with None may be something else, as far as is known of its values."""
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and isinstance(node.comparators[0], ast.Constant):
            if isinstance(node.left, ast.Name) and not _is_parameter(node.left.id, frame):
                continue
            subject = subject_of(node.left, frame)
            if subject is not None and any(not is_none(option) for option in options(subject[1])):
                return True
    return False


def _is_parameter(name: str, frame: Frame) -> bool:
    """A parameter, or a short name for an attribute: what others hand over."""
    if frame.function is None:
        return False
    return any(each.arg == name for each in frame.function.parameters()) or any(
        isinstance(value, ast.Attribute) for value in frame.function.assigned.get(name, ())
    )
