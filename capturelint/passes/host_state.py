"""CG303 and CG403: a branch, a loop, a slice or an index by host state that changes between replays."""

from __future__ import annotations

import libcst as cst

from capturelint.model import Confidence
from capturelint.passes.frozen import FrozenValues, is_host_scalar, is_number
from capturelint.passes.unit import Support
from capturelint.values.domain import Host, Value, device_confidence, options


class HostState(FrozenValues):
    """What host state decides is decided once, at capture."""

    def visit_If(self, node: cst.If) -> None:
        self._branch(node.test, node, "`if`")

    def visit_While(self, node: cst.While) -> None:
        self._branch(node.test, node, "`while`")

    def visit_IfExp(self, node: cst.IfExp) -> None:
        self._branch(node.test, node, "a conditional expression")

    def visit_CompIf(self, node: cst.CompIf) -> None:
        self._branch(node.test, None, "a comprehension's `if`")

    def visit_Match(self, node: cst.Match) -> None:
        self._branch(node.subject, node, "`match`")

    def visit_Assert(self, node: cst.Assert) -> None:
        self._branch(node.test, None, "`assert`", Confidence.POSSIBLE)

    def visit_For(self, node: cst.For) -> None:
        self._branch(node.iter, node.body, "the number of rounds of `for`")

    def visit_CompFor(self, node: cst.CompFor) -> None:
        self._branch(node.iter, None, "the number of rounds of a comprehension", Confidence.POSSIBLE)

    def _branch(
        self, test: cst.BaseExpression, block: cst.CSTNode | None, where: str, cap: Confidence = Confidence.CERTAIN
    ) -> None:
        if not self.facts.undecided(test):
            return
        found = self.frozen(test)
        if found is None or (block is not None and not self._matters(block)):
            return
        cause, support = found
        text = self.facts.text(test)
        message = f"{where} on `{text}` is decided once, at capture, but {cause.reason}"
        support = Support(min(support.confidence, cap), support.contexts, support.why)
        self.report("CG303", test, message, "decided at capture", support)

    def _matters(self, block: cst.CSTNode) -> bool:
        """Whether tensors are worked with below a branch, a number is chosen, or the code below it is left."""
        finder = _Leaves()
        block.visit(finder)
        if finder.leaves or finder.binds:
            return True
        return self.facts.works_within(block)

    # -- slices and indexes ------------------------------------------------------------------------------------------

    def visit_Subscript(self, node: cst.Subscript) -> None:
        on_device = {
            context
            for context, value in self.facts.values(node.value)
            if device_confidence(value) not in (None, Confidence.POSSIBLE)
        }
        if not on_device:
            return
        for element in node.slice:
            inner = element.slice
            for part in _parts(inner):
                found = self.surest(
                    part,
                    (
                        (context, value)
                        for context, value in self.facts.values(part)
                        if context in on_device and not context.compiled and _picks(value)
                    ),
                )
                if found is not None:
                    cause, support = found
                    if cause.cyclic and cause.function in self.facts.captured:
                        # a ring of buffers: its uses in one pass agree with each other, whichever comes first
                        support = Support(Confidence.POSSIBLE, support.contexts, support.why)
                    what = "row" if isinstance(inner, cst.Index) else "slice"
                    text = self.facts.text(node)
                    message = f"the {what} that `{text}` takes is fixed at capture, but {cause.reason}"
                    self.report("CG403", node, message, f"a {what} of capture time", support)


def _parts(part: cst.BaseSlice) -> list[cst.BaseExpression]:
    if isinstance(part, cst.Index):
        return [part.value]
    assert isinstance(part, cst.Slice)
    return [bound for bound in (part.lower, part.upper, part.step) if bound is not None]


def _picks(value: Value) -> bool:
    return (
        is_number(value)
        or is_host_scalar(value)
        or any(isinstance(o, Host) and o.kind == "slice" for o in options(value))
    )


class _Leaves(cst.CSTVisitor):
    """Whether a block leaves its loop or function, or binds a number to a name for later."""

    def __init__(self) -> None:
        self.leaves = False
        self.binds = False

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def visit_Return(self, node: cst.Return) -> None:
        self.leaves = True

    def visit_Break(self, node: cst.Break) -> None:
        self.leaves = True

    def visit_Continue(self, node: cst.Continue) -> None:
        self.leaves = True

    def visit_Assign(self, node: cst.Assign) -> None:
        self.binds = self.binds or any(isinstance(target.target, cst.Name) for target in node.targets)
