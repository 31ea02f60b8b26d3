"""Operators on abstract values: arithmetic and comparison."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from typing import Any

from capturelint.model import Confidence
from capturelint.values.change import either
from capturelint.values.domain import (
    MISSING,
    UNKNOWN,
    Device,
    DeviceValue,
    DType,
    ExternalInstance,
    Host,
    Mapping,
    Read,
    Sequence,
    Tensor,
    Unknown,
    Value,
    changing_reason,
    join,
    options,
)

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_BITWISE = (ast.BitAnd, ast.BitOr, ast.BitXor)


def arithmetic(op: ast.operator, left: Value, right: Value) -> Value:
    """``left op right``; the device wins over the host, ranks broadcast."""
    return join(*(_arithmetic(op, a, b) for a in options(left) for b in options(right)))


#: a longer text that is put together is some text: doubled forty times it would not fit into memory
_LONGEST_TEXT = 10_000
#: how many elements a repeated list may have to be known one by one
_REPEATED = 64


def _arithmetic(op: ast.operator, left: Value, right: Value) -> Value:
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        return combined((left, right), dtype=_dtype(op, left, right))
    if isinstance(left, Sequence) and isinstance(right, Sequence) and isinstance(op, ast.Add):
        if left.items is not None and right.items is not None:
            return Sequence(left.kind, left.items + right.items, changing=either(left.changing, right.changing))
        from capturelint.values.domain import element_of

        return Sequence(left.kind, None, join(element_of(left), element_of(right)))
    if isinstance(left, Sequence) and isinstance(op, ast.Mult):
        from capturelint.values.domain import element_of

        if left.items is None or not left.items:
            return left
        times = right.const if isinstance(right, Host) else None
        if isinstance(times, int) and 0 < times * len(left.items) <= _REPEATED:
            return Sequence(left.kind, left.items * times)
        return Sequence(left.kind, None, element_of(left))
    if isinstance(left, Mapping) and isinstance(op, ast.BitOr):
        return join(left, right)
    if isinstance(left, Read) or isinstance(right, Read):
        return left if isinstance(left, Read) else right
    for operator_, decisive in ((ast.BitOr, True), (ast.BitAnd, False)):
        if isinstance(op, operator_) and any(isinstance(e, Host) and e.const is decisive for e in (left, right)):
            if all(isinstance(each, (Host, Unknown)) for each in (left, right)):
                return Host(const=decisive, kind="bool")  # `tracing |= ...` after `tracing = True`
    if isinstance(left, Host) and isinstance(right, Host):
        return _host(op, left, right)
    if isinstance(left, ExternalInstance) and left.cls == "numpy.ndarray":
        return left
    if isinstance(right, ExternalInstance) and right.cls == "numpy.ndarray":
        return right
    if any(isinstance(each, Unknown) and each.tensor_like for each in (left, right)):
        return Unknown(tensor_like=True)
    if any(isinstance(each, Unknown) and each.of_tensors for each in (left, right)):
        return Unknown(of_tensors=True)
    if (isinstance(left, Host) and isinstance(right, Unknown)) or (
        isinstance(left, Unknown) and isinstance(right, Host)
    ):
        reason = either(changing_reason(left), changing_reason(right))
        return Host(changing=reason) if reason else UNKNOWN
    return UNKNOWN


def _host(op: ast.operator, left: Host, right: Host) -> Host:
    changing = either(left.changing, right.changing)
    if changing is not None and isinstance(op, ast.Mod):
        changing = changing.cycling()
    kind = left.kind if left.kind == right.kind else ("float" if isinstance(op, ast.Div) else None)
    shape = (left.shape or right.shape) and not changing
    fold = _ARITHMETIC.get(type(op))
    if fold is not None and changing is None and _numeric(left.const) and _numeric(right.const):
        try:
            return Host(const=fold(left.const, right.const), kind=kind, shape=shape)
        except (ArithmeticError, ValueError, TypeError):
            pass
    if isinstance(op, ast.Add) and isinstance(left.const, str) and isinstance(right.const, str):
        known = len(left.const) + len(right.const) <= _LONGEST_TEXT
        return Host(const=left.const + right.const if known else MISSING, kind="str")
    return Host(changing=changing, shape=shape, kind=kind)


def _numeric(value: object) -> bool:
    return isinstance(value, (int, float)) and abs(value) < 1 << 62


def _dtype(op: ast.operator, left: Value, right: Value) -> str | None:
    kinds = [value.dtype for value in (left, right) if isinstance(value, Tensor)]
    if isinstance(op, ast.Div):
        return "float"
    if isinstance(op, _BITWISE):
        return kinds[0] if all(kind == kinds[0] for kind in kinds) else None
    known = {kind for kind in kinds if kind is not None}
    if len(kinds) == 2 and len(known) == 1 and None not in kinds:
        return next(iter(known)) if known != {"bool"} else "int"
    if len(kinds) == 1 and known and known != {"bool"}:
        other = right if isinstance(left, Tensor) else left
        if isinstance(other, Host) and (isinstance(other.const, int) or other.kind == "int" or other.shape):
            return next(iter(known))
    return "float" if "float" in kinds else None


def comparison(op: ast.cmpop, left: Value, right: Value) -> Value:
    """``left < right`` and friends."""
    return join(*(_comparison(op, a, b) for a in options(left) for b in options(right)))


def _is_settled(value: DeviceValue) -> bool:
    return value.device is not Device.UNKNOWN and value.confidence > Confidence.POSSIBLE


def _is_no_number(value: Value) -> bool:
    """What a tensor is never equal to: containers, text, dtypes, devices."""
    return isinstance(value, (Sequence, Mapping, DType, DeviceValue)) or (
        isinstance(value, Host) and (isinstance(value.const, str) or value.kind in ("str", "enum"))
    )


def _comparison(op: ast.cmpop, left: Value, right: Value) -> Value:
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        if (isinstance(left, Host) and left.is_none) or (isinstance(right, Host) and right.is_none):
            return Host(const=isinstance(op, ast.NotEq), kind="bool")
        if isinstance(op, (ast.Eq, ast.NotEq)) and any(_is_no_number(each) for each in (left, right)):
            return Host(kind="bool")
        return combined((left, right), dtype="bool")
    if isinstance(left, Read) or isinstance(right, Read):
        return left if isinstance(left, Read) else right
    if isinstance(left, DeviceValue) and isinstance(right, DeviceValue):
        if isinstance(op, (ast.Eq, ast.NotEq)) and _is_settled(left) and _is_settled(right):
            return Host(const=(left.device is right.device) is isinstance(op, ast.Eq), kind="bool")
        return Host(kind="bool")
    if isinstance(left, Host) and isinstance(right, Host):
        changing = either(changing_reason(left), changing_reason(right))
        if changing is None and left.const is not MISSING and right.const is not MISSING:
            try:
                return Host(const=bool(_COMPARISONS[type(op)](left.const, right.const)), kind="bool")
            except (TypeError, KeyError):
                pass
        if changing is None and isinstance(op, (ast.Eq, ast.NotEq)) and left.kind == right.kind == "enum":
            return Host(kind="bool")
        return Host(changing=changing, shape=left.shape and right.shape, kind="bool")
    return (
        Host(changing=either(changing_reason(left), changing_reason(right)), kind="bool")
        if _known(left, right)
        else UNKNOWN
    )


def _known(left: Value, right: Value) -> bool:
    return not isinstance(left, Unknown) and not isinstance(right, Unknown)


def combined(values: Iterable[Value | None], *, dtype: str | None = None, rank: int | None = -1) -> Tensor:
    """The tensor that an elementwise operator makes of ``values``: on the device when one of them is.

    ``rank`` -1 takes the largest rank of the operands, if all are known.
    """
    operands = [option for value in values for option in options(value) if isinstance(option, Tensor)]
    on_device = [operand for operand in operands if operand.device is Device.DEVICE]
    ranks = [operand.rank for operand in operands]
    known_rank = max((r for r in ranks if r is not None), default=None) if None not in ranks else None
    result_rank = known_rank if rank == -1 else rank
    if on_device:
        sure = max((operand.confidence for operand in on_device), key=lambda c: c.rank)
        return Tensor(device=Device.DEVICE, confidence=sure, dtype=dtype, rank=result_rank, why=on_device[0].why)
    if operands and all(operand.device is Device.HOST for operand in operands):
        changing = changing_reason(join(*operands, *values))
        sure = min((operand.confidence for operand in operands), key=lambda c: c.rank)
        return Tensor(device=Device.HOST, confidence=sure, dtype=dtype, rank=result_rank, changing=changing)
    return Tensor(device=Device.UNKNOWN, confidence=Confidence.POSSIBLE, dtype=dtype, rank=result_rank)
