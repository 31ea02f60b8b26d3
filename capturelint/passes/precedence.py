"""Where two rules name one span, the more specific one reports, once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capturelint.passes.hazard import Hazard

#: a rule, and those that say the same thing more precisely where they report the same span
_GIVES_WAY = {
    "CG105": frozenset({"CG101", "CG102", "CG103", "CG104", "CG201", "CG401", "CG402", "CG904"}),
}


def most_specific(hazards: Iterable[Hazard]) -> tuple[Hazard, ...]:
    """``hazards`` without those that give way to another one, as sure, at the same span."""
    found = tuple(hazards)
    return tuple(hazard for hazard in found if not any(_outdoes(other, hazard) for other in found))


def _outdoes(other: Hazard, hazard: Hazard) -> bool:
    return (
        other.span == hazard.span
        and other.rule in _GIVES_WAY.get(hazard.rule, ())
        and other.support.confidence >= hazard.support.confidence
    )
