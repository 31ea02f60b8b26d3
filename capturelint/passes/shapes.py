"""CG401 and CG402: a shape that only the GPU knows."""

from __future__ import annotations

import libcst as cst

from capturelint.passes import advice
from capturelint.passes.base import CapturePass
from capturelint.values.facts import Effect

#: operators of dynamic size, and what has a fixed one
_FIXED = {
    "nonzero": "give the result a fixed size: `torch.nonzero_static({x}, size=...)`, or use `{x}` as a mask",
    "argwhere": "give the result a fixed size: `torch.nonzero_static({x}, size=...)`, or use `{x}` as a mask",
    "where": "say what stands elsewhere: `torch.where({x}, a, b)`; or `torch.nonzero_static({x}, size=...)`",
    "masked_select": "keep the shape: `torch.where(mask, {x}, 0)`",
    "one_hot": "say how many classes there are: `one_hot({x}, num_classes=...)`",
    "repeat_interleave": "say how long the result is: `output_size=...`",
    "bincount": "count into a fixed number of bins: `torch.zeros(n, ...).scatter_add_(0, {x}, ones)`",
    "unique": "sort, and mark where neighbours differ: that has a fixed size",
    "unique_consecutive": "mark where neighbours differ: that has a fixed size",
}


class Shapes(CapturePass):
    """Outputs whose size depends on data, and device tensors where a size is wanted."""

    def visit_Call(self, node: cst.Call) -> None:
        self._effects_at(node)

    def visit_Subscript(self, node: cst.Subscript) -> None:
        self._effects_at(node)

    def _effects_at(self, node: cst.Call | cst.Subscript) -> None:
        for effect, support in self.effects(node, "dynamic-shape"):
            text = self.facts.text(node)
            detail = f" ({effect.detail})" if effect.detail else ""
            message = f"the size of `{text}` depends on values on the device{detail}; capture fails on this line"
            help = self._fixed(node, effect)
            self.report("CG401", node, message, "its size depends on data", support, help=help)
        for effect, support in self.effects(node, "size-from-tensor"):
            text = self.facts.text(node)
            detail = effect.detail or (f"`{effect.on}`" if effect.on else "a size")
            message = f"`{text}` takes a size from a device tensor ({detail}); capture fails on this line"
            help = self._sized(node, effect)
            self.report("CG402", node, message, "a size read from the device", support, help=help)

    def _fixed(self, node: cst.Call | cst.Subscript, effect: Effect) -> str | None:
        if isinstance(node, cst.Subscript):
            takes_values = "takes" in effect.detail or "beside" in effect.detail
            return advice.mask_write(node) if takes_values else advice.mask_read(node)
        name = node.func.attr.value if isinstance(node.func, cst.Attribute) else self.facts.text(node.func)
        pattern = _FIXED.get(name)
        if pattern is None:
            return None
        method = isinstance(node.func, cst.Attribute) and self.facts.device_tensor(node.func.value) is not None
        operand: cst.BaseExpression | None = node.args[0].value if node.args else None
        if method and isinstance(node.func, cst.Attribute):
            operand = node.func.value
        return pattern.format(x=self.facts.text(operand, 32) if operand is not None else "x")

    def _sized(self, node: cst.Call | cst.Subscript, effect: Effect) -> str | None:
        if isinstance(node, cst.Subscript):
            if "0-d" in effect.detail:
                return advice.picked(node)
            bounds = [
                bound
                for element in node.slice
                if isinstance(element.slice, cst.Slice)
                for bound in (element.slice.lower, element.slice.upper)
                if bound is not None and self.facts.device_tensor(bound) is not None
            ]
        else:
            bounds = [each.value for each in node.args if self.facts.device_tensor(each.value) is not None]
        return advice.masked(self.facts.text(bounds[-1], 32)) if bounds else None
