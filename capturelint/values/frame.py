"""One activation of a function: its names, where facts go, and what it returned so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from capturelint.model import Confidence
from capturelint.values.domain import Device, Value
from capturelint.values.sure import CERTAIN, Sure

if TYPE_CHECKING:
    import ast

    from capturelint.project.definitions import FunctionInfo
    from capturelint.project.module import Module
    from capturelint.values.engine import Engine
    from capturelint.values.facts import Context
    from capturelint.values.lazy import LazyScope
    from capturelint.values.scope import Scope


@dataclass(frozen=True, slots=True)
class Arguments:
    """A call's arguments. ``rest`` stands for the elements of a starred argument of unknown length."""

    positional: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    rest: Value | None = None
    open_keywords: bool = False

    def keyword(self, name: str) -> Value | None:
        return next((value for key, value in self.keywords if key == name), None)

    def get(self, position: int | None, name: str) -> Value | None:
        """The argument given by position or by name."""
        given = self.keyword(name)
        if given is not None:
            return given
        if position is not None and 0 <= position < len(self.positional):
            return self.positional[position]
        return None

    @property
    def all(self) -> tuple[Value, ...]:
        rest = (self.rest,) if self.rest is not None else ()
        return (*self.positional, *(value for _, value in self.keywords), *rest)

    def after(self, *first: Value) -> Arguments:
        return Arguments((*first, *self.positional), self.keywords, self.rest, self.open_keywords)


@dataclass(eq=False, repr=False, slots=True)
class Frame:
    """``context`` is None outside regions: then nothing is recorded."""

    engine: Engine
    module: Module
    scope: Scope | LazyScope
    function: FunctionInfo | None = None
    context: Context | None = None
    depth: int = 0
    receiver: Value | None = None
    returns: list[Value] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)
    breaks: list[dict[str, Value] | None] = field(default_factory=list)
    continues: list[dict[str, Value] | None] = field(default_factory=list)
    default_device: Device = Device.HOST
    #: whether autograd's anomaly mode is on; None where nothing here says so
    anomaly: bool | None = None
    #: what comes after the current statement, where that is the other side of an ``if`` that leaves
    following: list[ast.stmt] = field(default_factory=list)
    #: how sure it is that the current statement runs at capture
    sure: Sure = CERTAIN

    @property
    def confidence(self) -> Confidence:
        return self.sure.confidence

    @property
    def in_region(self) -> bool:
        return self.context is not None

    def doubt(self, body: list[ast.stmt], why: str) -> None:
        """From here, that is for ``body``, it is only possible that code runs at capture."""
        self.sure = self.sure.at_most(Confidence.POSSIBLE, why)
        if self.context is not None and body:
            self.context.doubtful.setdefault((body[0].lineno, body[-1].end_lineno or body[-1].lineno), why)

    def candidate(self, node: ast.AST) -> None:
        if self.context is not None:
            self.context.candidate(node)
