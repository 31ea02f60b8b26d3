"""CG301 and CG302: Python decides by what a device tensor holds."""

from __future__ import annotations

import libcst as cst

from capturelint.passes.base import CapturePass


class ControlFlow(CapturePass):
    """Branches and loop bounds on device tensors. A spelled-out read (``if t.item():``) is CG101's."""

    def visit_If(self, node: cst.If) -> None:
        self._test(node.test, "`if`")

    def visit_While(self, node: cst.While) -> None:
        self._test(node.test, "`while`")

    def visit_Assert(self, node: cst.Assert) -> None:
        self._test(node.test, "`assert`")

    def visit_IfExp(self, node: cst.IfExp) -> None:
        self._test(node.test, "a conditional expression")

    def visit_CompIf(self, node: cst.CompIf) -> None:
        self._test(node.test, "a comprehension's `if`")

    def visit_Match(self, node: cst.Match) -> None:
        self._test(node.subject, "`match`")

    def visit_MatchCase(self, node: cst.MatchCase) -> None:
        if node.guard is not None:
            self._test(node.guard, "a `case` guard")

    def visit_BooleanOperation(self, node: cst.BooleanOperation) -> None:
        if isinstance(node.operator, cst.Or) and isinstance(node.right, (cst.Dict, cst.List, cst.Tuple)):
            return  # `x or {}`: who writes that has a container or None in mind
        self._test(node.left, f"`{'and' if isinstance(node.operator, cst.And) else 'or'}`")

    def visit_UnaryOperation(self, node: cst.UnaryOperation) -> None:
        if isinstance(node.operator, cst.Not):
            self._test(node.expression, "`not`")

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
                self.report("CG301", node, message, "reads a device tensor", support)

    def visit_Call(self, node: cst.Call) -> None:
        for _effect, support in self.effects(node, "loop-bound"):
            text = self.facts.text(node)
            message = f"`{text}` reads its bound from the device; capture fails on this line"
            self.report("CG302", node, message, "the bound is a device tensor", support)

    def _test(self, node: cst.BaseExpression, where: str) -> None:
        if isinstance(node, cst.BooleanOperation):
            self._test(node.left, where)
            self._test(node.right, where)
            return
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            self._test(node.expression, where)
            return
        if isinstance(node, cst.NamedExpr):
            node = node.value
        support = self.facts.device_tensor(node)
        if support is None:
            return
        text = self.facts.text(node)
        message = f"{where} on the device tensor `{text}` makes the CPU wait for its value; capture fails on this line"
        self.report("CG301", node, message, "a device tensor decides", support)
