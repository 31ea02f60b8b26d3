"""CG401 and CG402: forms whose shape is fixed."""

from __future__ import annotations

import libcst as cst

from capturelint.fixes.code import argument, bare, code, receiver
from capturelint.fixes.index_dtypes import index_dtype
from capturelint.fixes.keywords import keyword_set
from capturelint.fixes.place import Place, number, sole_index
from capturelint.model import Fix

_MASK = "write at full shape"
_ROW = "pick the row with an index of one dimension"
_CLASSES = "say how many classes there are"
_SUM = "add up at full shape"
_ANY = "ask whether any element is set"
_STEPS = (cst.AddAssign, cst.SubtractAssign, cst.MultiplyAssign)


def fix(place: Place) -> Fix | None:
    node = place.node
    if isinstance(node, cst.Call):
        return _counted(place, node) or _classes(place, node)
    if isinstance(node, cst.Subscript):
        return _mask_written(place, node) or _row(place, node) or _mask_summed(place, node)
    return None


# -- masks -----------------------------------------------------------------------------------------------------------


def _mask_written(place: Place, node: cst.Subscript) -> Fix | None:
    """``x[mask] = t``, ``x[mask] = y[mask]`` and ``x[mask] += 1``."""
    mask = _mask(place, node)
    if mask is None or place.torch is None:
        return None
    target = receiver(node.value)
    if place.changes(node.value) or place.changes(mask):
        return None  # they would be computed more than once
    alike = _same_rank(place, node.value, mask)
    step = place.parent(node)
    if isinstance(step, cst.AugAssign) and step.target is node and isinstance(step.operator, _STEPS):
        value, into = number(step.value), place.tensor(node.value)
        if value is None:
            return None
        kept = into is not None and (into.dtype == "float" or (into.dtype == "int" and type(value) is int))
        sign = code(step.operator).strip()[0]
        chosen = f"{place.torch}.where({argument(mask)}, {target} {sign} {code(step.value)}, {target})"
        return place.fix(_MASK, step, f"{target}.copy_({chosen})", safe=alike and kept)
    assignment = place.assigned()
    if assignment is None:
        return None
    given = assignment.value
    tensor = place.tensor(given)
    if tensor is not None and tensor.rank == 0:
        chosen = f"{place.torch}.where({argument(mask)}, {argument(given)}, {target})"
        into = place.tensor(node.value)
        kept = into is not None and into.dtype is not None and into.dtype == tensor.dtype
        return place.fix(_MASK, assignment, f"{target}.copy_({chosen})", safe=alike and kept)
    if isinstance(given, cst.Subscript) and (same := sole_index(given)) is not None and code(same) == code(mask):
        chosen = f"{place.torch}.where({argument(mask)}, {code(given.value)}, {target})"
        whole = alike and _same_rank(place, given.value, mask)
        return place.fix(_MASK, assignment, f"{target}.copy_({chosen})", safe=whole)
    return None


def _mask(place: Place, node: cst.Subscript) -> cst.BaseExpression | None:
    """The boolean tensor that is the whole index."""
    index = sole_index(node)
    tensor = place.tensor(index) if index is not None else None
    return index if tensor is not None and tensor.dtype == "bool" else None


def _same_rank(place: Place, node: cst.BaseExpression, mask: cst.BaseExpression) -> bool:
    """A mask of fewer dimensions picks rows, from the left; operators broadcast from the right."""
    left, right = place.tensor(node), place.tensor(mask)
    return left is not None and right is not None and left.rank is not None and left.rank == right.rank


def _mask_summed(place: Place, node: cst.Subscript) -> Fix | None:
    """``x[mask].sum()`` to ``torch.where(mask, x, 0).sum()``, which adds in another order."""
    mask, method = _mask(place, node), place.parent(node)
    if mask is None or not isinstance(method, cst.Attribute) or method.attr.value != "sum":
        return None
    call = place.parent(method)
    if not isinstance(call, cst.Call) or call.args or not _same_rank(place, node.value, mask):
        return None
    return place.fix(_SUM, node, f"{place.torch}.where({argument(mask)}, {code(node.value)}, 0)", safe=False)


# -- indexes without dimensions --------------------------------------------------------------------------------------


def _row(place: Place, node: cst.Subscript) -> Fix | None:
    """``x[t]`` to ``x[t.reshape(1)].squeeze(0)``, and ``x[t] = y`` to ``x[t.reshape(1)] = y.to(x.dtype)``."""
    index = sole_index(node)
    tensor = place.tensor(index) if index is not None else None
    if index is None or tensor is None or tensor.rank != 0 or tensor.dtype not in ("int", None):
        return None
    known = tensor.dtype is not None and index_dtype(place, index) is not None
    picked = f"{receiver(node.value)}[{receiver(index)}.reshape(1)]"
    assignment = place.assigned()
    if assignment is not None:
        if place.tensor(assignment.value) is None or place.changes(node.value):
            return None
        # a row takes any dtype, what is written by a tensor's elements has to have the right one
        value = f"{receiver(assignment.value)}.to({receiver(node.value)}.dtype)"
        return place.fix(_ROW, assignment, f"{picked} = {value}", safe=known)
    if not place.is_read(node):
        return None
    # what is picked by a tensor without dimensions is a view; under a name of its own it may be written to
    operand = isinstance(place.parent(node), (cst.BinaryOperation, cst.Comparison))
    return place.fix(_ROW, node, f"{picked}.squeeze(0)", safe=known and operand)


# -- calls -----------------------------------------------------------------------------------------------------------


def _counted(place: Place, node: cst.Call) -> Fix | None:
    """``m.nonzero().numel() > 0`` to ``m.any()``."""
    if place.callee(node) not in ("torch.nonzero", "torch.Tensor.nonzero", "torch.argwhere", "torch.Tensor.argwhere"):
        return None
    if any(each.keyword is not None for each in node.args) or not isinstance(node.func, cst.Attribute):
        return None
    method = place.parent(node)
    call = place.parent(method) if isinstance(method, cst.Attribute) and method.attr.value == "numel" else None
    compared = place.parent(call) if isinstance(call, cst.Call) and call.func is method else None
    if not isinstance(compared, cst.Comparison) or compared.left is not call or len(compared.comparisons) != 1:
        return None
    target = compared.comparisons[0]
    if not isinstance(target.operator, (cst.GreaterThan, cst.NotEqual)) or number(target.comparator) != 0:
        return None
    operand = node.args[0].value if node.args else node.func.value
    return place.fix(_ANY, compared, f"{receiver(operand)}.any()", safe=False)


def _classes(place: Place, node: cst.Call) -> Fix | None:
    """``one_hot(logits.argmax(-1))``: there are as many classes as the last dimension holds."""
    if place.callee(node) != "torch.nn.functional.one_hot" or len(node.args) != 1 or node.args[0].keyword is not None:
        return None
    best = node.args[0].value
    if not isinstance(best, cst.Call) or not isinstance(best.func, cst.Attribute) or best.func.attr.value != "argmax":
        return None
    of_torch = place.callee(best) == "torch.argmax"
    given = list(best.args)
    source = given.pop(0).value if of_torch and given else best.func.value
    if len(given) != 1 or (given[0].keyword is not None and given[0].keyword.value not in ("dim", "axis")):
        return None
    size = cst.parse_expression(f"{receiver(source)}.shape[{bare(given[0].value)}]")
    changed = keyword_set(place.detached(node), "num_classes", size)
    return place.fix(_CLASSES, node, bare(changed), safe=False) if changed is not None else None
