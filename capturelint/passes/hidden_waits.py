"""CG105: operators and library functions that make the CPU wait inside."""

from __future__ import annotations

import libcst as cst

from capturelint.passes.base import CapturePass, receiver_of
from capturelint.values.facts import Effect


class HiddenWaits(CapturePass):
    """Calls that read the device in the course of what they do. What they are is data, in ``rules/ops``."""

    def visit_Call(self, node: cst.Call) -> None:
        self._effects_at(node)

    def visit_BinaryOperation(self, node: cst.BinaryOperation) -> None:
        self._effects_at(node)

    def _effects_at(self, node: cst.BaseExpression) -> None:
        for effect, support in self.effects(node, "hidden-sync", "host-number"):
            if effect.kind == "hidden-sync":
                message, label = self._waits(node, effect), "waits for the GPU inside"
            else:
                message, label = self._reads_number(node, effect), f"`{effect.on}` is a device tensor"
            self.report("CG105", node, message, label, support, help=effect.help or None)

    def _waits(self, node: cst.BaseExpression, effect: Effect) -> str:
        detail = f": {effect.detail}" if effect.detail else ""
        return f"{self._what(node)} makes the CPU wait for the GPU inside{detail}; capture fails on this line"

    def _reads_number(self, node: cst.BaseExpression, effect: Effect) -> str:
        detail = f" ({effect.detail})" if effect.detail else ""
        return (
            f"{self._what(node)} wants a host number as `{effect.on}` and reads the device tensor given there"
            f"{detail}; capture fails on this line"
        )

    def _what(self, node: cst.BaseExpression) -> str:
        """The operator as the code names it, without its arguments where they are long."""
        if not isinstance(node, cst.Call):
            return f"`{self.facts.text(node)}`"
        receiver = receiver_of(node)
        name = self.facts.text(node.func, 60)
        if receiver is not None and isinstance(node.func, cst.Attribute) and ("(" in name or "[" in name):
            return f"`.{node.func.attr.value}()`"
        return f"`{name}()`"
