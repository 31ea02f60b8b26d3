"""Why a host value can differ between capture and replay, and how sure that is."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from capturelint.model import Confidence

if TYPE_CHECKING:
    from capturelint.project.definitions import FunctionInfo


class Source(enum.Enum):
    """Where a changing value comes from."""

    #: an attribute, a global or a container that other code writes
    STATE = "state"
    #: a call that gives another value each time: a clock, a random number, an iterator
    CALL = "call"
    #: what the environment of the process says: it seldom changes while the process lives
    ENVIRONMENT = "environment"


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason. ``function`` is the one that writes the state; ``carried`` says that it makes it of its old value.

    What captured code itself sets, and sets anew at each pass, does not change for that reason: see ``outside``.
    ``cyclic``: of a counter, taken modulo something: which of a few slots is meant.
    """

    reason: str
    confidence: Confidence = Confidence.LIKELY
    source: Source = Source.STATE
    function: FunctionInfo | None = None
    carried: bool = False
    cyclic: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """All reasons that are known, the surest first."""

    causes: tuple[Cause, ...]

    @property
    def first(self) -> Cause:
        return self.causes[0]

    def outside(self, captured: frozenset[FunctionInfo]) -> Cause | None:
        """The surest reason that is none of the captured functions' own doing."""
        return next((each for each in self.causes if each.carried or each.function not in captured), None)

    def cycling(self) -> Change:
        """The same of the value modulo something."""
        return Change(tuple(replace(each, cyclic=True) for each in self.causes))

    def by_others(self) -> Change:
        """The same where captured code's own writes change nothing: who asks what is in a set adds to it for that."""
        return Change(tuple(replace(each, carried=False) for each in self.causes))


_MAX_CAUSES = 4


def because(reason: str, confidence: Confidence = Confidence.LIKELY, source: Source = Source.STATE) -> Change:
    return Change((Cause(reason, confidence, source),))


def of_causes(causes: list[Cause]) -> Change | None:
    """The reasons as one, the surest first; None without any."""
    ordered = sorted(dict.fromkeys(causes), key=lambda cause: -cause.confidence.rank)
    return Change(tuple(ordered[:_MAX_CAUSES])) if ordered else None


def either(left: Change | None, right: Change | None) -> Change | None:
    """What holds of a value that depends on two: each of them may change it."""
    if left is None or right is None or left == right:
        return left if right is None else right
    return of_causes([*left.causes, *right.causes])
