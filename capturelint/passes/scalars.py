"""CG202, CG601 and CG602: a host value that changes between replays is an argument of recorded work.

A size among the arguments of an operator is CG403's: the shape of what it makes depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from capturelint.model import Confidence
from capturelint.passes.frozen import Frozen, FrozenValues, holds_number, is_host_scalar, is_number
from capturelint.values.change import Source
from capturelint.values.domain import Sequence, Tensor, Unknown, Value, device_confidence, options
from capturelint.values.facts import CallFact, Context

#: operators that copy what is in host memory, or that look at a tensor's type alone
_COPIES = ("copy_", "to", "cuda", "type", "type_as", "to_", "set_", "_to_copy", "pin_memory", "share_memory_")


class FrozenScalars(FrozenValues):
    """Arguments of kernels, custom operators and torch operators, and operands of arithmetic."""

    def visit_Call(self, node: cst.Call) -> None:
        for context, fact in self.facts.calls(node):
            if context.compiled:
                continue  # dynamo guards on the number, or makes it an input
            if fact.launch:
                self._launch(node, context, fact)
            elif _is_custom(fact) or self._is_operator(node, context, fact):
                self._arguments(node, context, fact)

    def _launch(self, node: cst.Call, context: Context, fact: CallFact) -> None:
        """The grid is often made of a number that is an argument as well: one cause, said at the argument."""
        told = self._arguments(node, context, fact)
        grid = dict(fact.keywords).get("grid")
        if isinstance(node.func, cst.Subscript):
            where = node.func.slice[0]
            found = self.surest(where, ((context, value) for value in (grid, *_inside(grid))))
            if found is not None and found[0].reason not in told:
                self._report(where, found, "the grid of this launch")

    def _arguments(self, node: cst.Call, context: Context, fact: CallFact) -> set[str]:
        """Reports the arguments that are frozen, and gives the reasons why they change."""
        told: set[str] = set()
        sizes = self.facts.sizes(fact)
        for position, argument, value in _pairs(node, fact):
            name = argument.keyword.value if argument.keyword is not None else ""
            if is_number(value) or ((position in sizes or name in sizes) and holds_number(value)):
                found = self.surest(argument.value, ((context, value),))
                if found is None:
                    continue
                told.add(found[0].reason)
                if position in sizes or name in sizes:
                    self.report_size(argument.value, found)
                else:
                    what = f"`{name}`" if name else "an argument"
                    self._report(argument.value, found, f"{what} of this launch")
            elif is_host_scalar(value) and not any(each.endswith(_COPIES) for each in fact.callees):
                self._host_tensor(argument.value, self.surest(argument.value, ((context, value),)))
        return told

    def _is_operator(self, node: cst.Call, context: Context, fact: CallFact) -> bool:
        """An operator of torch's that runs on the device: one of its operands is there, or what it makes."""
        if not any(callee.startswith("torch.") for callee in fact.callees):
            return False
        made = next((value for each, value in self.facts.values(node) if each is context), None)
        operands = (made, fact.receiver, *fact.arguments, *(value for _, value in fact.keywords))
        return any(
            (isinstance(option, Tensor) and option.on_device and option.confidence > Confidence.POSSIBLE)
            or (isinstance(option, Unknown) and option.of_tensors)
            for value in operands
            for option in options(value)
        )

    # -- operands ----------------------------------------------------------------------------------------------------

    def visit_BinaryOperation(self, node: cst.BinaryOperation) -> None:
        self._operands(node.left, node.right)
        self._operands(node.right, node.left)

    def visit_Comparison(self, node: cst.Comparison) -> None:
        if len(node.comparisons) == 1:
            other = node.comparisons[0].comparator
            self._operands(node.left, other)
            self._operands(other, node.left)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._operands(node.target, node.value)

    def visit_Assign(self, node: cst.Assign) -> None:
        """``x[rows] = self.fill``: the number is an argument of the kernel that fills."""
        for target in node.targets:
            if isinstance(target.target, cst.Subscript):
                self._operands(target.target.value, node.value)

    def _operands(self, tensor: cst.BaseExpression, other: cst.BaseExpression) -> None:
        on_device = {
            context for context, value in self.facts.values(tensor) if not context.compiled and _runs_there(value)
        }
        values = [(context, value) for context, value in self.facts.values(other) if context in on_device]
        numbers = self.surest(other, ((context, value) for context, value in values if is_number(value)))
        if numbers is not None:
            self._report(other, numbers, "a scalar operand of this launch")
        tensors = ((context, value) for context, value in values if is_host_scalar(value))
        self._host_tensor(other, self.surest(other, tensors))

    # -- reports -----------------------------------------------------------------------------------------------------

    def _report(self, node: cst.CSTNode, found: Frozen, what: str) -> None:
        cause, support = found
        if cause.source is Source.STATE:
            message = f"{what} is frozen at capture, but {cause.reason}"
            self.report("CG601", node, message, "frozen at capture", support)
            return
        text = self.facts.text(node)
        message = f"`{text}` is worked out once, at capture, and {cause.reason}: each replay uses the first one again"
        self.report("CG602", node, message, "the value of capture time", support)

    def _host_tensor(self, node: cst.CSTNode, found: Frozen | None) -> None:
        if found is None:
            return
        cause, support = found
        text = self.facts.text(node)
        rule = "CG202" if cause.source is Source.STATE else "CG602"
        message = f"the CPU tensor `{text}` is handed over by value, frozen at capture, but {cause.reason}"
        self.report(rule, node, message, "read at capture", support)

    def report_size(self, node: cst.CSTNode, found: Frozen) -> None:
        cause, support = found
        message = f"`{self.facts.text(node)}` sizes a tensor and is fixed at capture, but {cause.reason}"
        self.report("CG403", node, message, "a size of capture time", support)


def _pairs(node: cst.Call, fact: CallFact) -> Iterator[tuple[int | None, cst.Arg, Value]]:
    """A call's arguments with their positions and values, up to the first starred one."""
    keywords = dict(fact.keywords)
    for index, argument in enumerate(node.args):
        if argument.star:
            return
        if argument.keyword is not None:
            value = keywords.get(argument.keyword.value)
        else:
            value = fact.arguments[index] if index < len(fact.arguments) else None
        if value is not None:
            yield (index if argument.keyword is None else None), argument, value


def _inside(value: Value | None) -> Iterator[Value]:
    for option in options(value):
        if isinstance(option, Sequence):
            yield from option.items or ()


def _is_custom(fact: CallFact) -> bool:
    return any(callee.startswith("torch.ops.") for callee in fact.callees)


def _runs_there(value: Value | None) -> bool:
    """A device tensor, or what a model out of view makes of some."""
    if device_confidence(value) not in (None, Confidence.POSSIBLE):
        return True
    found = list(options(value))
    return bool(found) and all(isinstance(option, Unknown) and option.of_tensors for option in found)
