"""What every pass has: the facts at hand, and a way to report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import libcst as cst
from libcst import BatchableCSTVisitor

from capturelint.model import Fix, Related, Span
from capturelint.passes.hazard import Hazard as Hazard
from capturelint.passes.unit import Facts, Support
from capturelint.values.facts import Effect


class CapturePass(BatchableCSTVisitor):
    """Base of all passes. Subclasses visit nodes, ask ``self.facts`` and call ``self.report``."""

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        self.facts = facts
        self.hazards: dict[tuple[str, Span], Hazard] = {}

    _names: ClassVar[tuple[str, ...] | None] = None

    def get_visitors(self) -> Mapping[str, Callable[..., Any]]:
        """LibCST looks these up by inspecting the instance, for every traversal; they are the same for a class."""
        cls = type(self)
        if "_names" not in vars(cls):
            cls._names = tuple(super().get_visitors())
        return {name: getattr(self, name) for name in cls._names or ()}

    def report(
        self,
        rule: str,
        node: cst.CSTNode,
        message: str,
        label: str,
        support: Support,
        *,
        help: str | None = None,
        related: tuple[Related, ...] = (),
        fix: Fix | None = None,
    ) -> None:
        """Reports once a rule and span; the surest report stays."""
        span = self.facts.span(node)
        known = self.hazards.get((rule, span))
        if known is None or support.confidence > known.support.confidence:
            self.hazards[rule, span] = Hazard(rule, span, message, label, support, help, related, fix)

    def effects(self, node: cst.CSTNode, *kinds: str) -> Iterator[tuple[Effect, Support]]:
        return ((effect, support) for effect, support in self.facts.effects(node) if effect.kind in kinds)

    def argument(self, node: cst.Call, name: str, position: int | None) -> cst.BaseExpression | None:
        """The expression given for a parameter."""
        for index, argument in enumerate(node.args):
            if argument.keyword is not None and argument.keyword.value == name:
                return argument.value
            if argument.keyword is None and not argument.star and index == position:
                return argument.value
        return None


def receiver_of(node: cst.Call) -> cst.BaseExpression | None:
    return node.func.value if isinstance(node.func, cst.Attribute) else None
