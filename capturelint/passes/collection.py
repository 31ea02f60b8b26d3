"""CG809: calls in a region that destroy graphs, or let the garbage collector do so."""

from __future__ import annotations

import libcst as cst

from capturelint.passes.base import CapturePass


class Collection(CapturePass):
    """Calls that collect garbage or reset a graph while another one captures."""

    def visit_Call(self, node: cst.Call) -> None:
        for effect, support in self.effects(node, "destroys"):
            text = self.facts.text(node.func, 40)
            if effect.detail == "collects":
                message = f"`{text}()` while capturing destroys dead objects; if one of them is a graph, capture fails"
                label = "collects garbage while capturing"
            else:
                message = f"`{text}()` destroys a graph while another one captures"
                label = "destroys a graph while capturing"
            self.report("CG809", node, message, label, support)
