"""CG301: both sides are computed, and the device chooses."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from capturelint.fixes.code import argument, code, receiver
from capturelint.fixes.place import Place, number
from capturelint.model import Fix

_CHOOSE = "compute both sides and choose on the device"
_CHECK = "check on the device"
#: what gives a new tensor like the one it is called on, with a derivative that is finite everywhere, infinity included
_ELEMENTWISE = frozenset(("relu", "abs", "neg", "sigmoid", "tanh", "clone"))


def fix(place: Place) -> Fix | None:
    node = place.node
    if not isinstance(node, cst.BaseExpression):
        return None
    tensor = place.tensor(node)
    if isinstance(node, cst.Comparison) and len(node.comparisons) > 1:
        return None  # Python joins them, by what each is
    text = code(node) if place.facts.is_boolean(node) or isinstance(node, cst.Comparison) else f"{receiver(node)} != 0"
    return decided(place, node, text, exact=tensor is not None and tensor.rank == 0 and _is_tensor_for_all(place, node))


def decided(place: Place, test: cst.BaseExpression, condition: str, *, exact: bool) -> Fix | None:
    """The fix of what ``test`` decides: ``condition`` does on the device, for certain (``exact``) in the same way.

    Safe where the condition is one boolean and both sides are seen to give a new tensor of one layout.
    """
    negated, node, parent = False, test, place.parent(test)
    while isinstance(parent, cst.UnaryOperation) and isinstance(parent.operator, cst.Not):
        negated, node, parent = not negated, parent, place.parent(parent)
    if place.torch is None:
        return None
    branch = _Branch(place, condition, negated, exact)
    if isinstance(parent, cst.If) and parent.test is node:
        return branch.statement(parent)
    if isinstance(parent, cst.IfExp) and parent.test is node:
        return branch.expression(parent)
    if isinstance(parent, cst.Assert) and parent.test is node:
        wanted = f"~({condition})" if negated else condition
        return place.fix(_CHECK, parent, f"{place.torch}._assert_async({wanted})", safe=False)
    return None


class _Branch:
    def __init__(self, place: Place, condition: str, negated: bool, exact: bool) -> None:
        self.place, self.condition, self.negated, self.exact = place, condition, negated, exact

    def where(self, yes: str, no: str) -> str:
        first, second = (no, yes) if self.negated else (yes, no)
        return f"{self.place.torch}.where({self.condition}, {first}, {second})"

    def expression(self, node: cst.IfExp) -> Fix | None:
        if not self._can_choose(node.body, node.orelse):
            return None
        safe = self.exact and self._alike(node.body, node.orelse)
        return self.place.call_instead(_CHOOSE, node, self.where(argument(node.body), argument(node.orelse)), safe=safe)

    def statement(self, node: cst.If) -> Fix | None:
        place = self.place
        if isinstance(place.parent(node), cst.If) or isinstance(node.orelse, cst.If) or _comments_inside(node):
            return None  # an `elif`, or words that would be lost
        yes = _sole(node.body)
        no = _sole(node.orelse.body) if node.orelse is not None else None
        if yes is None or (no is None and node.orelse is not None):
            return None
        found = self._chosen(yes, no)
        if found is None:
            return None
        text, safe = found
        return place.fix(_CHOOSE if "where(" in text else _CHECK, node, text + _header_comment(node), safe=safe)

    def _chosen(self, yes: cst.BaseSmallStatement, no: cst.BaseSmallStatement | None) -> tuple[str, bool] | None:
        if isinstance(yes, cst.Raise) and no is None:
            wanted = self.condition if self.negated else f"~({self.condition})"
            return f"{self.place.torch}._assert_async({wanted})", False
        if isinstance(yes, cst.Return) and isinstance(no, cst.Return) and yes.value and no.value:
            first, second, head = yes.value, no.value, "return "
        elif isinstance(yes, cst.Assign) and len(yes.targets) == 1 and (no is None or isinstance(no, cst.Assign)):
            target = yes.targets[0].target
            if not isinstance(target, (cst.Name, cst.Attribute)):
                return None
            if no is not None and (len(no.targets) > 1 or code(no.targets[0].target) != code(target)):
                return None
            first, second, head = yes.value, no.value if no is not None else target, f"{code(target)} = "
        else:
            return None
        # what a name held before is not seen at its target
        if not self._can_choose(first, second if no is not None else first) or not (
            _is_pure(first) and _is_pure(second)
        ):
            return None
        safe = self.exact and no is not None and self._alike(first, second)
        return head + self.where(argument(first), argument(second)), safe

    def _can_choose(self, left: cst.BaseExpression, right: cst.BaseExpression) -> bool:
        """Whether `torch.where` takes both: a tensor, and a tensor or a number."""
        tensors = [self.place.tensor(each) is not None for each in (left, right)]
        return any(tensors) and all(
            is_tensor or number(each) is not None for is_tensor, each in zip(tensors, (left, right), strict=True)
        )

    def _alike(self, left: cst.BaseExpression, right: cst.BaseExpression) -> bool:
        """Whether both are made from one tensor of floating point by steps that keep its layout."""
        base, other = self._base(left), self._base(right)
        if base is None or other is None or code(base) != code(other) or base is left or other is right:
            return False  # a side that is the tensor itself would become a copy of it
        tensor = self.place.tensor(base)
        return tensor is not None and tensor.dtype == "float"

    def _base(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        """``x`` of ``x``, ``x * 2.0``, ``-x`` and ``x.relu()``."""
        if isinstance(node, cst.Name):
            return node
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Subtract, cst.Multiply)):
            for one, two in ((node.left, node.right), (node.right, node.left)):
                if number(two) is not None:
                    return self._base(one)
            return None
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
            return self._base(node.expression)
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            name, callee = node.func.attr.value, self.place.callee(node)
            if name in _ELEMENTWISE and callee == f"torch.Tensor.{name}" and not node.args:
                return self._base(node.func.value)
            if name in _ELEMENTWISE and callee == f"torch.{name}" and len(node.args) == 1:
                return self._base(node.args[0].value)
        return None


def _is_tensor_for_all(place: Place, node: cst.BaseExpression) -> bool:
    """Whether a condition is a tensor whoever calls the function, and not a flag of Python's for some of them."""
    if isinstance(node, cst.Name):
        holder = place.around(node, cst.FunctionDef)
        given = _parameter(holder, node.value) if isinstance(holder, cst.FunctionDef) else None
        if given is None or any("capture_region" in code(each.decorator) for each in _decorators(holder)):
            return True
        return given.annotation is not None and code(given.annotation.annotation).rpartition(".")[2] == "Tensor"
    if isinstance(node, cst.Comparison):
        return any(_is_tensor_for_all(place, each) for each in (node.left, node.comparisons[0].comparator))
    if isinstance(node, cst.BinaryOperation):
        return any(_is_tensor_for_all(place, each) for each in (node.left, node.right))
    if isinstance(node, cst.UnaryOperation):
        return _is_tensor_for_all(place, node.expression)
    return isinstance(node, (cst.Call, cst.Subscript))


def _parameter(holder: cst.FunctionDef, name: str) -> cst.Param | None:
    params = holder.params
    every = (*params.posonly_params, *params.params, *params.kwonly_params)
    return next((each for each in every if each.name.value == name), None)


def _decorators(holder: cst.CSTNode | None) -> Sequence[cst.Decorator]:
    return holder.decorators if isinstance(holder, cst.FunctionDef) else ()


def _is_pure(node: cst.CSTNode) -> bool:
    """Whether computing an expression changes nothing, as far as its text tells."""
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, (cst.NamedExpr, cst.Await, cst.Yield)):
            return False
        if isinstance(current, cst.Call):
            name = current.func.attr.value if isinstance(current.func, cst.Attribute) else code(current.func)
            if name.endswith("_") or name in ("append", "pop", "next", "print", "update", "item", "setdefault"):
                return False
        stack.extend(current.children)
    return True


def _sole(block: cst.BaseSuite) -> cst.BaseSmallStatement | None:
    """The only statement of a block."""
    lines = block.body if isinstance(block, cst.IndentedBlock) else [block]
    line = lines[0] if len(lines) == 1 else None
    if isinstance(line, (cst.SimpleStatementLine, cst.SimpleStatementSuite)) and len(line.body) == 1:
        return line.body[0]
    return None


def _header_comment(node: cst.If) -> str:
    header = node.body.header if isinstance(node.body, cst.IndentedBlock) else None
    return f"  {header.comment.value}" if header is not None and header.comment is not None else ""


def _comments_inside(node: cst.If) -> bool:
    """Whether there are comments but for that of the first line, which stays."""
    found, stack = 0, list(node.children)
    while stack:
        current = stack.pop()
        found += isinstance(current, cst.Comment)
        stack.extend(current.children)
    return found > bool(_header_comment(node))
