"""What a value that is read from the device is read for: a branch, a loop, a slice, a size or an operand."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from capturelint.passes import advice
from capturelint.passes.text import code_of
from capturelint.passes.unit import Facts

#: calls that hand a number on as it is
_PASSING = frozenset(("int", "float", "bool", "abs", "min", "max", "round", "not"))
#: calls that take sizes
_SIZED = frozenset(
    (
        *(
            "zeros",
            "ones",
            "empty",
            "full",
            "arange",
            "linspace",
            "rand",
            "randn",
            "new_zeros",
            "new_ones",
            "new_empty",
        ),
        *("new_full", "view", "reshape", "expand", "narrow", "repeat", "split", "chunk", "unflatten", "resize_"),
    )
)


@dataclass(frozen=True, slots=True)
class Feed:
    """``purpose`` ends a sentence about the read; ``help`` says what to write instead."""

    purpose: str
    help: str | None = None


class Feeds:
    """Answers what a call's result goes into, by looking at the nodes around it."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def of(self, node: cst.Call) -> Feed | None:
        """None where the result goes into nothing that decides a shape or a path."""
        read = advice.read_of(node)
        inner: cst.CSTNode = node
        while (parent := self._facts.parent(inner)) is not None:
            feed = self._at(parent, inner, node, read)
            if feed is not None:
                return feed
            if not _hands_on(parent, inner):
                return None
            inner = parent
        return None

    def _at(self, parent: cst.CSTNode, inner: cst.CSTNode, node: cst.Call, read: str | None) -> Feed | None:
        if isinstance(parent, (cst.If, cst.While, cst.IfExp, cst.CompIf, cst.Assert)) and parent.test is inner:
            return self._decides(parent, inner, node, read)
        if isinstance(parent, cst.Slice):
            return Feed(", for the bound of a slice", advice.masked(read) if read is not None else None)
        if isinstance(parent, cst.Arg):
            call = self._facts.parent(parent)
            if isinstance(call, cst.Call):
                return _passed_to(call, read)
        if isinstance(parent, cst.BinaryOperation) and read is not None and inner is node:
            other = parent.right if parent.left is inner else parent.left
            if self._facts.device_tensor(other) is not None:
                return Feed(", for an operand", advice.operand(parent, code_of(node), read))
        return None

    def _decides(
        self,
        parent: cst.If | cst.While | cst.IfExp | cst.CompIf | cst.Assert,
        test: cst.CSTNode,
        node: cst.Call,
        read: str | None,
    ) -> Feed:
        condition = code_of(test).replace(code_of(node), read) if read is not None else ""
        negated = condition.startswith("not ") and " and " not in condition and " or " not in condition
        condition = condition.removeprefix("not ") if negated else condition
        if not isinstance(test, (cst.Comparison, cst.UnaryOperation)) and not condition.endswith((".any()", ".all()")):
            condition = f"{condition} != 0"
        plain = bool(read) and " and " not in condition and " or " not in condition and not condition.startswith("not ")
        if isinstance(parent, cst.If):
            return Feed(" to decide an `if`", advice.branch(parent, condition, negated) if plain else None)
        if isinstance(parent, cst.While):
            return Feed(" to decide a `while`", advice.loop(parent, condition) if plain and not negated else None)
        if isinstance(parent, cst.Assert):
            return Feed(" to decide an `assert`", advice.check(condition) if plain and not negated else None)
        if isinstance(parent, cst.IfExp):
            return Feed(" to choose a side", advice.choice(parent, condition, negated) if plain else None)
        return Feed(" to decide what a comprehension keeps")


def _passed_to(call: cst.Call, read: str | None) -> Feed | None:
    name = call.func.attr.value if isinstance(call.func, cst.Attribute) else code_of(call.func)
    if name == "range":
        return Feed(", for the bound of a loop", advice.bounded(read) if read is not None else None)
    if name in _SIZED:
        return Feed(f", for a size of `{name}`", advice.masked(read) if read is not None else None)
    return None


def _hands_on(parent: cst.CSTNode, inner: cst.CSTNode) -> bool:
    """Whether a value goes through a node as it is, or decides what comes out of it."""
    if isinstance(parent, cst.Call):
        return parent.func is not inner and code_of(parent.func) in _PASSING
    return isinstance(
        parent,
        (
            cst.Arg,
            cst.BinaryOperation,
            cst.BooleanOperation,
            cst.Comparison,
            cst.ComparisonTarget,
            cst.Element,
            cst.List,
            cst.NamedExpr,
            cst.Tuple,
            cst.UnaryOperation,
        ),
    )
