"""CG102: a copy into pinned memory that does not wait."""

from __future__ import annotations

import libcst as cst

from capturelint.fixes.code import bare
from capturelint.fixes.keywords import keyword_set
from capturelint.fixes.place import Place
from capturelint.model import Fix
from capturelint.values.domain import Tensor

_DO_NOT_WAIT = "copy without waiting"


def fix(place: Place) -> Fix | None:
    """``pinned.copy_(y)`` gets ``non_blocking=True``; never safe, since who reads it has to wait for the replay."""
    node = place.node
    if not isinstance(node, cst.Call) or place.callee(node) != "torch.Tensor.copy_":
        return None
    assert isinstance(node.func, cst.Attribute)
    found = place.values(node.func.value)
    if isinstance(node.func.value, cst.Name) and place.is_bound_here(node.func.value):
        return None  # every replay would write into memory that nobody holds
    if not found or not all(isinstance(each, Tensor) and each.pinned for each in found):
        return None
    changed = keyword_set(place.detached(node), "non_blocking", cst.Name("True"))
    return place.fix(_DO_NOT_WAIT, node, bare(changed), safe=False) if changed is not None else None
