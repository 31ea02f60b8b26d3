"""Walks every region that deals with streams."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from capturelint.model import Confidence
from capturelint.passes.run import UnitHazards
from capturelint.passes.unit import Unit
from capturelint.reach import Reach
from capturelint.regions.declaration import Declaration
from capturelint.regions.managers import GRAPH_CONTEXTS
from capturelint.streams.calls import Calls
from capturelint.streams.keys import Key, key_of, streams_of
from capturelint.streams.report import Capture, Report
from capturelint.streams.state import Spot, State
from capturelint.streams.walk import States, Walk
from capturelint.streams.work import Work, asked, relevant
from capturelint.values.domain import ExternalInstance, Value, options
from capturelint.values.engine import Engine
from capturelint.values.facts import span_of

#: regions that are captured as they stand, by code that we see
_SEEN = frozenset({"torch.cuda.graph", "capture_begin", "make_graphed_callables"})
#: functions that are captured as a whole; those that a preset names are part of what an engine captures
_WHOLE = _SEEN | {"capture_region", "comment", "config"}


class Regions:
    """Walks regions one by one; what goes wrong in them is said in ``hazards``."""

    def __init__(self, engine: Engine, reaches: Iterable[Reach]) -> None:
        reaches = [reach for reach in reaches if not reach.entered.declaration.compiled]
        self._engine = engine
        self._report, self._work = Report(), Work(engine.ops)
        contexts = [*engine.contexts.values(), *(reach.entered.context for reach in reaches)]
        self._dealing, self._asked = relevant(contexts), asked(contexts)
        self._walks: dict[tuple[frozenset[Key], Capture], Walk] = {}
        self.dealing = [reach for reach in reaches if reach.entered.context in self._dealing]
        self._named = {id(reach): _captured_on(engine, reach.entered.declaration) for reach in reaches}
        self._anywhere = frozenset(key for keys in self._named.values() for key in keys)

    def walk(self, reach: Reach, declaration: Declaration) -> None:
        """Follows one region, which ``declaration`` declares."""
        marked = declaration.body is None
        seen = declaration.kind in _SEEN
        self._report.capture = Capture(seen or marked, partial=marked and declaration.kind not in _WHOLE)
        captured_on = self._anywhere if marked or not seen else self._named[id(reach)]
        key = (captured_on, self._report.capture)
        if key not in self._walks:
            self._walks[key] = Walk(Calls(self._work, self._report, captured_on, self._asked), self._dealing)
        _unjoined(self._walks[key].region(reach.entered.context, declaration.body), self._report)

    def hazards(self) -> list[UnitHazards]:
        """All that was found, by the function that it stands in."""
        return [
            UnitHazards(Unit(context.module, context.node, [context]), (hazard,))
            for (_, context, _), hazard in self._report.found.items()
        ]


def _unjoined(ends: States, report: Report) -> None:
    """Work that is not joined where a region ends, on every way or on some."""
    open_on: dict[tuple[Key, Spot], list[State]] = {}
    for state in ends:
        for stream, spot in state.unjoined():
            open_on.setdefault((stream, spot), []).append(state)
    for (stream, spot), states in open_on.items():
        working = [state for state in ends if state.has_worked(stream)]
        if len(states) == len(working):
            sure = Confidence.CERTAIN if all(stream in state.made for state in states) else Confidence.LIKELY
        else:
            # joined on some ways: a hazard of the others, unless fork and join hang on the same condition
            sure = Confidence.LIKELY if len(working) == len(ends) else Confidence.POSSIBLE
        report.unjoined(stream, spot, sure, states[0])


def _captured_on(engine: Engine, declaration: Declaration) -> frozenset[Key]:
    """The streams that a region is captured on, as the code around it names them."""
    holder = declaration.holder
    scope = engine.scope_of(holder, declaration.module)
    found: list[Value | None] = []
    if isinstance(declaration.node, (ast.With, ast.AsyncWith)):
        for item in declaration.node.items:
            for option in options(engine.evaluate_in(scope, item.context_expr)):
                if isinstance(option, ExternalInstance) and option.cls in GRAPH_CONTEXTS:
                    found.append(option.argument("stream"))
    elif declaration.kind == "capture_begin":
        body = holder.node if holder is not None else declaration.module.tree
        for node in ast.walk(body):
            if isinstance(node, (ast.With, ast.AsyncWith)) and span_of(node)[0] <= declaration.line <= span_of(node)[2]:
                found.extend(_stream(engine.evaluate_in(scope, item.context_expr)) for item in node.items)
    keys = [
        key_of(stream, {}) for value in found if value is not None for stream in streams_of(value) if stream is not None
    ]
    return frozenset(key for key in keys if key is not None)


def _stream(manager: Value) -> Value | None:
    for option in options(manager):
        if isinstance(option, ExternalInstance) and option.cls == "torch.cuda.StreamContext":
            return option.argument("stream")
    return manager
