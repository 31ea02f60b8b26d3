"""What evaluation leaves behind: facts by (context, source span), for passes to ask for."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from capturelint.model import Confidence, Frame
from capturelint.values.domain import UNKNOWN, Value, changing_reason, join
from capturelint.values.sure import Sure

if TYPE_CHECKING:
    from capturelint.project.definitions import ClassInfo, FunctionInfo
    from capturelint.project.module import Module
    from capturelint.values.host_writes import HostWrite

#: line, column, end line, end column as ``ast`` counts them: columns from 0, in UTF-8 bytes
NodeSpan = tuple[int, int, int, int]
#: so many parts of a value that is joined with another count as one expression
_A_STEP = 8


def within(inner: NodeSpan, outer: NodeSpan) -> bool:
    return outer[:2] <= inner[:2] and inner[2:] <= outer[2:]


def span_of(node: ast.AST) -> NodeSpan:
    return (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Effect:
    """Something that a call or an index does to host or device; ``kind`` is one of those in ``rules/ops``.

    ``on`` says which operand it is about (``self``, a parameter's name, or empty).
    """

    kind: str
    confidence: Confidence
    detail: str = ""
    on: str = ""
    versions: str = ""
    help: str = field(default="", compare=False)
    why: str = field(default="", compare=False)


def capped(effect: Effect, cap: Confidence) -> Effect:
    return effect if effect.confidence <= cap else replace(effect, confidence=cap)


@dataclass(frozen=True, slots=True)
class CallFact:
    """One call: the dotted names of what it may call, and what that does."""

    callees: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()
    receiver: Value | None = None
    arguments: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    launch: bool = False

    @property
    def freezes(self) -> bool:
        """Whether an argument is a host value that can differ between replays."""
        return any(changing_reason(value) for value in (*self.arguments, *(value for _, value in self.keywords)))

    def merged(self, other: CallFact) -> CallFact:
        callees = tuple(dict.fromkeys((*self.callees, *other.callees)))
        effects: dict[tuple[str, str, str], Effect] = {}
        for effect in (*self.effects, *other.effects):
            key = (effect.kind, effect.on, effect.detail)
            if key not in effects or effect.confidence > effects[key].confidence:
                effects[key] = effect
        receiver = join(self.receiver, other.receiver) if self.receiver and other.receiver else None
        if len(self.arguments) == len(other.arguments):
            arguments = tuple(join(a, b) for a, b in zip(self.arguments, other.arguments, strict=False))
        else:
            arguments = self.arguments
        mine, theirs = dict(self.keywords), dict(other.keywords)
        keywords = tuple((name, join(mine.get(name), theirs.get(name))) for name in {**mine, **theirs})
        return CallFact(callees, tuple(effects.values()), receiver, arguments, keywords, self.launch or other.launch)


@dataclass(frozen=True, slots=True)
class StoreFact:
    """An attribute bound inside a region: ``owner.attribute = value``."""

    owner: Value
    attribute: str
    value: Value
    augmented: bool = False
    #: an item of the container in the attribute is bound, not the attribute itself
    item: bool = False
    #: a name of the module or an enclosing function is bound, not an attribute
    outer: bool = False


@dataclass(eq=False, repr=False, slots=True)
class Context:
    """One function (or block) in one abstract calling context, inside regions.

    ``callers`` holds the contexts that call this one, with the call's frame and how sure it is that the call is made.
    """

    module: Module
    name: str
    function: FunctionInfo | None
    node: ast.AST
    callers: list[tuple[Context, Frame, Sure]] = field(default_factory=list)
    #: its function leaves the capture where that can be broken, and is recorded where it cannot
    breaks: bool = False
    values: dict[NodeSpan, Value] = field(default_factory=dict)
    calls: dict[NodeSpan, CallFact] = field(default_factory=dict)
    indexes: dict[NodeSpan, tuple[Effect, ...]] = field(default_factory=dict)
    stores: dict[NodeSpan, StoreFact] = field(default_factory=dict)
    #: host state that is changed here for a later pass to find
    writes: dict[NodeSpan, HostWrite] = field(default_factory=dict)
    candidates: set[NodeSpan] = field(default_factory=set)
    #: tests, subjects and loops that changing host state decides
    undecided: set[NodeSpan] = field(default_factory=set)
    unresolved: dict[NodeSpan, str] = field(default_factory=dict)
    #: the contexts that calls (and the managers of ``with`` statements) enter
    enters: dict[NodeSpan, list[Context]] = field(default_factory=dict)
    #: tests of branches: true or false where that is known, None where both sides are looked at
    decided: dict[NodeSpan, bool | None] = field(default_factory=dict)
    #: attributes read, as (site, name), and enclosing names read; for the life of the graph
    attributes_read: set[tuple[object, str]] = field(default_factory=set)
    names_read: set[tuple[object, str]] = field(default_factory=set)
    #: lines of code that a capture may well not run, with what says so
    doubtful: dict[tuple[int, int], str] = field(default_factory=dict)
    #: autograd functions that are applied here
    applies: set[ClassInfo] = field(default_factory=set)
    #: backward hooks of the modules that are called here
    backward_hooks: dict[Value, None] = field(default_factory=dict)
    result: Value = UNKNOWN
    #: statements that were run for it so far, and expressions in them that were evaluated
    work: int = 0
    evaluated: int = 0
    done: bool = False
    compiled: bool = False

    def record(self, node: ast.AST, value: Value) -> None:
        self.evaluated += 1
        span = span_of(node)
        known = self.values.get(span)
        if known is not None and known is not value:
            self.evaluated += value.extent[0] // _A_STEP  # large values take long to join
            value = join(known, value)
        self.values[span] = value

    def record_call(self, node: ast.Call, fact: CallFact) -> None:
        span = span_of(node)
        known = self.calls.get(span)
        self.calls[span] = fact if known is None else known.merged(fact)
        if fact.effects or fact.launch or fact.freezes:
            self.candidates.add(span)

    def record_effects(self, node: ast.AST, effects: tuple[Effect, ...], cap: Confidence = Confidence.CERTAIN) -> None:
        if effects:
            span = span_of(node)
            effects = tuple(capped(effect, cap) for effect in effects)
            self.indexes[span] = tuple(dict.fromkeys((*self.indexes.get(span, ()), *effects)))
            self.candidates.add(span)

    def cap_at(self, line: int) -> Confidence:
        """How sure it can be that code on a line runs at capture."""
        return Confidence.POSSIBLE if self.doubt_at(line) is not None else Confidence.CERTAIN

    def doubt_at(self, line: int) -> str | None:
        """Why a capture may well not run the code on a line."""
        return next((why for (first, last), why in self.doubtful.items() if first <= line <= last), None)

    @property
    def is_call(self) -> bool:
        """Whether the function was called: a region's own block stands in a function that is not captured itself."""
        return self.node is getattr(self.function, "node", None)

    def note_undecided(self, node: ast.AST, value: Value) -> None:
        """A branch or a loop on ``value``, whose outcome is not known."""
        if changing_reason(value) is not None:
            self.undecided.add(span_of(node))
            self.candidate(node)

    def decide(self, test: ast.AST, known: bool | None) -> None:
        span = span_of(test)
        self.decided[span] = known if self.decided.get(span, known) is known else None

    def candidate(self, node: ast.AST) -> None:
        self.candidates.add(span_of(node))
