"""CG105: the same operator without its check."""

from __future__ import annotations

import libcst as cst

from capturelint.fixes.code import bare, code
from capturelint.fixes.keywords import keyword_set
from capturelint.fixes.place import Place
from capturelint.model import Fix

_UNCHECKED = "leave the error code on the device"
_NO_CHECK = "leave the check out"
#: functions of ``torch.linalg`` whose other form reads no error code, and where the result is in what that returns
_EX = {"inv": "inv_ex", "solve": "solve_ex", "cholesky": "cholesky_ex"}
_RESULT = {"inv": "inverse", "solve": "result", "cholesky": "L"}


def fix(place: Place) -> Fix | None:
    """Never safe: what raised where a matrix is singular or an argument is wrong goes on with what comes out."""
    if not isinstance(place.node, cst.Call):
        return None
    callee, node = place.callee(place.node) or "", place.detached(place.node)
    name = callee.rpartition(".")[2]
    if callee == f"torch.linalg.{name}" and name in _EX and isinstance(node.func, cst.Attribute):
        function = node.func.with_changes(attr=cst.Name(_EX[name]))
        text = f"{bare(node.with_changes(func=function))}.{_RESULT[name]}"
        return place.fix(_UNCHECKED, place.node, text, safe=False)
    if callee.startswith("torch.distributions."):
        changed = keyword_set(node, "validate_args", cst.Name("False"))
        named = (place.hazard.help or "").startswith("pass `validate_args=False`")
        return place.fix(_NO_CHECK, place.node, bare(changed), safe=False) if changed is not None and named else None
    return _finite(place, node)


def _finite(place: Place, node: cst.Call) -> Fix | None:
    """``clip_grad_norm_(..., error_if_nonfinite=True)``."""
    kept = [each for each in node.args if each.keyword is None or each.keyword.value != "error_if_nonfinite"]
    if len(kept) == len(node.args) or not kept:
        return None
    last = kept[-1].with_changes(comma=node.args[-1].comma, whitespace_after_arg=node.args[-1].whitespace_after_arg)
    return place.fix(
        _NO_CHECK, place.node, code(node.with_changes(args=[*kept[:-1], last], lpar=[], rpar=[])), safe=False
    )
