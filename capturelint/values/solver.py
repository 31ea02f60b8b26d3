"""Demand-driven answers that may depend on each other in circles."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capturelint.values.domain import Value

_SETTLED = 1 << 30
_MAX_ATTEMPTS = 1
_MAX_TRIES = 2


@dataclass(eq=False, repr=False, slots=True)
class Solver:
    """Keeps an answer only when it depends on nothing that is still being worked out.

    An answer found inside a circle saw less than there is to see: keeping it would make results depend on which
    question came first. It is worked out again when asked for outside the circle, a bounded number of times.
    """

    answers: dict[Hashable, Value] = field(default_factory=dict)
    _open: dict[Hashable, int] = field(default_factory=dict)
    _attempts: dict[Hashable, int] = field(default_factory=dict)
    #: incomplete answers, which do for questions that are asked as deep down, with the level they were found at
    _makeshift: dict[Hashable, tuple[Value, int]] = field(default_factory=dict)
    #: how far down the current question is, as the depth limits count
    level: int = 0
    #: the outermost open question that the current answer depends on
    _lowest: int = _SETTLED

    def is_open(self, key: Hashable) -> bool:
        return key in self._open

    def cut_short(self) -> None:
        """The current answer is incomplete for another reason, such as a depth limit."""
        self._lowest = -1

    def forget_makeshifts(self) -> None:
        """Keeps complete answers alone: others hang on which questions came before."""
        self._makeshift.clear()
        self._attempts.clear()

    def answer(self, key: Hashable, work_out: Callable[[], Value]) -> Value | None:
        """The answer to ``key``; None when that is being worked out further up."""
        known = self.answers.get(key)
        if known is not None:
            return known
        depth = self._open.get(key)
        if depth is not None:
            self._lowest = min(self._lowest, depth)
            return None
        makeshift = self._makeshift.get(key)
        if makeshift is not None and self.level >= makeshift[1]:
            self._lowest = -1
            return makeshift[0]
        depth = len(self._open)
        self._open[key] = depth
        outer, self._lowest = self._lowest, _SETTLED
        try:
            value = work_out()
        finally:
            del self._open[key]
            inner, self._lowest = self._lowest, outer
        if inner >= depth:  # it depends on nothing that is still open
            self.answers[key] = value
            return value
        self._lowest = min(outer, inner)
        attempts = self._attempts.get(key, 0) + 1
        self._attempts[key] = attempts
        if inner < 0 or attempts > _MAX_ATTEMPTS:
            self._makeshift[key] = (value, self.level if attempts < _MAX_TRIES else 0)
        return value
