"""CG201: host data enters the region through a copy that cannot be captured."""

from __future__ import annotations

import libcst as cst

from capturelint.passes import advice
from capturelint.passes.base import CapturePass
from capturelint.values.facts import Effect


class HostData(CapturePass):
    """Constructors, moves, indexes and writes that copy from pageable host memory."""

    def visit_Call(self, node: cst.Call) -> None:
        self._effects_at(node)

    def visit_Subscript(self, node: cst.Subscript) -> None:
        self._effects_at(node)

    def _effects_at(self, node: cst.BaseExpression) -> None:
        for effect, support in self.effects(node, "host-to-device"):
            text = self.facts.text(node)
            detail = effect.detail or "a copy from the host"
            message = f"`{text}` copies host data to the device: {detail}; capture fails on this line"
            self.report("CG201", node, message, "copies from the host", support, help=_instead(node, effect))


def _instead(node: cst.BaseExpression, effect: Effect) -> str | None:
    if isinstance(node, cst.Call):
        return advice.constructor(node)
    if not isinstance(node, cst.Subscript):
        return None
    if effect.on == "index":
        return advice.host_index(node)
    if "Python number" not in effect.detail:
        return None
    return advice.element_write(node) if "single element" in effect.detail else advice.index_write(node)
