"""How sure it is that code runs at capture, and why it is no surer."""

from __future__ import annotations

from capturelint.model import Confidence
from capturelint.values.immutable import immutable


@immutable
class Sure:
    """``why`` says what makes it less than certain."""

    confidence: Confidence = Confidence.CERTAIN
    why: str = ""

    def at_most(self, confidence: Confidence, why: str) -> Sure:
        """As sure as this, and no surer than ``confidence``, for the reason given."""
        return self if self.confidence <= confidence else Sure(confidence, why)


CERTAIN = Sure()
