"""CG101 to CG104, and CG904: the CPU waits for the GPU."""

from __future__ import annotations

import libcst as cst

from capturelint.passes.base import CapturePass, receiver_of
from capturelint.passes.feeds import Feeds
from capturelint.passes.unit import Facts
from capturelint.values.effects import deep_confidence
from capturelint.values.facts import Effect

_RULES = {"host-read": "CG101", "host-copy": "CG102", "format": "CG103", "synchronize": "CG104", "grad-scaler": "CG904"}


class HostWaits(CapturePass):
    """Calls and operators that read the device, copy from it, print it or wait for it."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.feeds = Feeds(facts)

    def visit_Call(self, node: cst.Call) -> None:
        self._effects_at(node)

    def visit_Comparison(self, node: cst.Comparison) -> None:
        self._effects_at(node)

    def visit_BinaryOperation(self, node: cst.BinaryOperation) -> None:
        self._effects_at(node)

    def visit_Subscript(self, node: cst.Subscript) -> None:
        self._effects_at(node)

    def visit_FormattedStringExpression(self, node: cst.FormattedStringExpression) -> None:
        found = [(context, deep_confidence(value)) for context, value in self.facts.values(node.expression)]
        support = self.facts.support(found, self.facts.node_span(node.expression)[0])
        if support is not None:
            text = self.facts.text(node.expression)
            self.report(
                "CG103",
                node.expression,
                f"formatting `{text}` reads the tensor on the CPU; capture fails here",
                "a device tensor in a string",
                support,
            )

    def _effects_at(self, node: cst.BaseExpression) -> None:
        for effect, support in self.effects(node, *_RULES):
            rule = _RULES[effect.kind]
            feed = self.feeds.of(node) if effect.kind == "host-read" and isinstance(node, cst.Call) else None
            message = self._message(node, effect, feed.purpose if feed is not None else "")
            help = feed.help if feed is not None else None
            self.report(rule, node, message, _label(effect), support, help=help)

    def _message(self, node: cst.BaseExpression, effect: Effect, purpose: str) -> str:
        what = self._what(node)
        detail = f" ({effect.detail})" if effect.detail else ""
        if effect.kind == "host-read":
            return f"{what} makes the CPU wait for the GPU{purpose}{detail}; capture fails on this line"
        if effect.kind == "host-copy":
            return f"{what} copies from the device to the host{detail}; capture fails on this line"
        if effect.kind == "format":
            return f"{what} reads a device tensor to print it{detail}; capture fails on this line"
        return f"{what} waits for the GPU{detail}; capture fails on this line"

    def _what(self, node: cst.BaseExpression) -> str:
        if isinstance(node, cst.Call):
            receiver = receiver_of(node)
            if isinstance(node.func, cst.Attribute) and isinstance(receiver, cst.BaseExpression):
                dotted = self.facts.text(node.func, 40)
                return f"`{dotted}()`" if "(" not in dotted and "[" not in dotted else f"`.{node.func.attr.value}()`"
            return f"`{self.facts.text(node.func, 40)}()`"
        if isinstance(node, cst.Comparison):
            return f"`{self.facts.text(node)}`"
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Modulo):
            return "`%` formatting"
        return f"`{self.facts.text(node)}`"


def _label(effect: Effect) -> str:
    return {
        "host-read": "reads a device tensor",
        "host-copy": "copies a device tensor to the host",
        "format": "formats a device tensor",
        "synchronize": "waits for the GPU",
        "grad-scaler": "reads the overflow flag on the host",
    }[effect.kind]
