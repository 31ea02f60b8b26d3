"""CG101: a number that is read to be an operand stays on the device."""

from __future__ import annotations

import libcst as cst

from capturelint.fixes.branches import decided
from capturelint.fixes.code import code, receiver
from capturelint.fixes.place import Place
from capturelint.model import Fix

_KEEP = "leave the value on the device"
_EXACT = (cst.Add, cst.Subtract, cst.Multiply)


def fix(place: Place) -> Fix | None:
    node = place.node
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or node.args:
        return None
    if node.func.attr.value != "item":
        return None
    value = node.func.value
    return _operand(place, node, value) or _argument(place, node, value) or _condition(place, node, value)


def _operand(place: Place, node: cst.Call, value: cst.BaseExpression) -> Fix | None:
    """``x * t.item()`` to ``x * t.detach()``.

    Equal for whole numbers. Of others, Python's have more digits than an operator gives to a tensor without dimensions.
    """
    parent = place.parent(node)
    if not isinstance(parent, cst.BinaryOperation) or not isinstance(parent.operator, (*_EXACT, cst.Divide)):
        return None
    other = place.tensor(parent.right if parent.left is node else parent.left)
    tensor = place.tensor(value)
    if other is None or tensor is None:
        return None
    whole = tensor.dtype == other.dtype == "int" and tensor.rank == 0 and bool(other.rank)
    text = receiver(value) if tensor.dtype == "int" else f"{receiver(value)}.detach()"
    # what is computed after the number was read may write to the tensor
    still = parent.right is node or not place.changes(parent.right)
    return place.fix(_KEEP, node, text, safe=whole and isinstance(parent.operator, _EXACT) and still)


def _argument(place: Place, node: cst.Call, value: cst.BaseExpression) -> Fix | None:
    """``x.fill_(t.item())`` to ``x.fill_(t.detach())``."""
    given = place.parent(node)
    call = place.parent(given) if isinstance(given, cst.Arg) else None
    if not isinstance(call, cst.Call) or place.callee(call) != "torch.Tensor.fill_" or len(call.args) != 1:
        return None
    assert isinstance(call.func, cst.Attribute)
    target, tensor = place.tensor(call.func.value), place.tensor(value)
    if target is None or tensor is None:
        return None
    safe = tensor.rank == 0 and tensor.dtype is not None and tensor.dtype == target.dtype
    return place.fix(_KEEP, node, f"{receiver(value)}.detach()", safe=safe)


def _condition(place: Place, node: cst.Call, value: cst.BaseExpression) -> Fix | None:
    """``if m.any().item():`` and ``if x.max().item() > 3.0:``."""
    parent = place.parent(node)
    if isinstance(parent, (cst.If, cst.IfExp, cst.Assert)) or (
        isinstance(parent, cst.UnaryOperation) and isinstance(parent.operator, cst.Not)
    ):
        tensor = place.tensor(value)
        boolean = tensor is not None and tensor.dtype == "bool"
        text = code(value) if boolean else f"{receiver(value)} != 0"
        return decided(place, node, text, exact=boolean and tensor is not None and tensor.rank == 0)
    if isinstance(parent, cst.Comparison) and len(parent.comparisons) == 1:
        # compared as the tensor's own dtype, not as Python compares
        return decided(place, parent, code(parent).replace(code(node), receiver(value), 1), exact=False)
    return None
