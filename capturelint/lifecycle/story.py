"""The story that a finding about a graph's life tells: where it was captured, and where it is replayed after."""

from __future__ import annotations

import ast

from capturelint.findings import Around
from capturelint.lifecycle import around
from capturelint.lifecycle.life import Life
from capturelint.model import Confidence, Consequence, Fix, Related
from capturelint.passes.hazard import Hazard
from capturelint.passes.unit import Support
from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module


def captured_at(life: Life, message: str = "captured here") -> Related:
    declaration = life.declaration
    return Related(declaration.module.display, declaration.line, message)


def replayed_at(life: Life, near: FunctionInfo | None, message: str = "replayed here") -> tuple[Related, ...]:
    """The replay to show: one in the same function if there is one, else the first that replays directly."""
    if not life.replays:
        return ()
    best = next((each for each in life.replays if near is not None and each.function is near), life.replays[0])
    return (Related(best.module.display, best.call.lineno, message),)


def where(life: Life) -> str:
    """``runner.py:40``, as messages name a region."""
    return f"{life.declaration.module.display}:{life.declaration.line}"


def finding(
    life: Life,
    rule: str,
    function: FunctionInfo | None,
    module: Module,
    node: ast.AST,
    message: str,
    label: str,
    confidence: Confidence,
    *,
    help: str | None = None,
    related: tuple[Related, ...] | None = None,
    fix: Fix | None = None,
    consequence: Consequence | None = None,
) -> Around:
    """A hazard in code around the region, with the story of its graph."""
    if related is None:
        related = (captured_at(life), *replayed_at(life, function))
    hazard = Hazard(
        rule, around.span(module, node), message, label, Support(confidence, ()), help, related, fix, consequence
    )
    return Around(module, function.qualname if function is not None else "", hazard, (life.reach,))
