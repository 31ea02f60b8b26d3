"""The code at a hazard inside a region, with the facts about it: what the fixes of captured code are built from."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from capturelint.fixes.code import parsed, replacement, text_at, torch_name
from capturelint.model import Applicability, Fix, Span
from capturelint.passes.base import Hazard
from capturelint.passes.unit import Facts
from capturelint.project.module import Module
from capturelint.rulebook.op_spec import OpSpec
from capturelint.rulebook.ops import load_ops
from capturelint.values.domain import Host, Tensor, Value, options


@dataclass(frozen=True, slots=True)
class Place:
    """``node`` is what the finding stands at."""

    module: Module
    facts: Facts
    node: cst.CSTNode
    hazard: Hazard
    #: the source of the function around it, with its decorators
    unit_text: str

    @property
    def torch(self) -> str | None:
        """What ``torch`` is called here."""
        return torch_name(self.module)

    # -- the code around ---------------------------------------------------------------------------------------------

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return self.facts.parent(node)

    def around(self, node: cst.CSTNode, *kinds: type[cst.CSTNode]) -> cst.CSTNode | None:
        """The innermost node around another that is one of these."""
        current = self.facts.parent(node)
        while current is not None and not isinstance(current, kinds):
            current = self.facts.parent(current)
        return current

    def assigned(self) -> cst.Assign | None:
        """The assignment whose only target the node is."""
        target = self.parent(self.node)
        if not isinstance(target, cst.AssignTarget):
            return None
        assignment = self.parent(target)
        return assignment if isinstance(assignment, cst.Assign) and len(assignment.targets) == 1 else None

    def is_read(self, node: cst.BaseExpression) -> bool:
        """Whether an expression surely is one that is read, and no target."""
        parent = self.parent(node)
        if isinstance(parent, (cst.Assign, cst.AnnAssign, cst.AugAssign)):
            return parent.value is node
        return isinstance(parent, (cst.Arg, cst.BinaryOperation, cst.Comparison, cst.Return, cst.Attribute))

    def is_bound_here(self, name: cst.Name) -> bool:
        """Whether the function around gives a name its value by an assignment."""
        holder = self.around(name, cst.FunctionDef, cst.Module)
        stack: list[cst.CSTNode] = [holder] if holder is not None else []
        while stack:
            node = stack.pop()
            if isinstance(node, cst.AssignTarget) and node.target.deep_equals(name):
                return True
            stack.extend(node.children)
        return False

    # -- facts -------------------------------------------------------------------------------------------------------

    def values(self, node: cst.CSTNode) -> list[Value]:
        return [option for _, value in self.facts.values(node) for option in options(value)]

    def tensor(self, node: cst.CSTNode) -> Tensor | None:
        """What a node is where it is a tensor on the device in every context; of several kinds what they share."""
        found = self.values(node)
        tensors = [each for each in found if isinstance(each, Tensor) and each.on_device and each.layout is None]
        if not found or len(tensors) < len(found):
            return None
        first = tensors[0]
        return Tensor(
            device=first.device,
            dtype=first.dtype if len({each.dtype for each in tensors}) == 1 else None,
            rank=first.rank if len({each.rank for each in tensors}) == 1 else None,
        )

    def is_host(self, node: cst.CSTNode) -> bool:
        found = self.values(node)
        return bool(found) and all(isinstance(each, Host) and not each.is_none for each in found)

    def is_whole_number(self, node: cst.BaseExpression) -> bool:
        found = self.values(node)
        known = bool(found) and all(
            isinstance(each, Host) and (each.shape or type(each.const) is int) for each in found
        )
        return known or type(number(node)) is int

    def is_python_number(self, node: cst.CSTNode) -> bool:
        """Whether a node surely is a number of Python's own: NumPy's have a dtype, which constructors take over."""
        found = self.values(node)
        return bool(found) and all(
            isinstance(each, Host) and (each.shape or type(each.const) in (int, float, bool)) for each in found
        )

    def callee(self, node: cst.Call) -> str | None:
        """The one function that a call calls, by its dotted name."""
        names = {name for _, fact in self.facts.calls(node) for name in fact.callees}
        return names.pop() if len(names) == 1 else None

    def computes(self, node: cst.Call) -> OpSpec | None:
        """The operator of torch that a call calls, if that changes nothing."""
        callee = self.callee(node)
        spec = load_ops().lookup(callee) if callee is not None and callee.startswith("torch.") else None
        return spec if spec is not None and not (spec.mutates or spec.random or spec.name.endswith("_")) else None

    def changes(self, node: cst.CSTNode) -> bool:
        """Whether to compute an expression may change something, or give another object each time."""
        if isinstance(node, (cst.NamedExpr, cst.Await, cst.Yield)):
            return True
        if isinstance(node, cst.Call) and self.computes(node) is None:
            return True
        return any(self.changes(each) for each in node.children)

    # -- fixes -------------------------------------------------------------------------------------------------------

    def detached(self, node: cst.Call) -> cst.Call:
        """A call to change and write as a whole: nodes of a function lose the indentation of their lines otherwise."""
        call = parsed(text_at(self.module, self.facts.span(node)))
        assert isinstance(call, cst.Call)
        return call

    def fix(self, message: str, node: cst.CSTNode, text: str, *, safe: bool) -> Fix:
        """Another text for a node."""
        applicability = Applicability.SAFE if safe else Applicability.UNSAFE
        return Fix(applicability, message, (replacement(self.module, self.facts.span(node), text),))

    def call_instead(self, message: str, node: cst.BaseExpression, text: str, *, safe: bool) -> Fix:
        """A call in place of an expression that may stand in brackets, which a call does not need."""
        span = self.facts.span(node)
        around = Span(span.line, span.column - 1, span.end_line, span.end_column + 1)
        if len(node.lpar) == 1 and _is_bracketed(self.module, span):
            applicability = Applicability.SAFE if safe else Applicability.UNSAFE
            return Fix(applicability, message, (replacement(self.module, around, text),))
        return self.fix(message, node, text, safe=safe)


def _is_bracketed(module: Module, span: Span) -> bool:
    """Whether brackets stand close around a span, on its lines, and nothing grows together without them."""
    before, behind = (
        module.line_text(span.line)[: span.column - 1],
        module.line_text(span.end_line)[span.end_column - 1 :],
    )
    words = before[-2:-1], behind[1:2]
    return before[-1:] == "(" and behind[:1] == ")" and not any(each.isalnum() or each == "_" for each in words)


def number(node: cst.BaseExpression) -> int | float | bool | None:
    """A number that is written out."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, (cst.Minus, cst.Plus)):
        inner = number(node.expression)
        if inner is None or isinstance(inner, bool):
            return None
        return -inner if isinstance(node.operator, cst.Minus) else inner
    if isinstance(node, cst.Name) and node.value in ("True", "False"):
        return node.value == "True"
    if isinstance(node, (cst.Integer, cst.Float)):
        value = node.evaluated_value
        return value if isinstance(value, (int, float)) else None
    return None


def sole_index(node: cst.Subscript) -> cst.BaseExpression | None:
    """``i`` of ``x[i]``."""
    if len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index) or node.slice[0].slice.star:
        return None
    return node.slice[0].slice.value
