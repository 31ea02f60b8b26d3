"""Which dtype an index has: of int8 and int16 torch takes none, and one of uint8 is a mask."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from capturelint.fixes.place import Place

_LONG = frozenset(("argmax", "argmin", "argsort", "long"))
_DTYPES = {"int64": "int64", "long": "int64", "int32": "int32", "int": "int32"}
#: methods whose result has the dtype of what they are called on
_KEEPING = frozenset(("abs", "clamp", "clone", "detach", "flatten", "reshape", "squeeze", "unsqueeze", "view"))
_MAX_STEPS = 8


def index_dtype(place: Place, node: cst.BaseExpression, steps: int = 0) -> str | None:
    """``int64`` or ``int32`` where an operator gives it so, or the region's inputs say it; else None."""
    if steps > _MAX_STEPS:
        return None
    if isinstance(node, cst.Name):
        values = list(_bound_to(place, node))
        if values:
            found = {index_dtype(place, each, steps + 1) if each is not None else None for each in values}
            return found.pop() if len(found) == 1 else None
        given = re.search(rf"""["']{node.value}["']: *["'](int64|int32)\[""", place.unit_text)
        return given.group(1) if given is not None else None
    if isinstance(node, cst.Subscript):
        return index_dtype(place, node.value, steps + 1)
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    name = node.func.attr.value
    if name in _LONG:
        return "int64"
    if (callee := place.callee(node)) is None or not callee.startswith("torch."):
        return None
    if name in _KEEPING:
        source = node.args[0].value if not callee.startswith("torch.Tensor.") and node.args else node.func.value
        return index_dtype(place, source, steps + 1)
    named = [each.value for each in node.args if each.keyword is not None and each.keyword.value == "dtype"]
    named += [each.value for each in node.args if name == "to" and each.keyword is None]
    return next((_DTYPES.get(each.attr.value) for each in named if isinstance(each, cst.Attribute)), None)


def _bound_to(place: Place, name: cst.Name) -> Iterator[cst.BaseExpression | None]:
    """What the function around binds a name to; None for what is no plain assignment."""
    holder = place.around(name, cst.FunctionDef, cst.Module)
    stack: list[cst.CSTNode] = [holder.body] if isinstance(holder, cst.FunctionDef) else []
    while stack:
        node = stack.pop()
        if isinstance(node, cst.Assign) and any(each.target.deep_equals(name) for each in node.targets):
            yield node.value
        elif isinstance(node, cst.Name) and node.value == name.value and _is_other_target(place, node):
            yield None
        stack.extend(node.children)


def _is_other_target(place: Place, node: cst.Name) -> bool:
    parent = place.parent(node)
    while isinstance(parent, (cst.Element, cst.StarredElement, cst.Tuple, cst.List)):
        node_in, parent = parent, place.parent(parent)
        if isinstance(parent, (cst.AssignTarget, cst.For)) and getattr(parent, "target", None) is node_in:
            return True
    kinds = (cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For)
    return isinstance(parent, cst.AsName) or (isinstance(parent, kinds) and parent.target is node)
