"""CG401 and CG402: a shape that only the GPU knows."""

from __future__ import annotations

import libcst as cst

from capturelint.passes.base import CapturePass


class Shapes(CapturePass):
    """Outputs whose size depends on data, and device tensors where a size is wanted."""

    def visit_Call(self, node: cst.Call) -> None:
        self._effects_at(node)

    def visit_Subscript(self, node: cst.Subscript) -> None:
        self._effects_at(node)

    def _effects_at(self, node: cst.BaseExpression) -> None:
        text = self.facts.text(node)
        for effect, support in self.effects(node, "dynamic-shape"):
            detail = f" ({effect.detail})" if effect.detail else ""
            message = f"the size of `{text}` depends on values on the device{detail}; capture fails on this line"
            self.report("CG401", node, message, "its size depends on data", support)
        for effect, support in self.effects(node, "size-from-tensor"):
            detail = effect.detail or (f"`{effect.on}`" if effect.on else "a size")
            message = f"`{text}` takes a size from a device tensor ({detail}); capture fails on this line"
            self.report("CG402", node, message, "a size read from the device", support)
