"""Code that a graph is not made for: branches for training, for tensors on the host, for what nobody handed over.

A test that nothing decides may still say that a captured run takes its other side. What such code does at capture is
only possible.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.syntax import dotted_name, last_name, store_targets
from capturelint.values.domain import Device, Tensor, Value, is_none, options
from capturelint.values.narrowing import device_test, open_part, subject_of
from capturelint.values.scope import Scope

if TYPE_CHECKING:
    from capturelint.values.frame import Frame

#: so many conditions joined by `and` make a flag that says whether a faster way applies
_MANY_CONDITIONS = 4
_TAKING = ("int", "float", "bool", "len", "list", "tuple", "cast")


NOT_HANDED_OVER = "it makes up for what some callers hand over"


def branch_is_elsewhere(
    test: ast.expr, side: bool, frame: Frame, body: list[ast.stmt], other: list[ast.stmt]
) -> str | None:
    """Why ``body``, one side of an undecided ``if``, is for other runs than the captured one; None where nothing is."""
    return "it is for training" if _trains(test, side) else _elsewhere(test, side, frame, body, other)


def rest_is_elsewhere(node: ast.If, rest: list[ast.stmt], before: dict[str, Value], frame: Frame) -> str | None:
    """``if x.is_cuda: return ...`` and then code for other runs, by the names as the test saw them."""
    scope = frame.scope
    assert isinstance(scope, Scope)
    after, scope.names = scope.names, before
    why = _elsewhere(node.test, False, frame, rest, node.body)
    scope.names = after
    return why


def falls_back(test: ast.expr, holds: bool, frame: Frame) -> bool:
    """``hint if hint is not None else work_out()``: what nobody handed over is made up for."""
    return _asks_for_none(test, holds) and _handed_over(test, frame)


def _makes_up(test: ast.expr, body: list[ast.stmt], other: list[ast.stmt]) -> bool:
    """Whether ``body`` works out what the other side takes from what a test compares with None.

    ``if residual is None: return norm(x)`` is as usual as its other side, which does something else.
    """
    asked = _compared_with_none(test)
    for statement in body if asked else ():
        for node in ast.walk(statement):
            if any(dotted_name(target) in asked for target in store_targets(node)):
                return True
    return any(
        isinstance(statement, (ast.Assign, ast.Return))
        and statement.value is not None
        and _is_part_of(statement.value, asked)
        for statement in other
    )


def _filled_in(name: str | None, frame: Frame) -> bool:
    """Whether the class gives an attribute a value where it is None: ``if self.limit is None: self.limit = 10``."""
    owner, _, attribute = (name or "").rpartition(".")
    info = frame.function
    while info is not None and info.owner is None:
        info = info.parent
    if not owner or "." in owner or info is None or info.owner is None:
        return False
    stores = [store for cls in frame.engine.mro(info.owner) if isinstance(cls, ClassInfo)
              for store in cls.attribute_stores(attribute)]  # fmt: skip
    return any(_where_none(method, statement, attribute) for method, statement in stores)


def _where_none(method: FunctionInfo, statement: ast.AST, attribute: str) -> bool:
    return any(
        isinstance(node, ast.If)
        and _asks_for_none(node.test, True)
        and any(name is not None and name.endswith(f".{attribute}") for name in _compared_with_none(node.test))
        and any(each is statement for inner in node.body for each in ast.walk(inner))
        for node in ast.walk(method.node)
    )


def _compared_with_none(test: ast.expr) -> set[str | None]:
    return {
        dotted_name(node.left)
        for node in ast.walk(test)
        if isinstance(node, ast.Compare) and any(isinstance(each, (ast.Is, ast.IsNot)) for each in node.ops)
    } - {None}


def _is_part_of(value: ast.expr, names: set[str | None]) -> bool:
    """``hint``, ``hint.plan``, ``hint[0]``, ``int(hint)``: taken, not worked out."""
    while dotted_name(value) not in names:
        if isinstance(value, (ast.Attribute, ast.Subscript)):
            value = value.value
        elif isinstance(value, ast.Call) and last_name(value.func) in _TAKING and len(value.args) == 1:
            value = value.args[0]
        else:
            return False
    return True


def _elsewhere(test: ast.expr, holds: bool, frame: Frame, body: list[ast.stmt], other: list[ast.stmt]) -> str | None:
    if _on_host(test, holds, frame):
        return "it is for tensors on the host"
    if _lacks_fast_path(test, holds, frame):
        return "it runs where one of many conditions for the usual way fails"
    if falls_back(test, holds, frame):
        if _makes_up(test, body, other):
            return NOT_HANDED_OVER
        if any(_filled_in(name, frame) for name in _compared_with_none(test)):
            return "what it asks for is given a value elsewhere where it is None"
    return None


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
