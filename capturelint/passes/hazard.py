"""What passes and lifecycle checks report. Apart from the passes, so that reporting imports no LibCST."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capturelint.model import Consequence, Fix, Related, Span

if TYPE_CHECKING:
    from capturelint.passes.unit import Support


@dataclass(frozen=True, slots=True)
class Hazard:
    """A rule broken at a span, in some contexts."""

    rule: str
    span: Span
    message: str
    label: str
    support: Support
    help: str | None = None
    related: tuple[Related, ...] = ()
    fix: Fix | None = None
    #: where it is another one than the rule's
    consequence: Consequence | None = None
