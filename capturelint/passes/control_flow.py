"""CG301 and CG302: Python decides by what a device tensor holds."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from capturelint.passes import advice
from capturelint.passes.base import CapturePass
from capturelint.passes.unit import Facts

#: what to write instead, given the condition and whether the source says ``not`` to it
Advice = Callable[[str, bool], "str | None"]


class ControlFlow(CapturePass):
    """Branches and loop bounds on device tensors. A spelled-out read (``if t.item():``) is CG101's."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._tested: set[cst.BooleanOperation] = set()

    def visit_If(self, node: cst.If) -> None:
        self._test(node.test, "`if`", lambda condition, negated: advice.branch(node, condition, negated))

    def visit_While(self, node: cst.While) -> None:
        self._test(node.test, "`while`", lambda condition, negated: advice.loop(node, _unless(condition, negated)))

    def visit_Assert(self, node: cst.Assert) -> None:
        self._test(node.test, "`assert`", lambda condition, negated: advice.check(_unless(condition, negated)))

    def visit_IfExp(self, node: cst.IfExp) -> None:
        where = "a conditional expression"
        self._test(node.test, where, lambda condition, negated: advice.choice(node, condition, negated))

    def visit_CompIf(self, node: cst.CompIf) -> None:
        self._test(node.test, "a comprehension's `if`", lambda condition, negated: _KEEP_ALL)

    def visit_Match(self, node: cst.Match) -> None:
        self._test(node.subject, "`match`", _nothing)

    def visit_MatchCase(self, node: cst.MatchCase) -> None:
        if node.guard is not None:
            self._test(node.guard, "a `case` guard", _nothing)

    def visit_BooleanOperation(self, node: cst.BooleanOperation) -> None:
        if isinstance(node.operator, cst.Or) and isinstance(node.right, (cst.Dict, cst.List, cst.Tuple)):
            return  # `x or {}`: who writes that has a container or None in mind
        where = f"`{'and' if isinstance(node.operator, cst.And) else 'or'}`"
        self._test(node.left, where, lambda condition, negated: advice.boolean(node))

    def visit_UnaryOperation(self, node: cst.UnaryOperation) -> None:
        if isinstance(node.operator, cst.Not):
            self._test(node.expression, "`not`", lambda condition, negated: f"use `torch.logical_not({condition})`")

    def visit_Comparison(self, node: cst.Comparison) -> None:
        """``0 < t < 1`` takes the truth of ``0 < t``."""
        if len(node.comparisons) < 2:
            return
        for operand in (node.left, *(part.comparator for part in node.comparisons[:-1])):
            support = self.facts.device_tensor(operand)
            if support is not None:
                text = self.facts.text(node)
                message = (
                    f"the chained comparison `{text}` takes the truth of a device tensor; capture fails on this line"
                )
                help = advice.chained(node)
                self.report("CG301", node, message, "reads a device tensor", support, help=help)

    def visit_Call(self, node: cst.Call) -> None:
        for _effect, support in self.effects(node, "loop-bound"):
            text = self.facts.text(node)
            message = f"`{text}` reads its bound from the device; capture fails on this line"
            bound = next((each.value for each in node.args if self.facts.device_tensor(each.value)), None)
            help = advice.bounded(self.facts.text(bound)) if bound is not None else None
            self.report("CG302", node, message, "the bound is a device tensor", support, help=help)

    def _test(self, node: cst.BaseExpression, where: str, advise: Advice, negated: bool = False) -> None:
        if isinstance(node, cst.BooleanOperation):
            if node in self._tested:
                return  # each operand of `a and b and ...` holds the ones before, and the first report is kept
            self._tested.add(node)
            self._test(node.left, where, lambda condition, negated: None)
            self._test(node.right, where, lambda condition, negated: None)
            return
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            self._test(node.expression, where, advise, not negated)
            return
        if isinstance(node, cst.NamedExpr):
            node = node.value
        support = self.facts.device_tensor(node)
        if support is None:
            return
        text = self.facts.text(node)
        message = f"{where} on the device tensor `{text}` makes the CPU wait for its value; capture fails on this line"
        help = advise(advice.condition_text(node, self.facts.is_boolean(node)), negated)
        self.report("CG301", node, message, "a device tensor decides", support, help=help)


_KEEP_ALL = "keep every element and blank out the others with a mask (`torch.where`), so that the number is fixed"


def _nothing(condition: str, negated: bool) -> str | None:
    return None


def _unless(condition: str, negated: bool) -> str:
    return f"~({condition})" if negated else condition
