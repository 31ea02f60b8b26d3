"""CG601: a host number that changes between replays is frozen into a launch."""

from __future__ import annotations

import libcst as cst

from capturelint.model import Confidence
from capturelint.passes.base import CapturePass
from capturelint.passes.unit import Support
from capturelint.values.domain import (
    Host,
    Sequence,
    Tensor,
    Unknown,
    Value,
    changing_reason,
    device_confidence,
    options,
)
from capturelint.values.facts import CallFact, Context


class FrozenScalars(CapturePass):
    """Arguments of kernels, custom operators and torch operators that are changing host numbers."""

    def visit_Call(self, node: cst.Call) -> None:
        for context, fact in self.facts.calls(node):
            if context.compiled:
                continue  # dynamo guards on the number, or makes it an input
            if fact.launch:
                self._launch(node, context, fact)
            elif _is_custom(fact) or _is_operator(fact):
                self._arguments(node, context, fact)

    def _launch(self, node: cst.Call, context: Context, fact: CallFact) -> None:
        self._arguments(node, context, fact)
        grid = dict(fact.keywords).get("grid")
        reason = changing_reason(grid) or _inside(grid)
        if reason is not None and isinstance(node.func, cst.Subscript):
            self._report(node.func.slice[0], context, reason, "the grid")

    def _arguments(self, node: cst.Call, context: Context, fact: CallFact) -> None:
        positional = iter(fact.arguments)
        keywords = dict(fact.keywords)
        for argument in node.args:
            if argument.star:
                return
            value = keywords.get(argument.keyword.value) if argument.keyword is not None else next(positional, None)
            if value is None or not _is_number(value):
                continue
            reason = changing_reason(value)
            if reason is not None:
                name = argument.keyword.value if argument.keyword is not None else ""
                self._report(argument.value, context, reason, f"`{name}`" if name else "an argument")

    def _report(self, node: cst.CSTNode, context: Context, reason: str, what: str) -> None:
        sure = min(Confidence.LIKELY, context.cap_at(self.facts.node_span(node)[0]))
        support = Support(sure, (context,), reason)
        self.report(
            "CG601", node, f"{what} of this launch is frozen at capture, but {reason}", "frozen at capture", support
        )

    def visit_BinaryOperation(self, node: cst.BinaryOperation) -> None:
        for context, left in self.facts.values(node.left):
            if context.compiled:
                continue
            right = next((v for c, v in self.facts.values(node.right) if c is context), None)
            for number, tensor, side in ((left, right, node.left), (right, left, node.right)):
                if number is None or device_confidence(tensor) in (None, Confidence.POSSIBLE):
                    continue
                reason = changing_reason(number)
                if reason is not None and _is_number(number):
                    self._report(side, context, reason, "a scalar operand")


def _is_number(value: Value) -> bool:
    """A host number, as far as is known: what a setter without annotations stores is unknown besides."""
    found = list(options(value))
    numbers = [option for option in found if isinstance(option, Host) and not isinstance(option.const, str)]
    return bool(numbers) and len(numbers) + sum(isinstance(option, Unknown) for option in found) == len(found)


def _inside(value: Value | None) -> str | None:
    for option in options(value):
        if isinstance(option, Sequence):
            for item in option.items or ():
                if reason := changing_reason(item):
                    return reason
    return None


def _is_custom(fact: CallFact) -> bool:
    return any(callee.startswith("torch.ops.") for callee in fact.callees)


def _is_operator(fact: CallFact) -> bool:
    """An operator of torch's that runs on the device, because one of its operands is there."""
    if not any(callee.startswith("torch.") for callee in fact.callees):
        return False
    operands = (fact.receiver, *fact.arguments, *(value for _, value in fact.keywords))
    return any(
        isinstance(option, Tensor) and option.on_device and option.confidence > Confidence.POSSIBLE
        for value in operands
        for option in options(value)
    )
