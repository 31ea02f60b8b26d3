"""CG809: calls in a region that destroy graphs, or let the garbage collector do so."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from capturelint.model import Confidence
from capturelint.passes.base import CapturePass
from capturelint.passes.unit import Facts


class Collection(CapturePass):
    """Calls that collect garbage or reset a graph while another one captures."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        #: for each `if` around, whether it asks for the collector
        self._asks: list[bool] = []

    def visit_If(self, node: cst.If) -> None:
        self._asks.append("isenabled" in self.facts.text(node.test))

    def leave_If(self, original_node: cst.If) -> None:
        self._asks.pop()

    def visit_Call(self, node: cst.Call) -> None:
        for effect, support in self.effects(node, "destroys"):
            text = self.facts.text(node.func, 40)
            if effect.detail == "collects":
                message = f"`{text}()` while capturing destroys dead objects; if one of them is a graph, capture fails"
                label = "collects garbage while capturing"
                if any(self._asks):  # who asks whether the collector is on has it off while many graphs are captured
                    support = replace(support, confidence=Confidence.POSSIBLE)
            else:
                message = f"`{text}()` destroys a graph while another one captures"
                label = "destroys a graph while capturing"
            self.report("CG809", node, message, label, support)
