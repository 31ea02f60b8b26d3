"""CG603: host state that captured code advances, and that other code, or a later pass, reads.

A method that does nothing but keep the books of an object is right where it stands: what calls it in the region is not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from capturelint.findings import Around
from capturelint.lifecycle import around
from capturelint.model import Confidence, Related, Span
from capturelint.passes.hazard import Hazard
from capturelint.passes.unit import Support
from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import last_name, walk_own
from capturelint.reach import Reach
from capturelint.values.changing import constructs
from capturelint.values.domain import Instance, Tensor, options, tensors
from capturelint.values.engine import Engine
from capturelint.values.facts import Context, NodeSpan, span_of, within
from capturelint.values.host_writes import GROWS, SHRINKS, HostWrite, reads
from capturelint.values.writes import concerns

_MAX_FILES = 24
_MAX_STEPS = 3
#: functions whose reading of a value changes nothing that the program does
_TELLS = ("__repr__", "__str__", "extra_repr", "state_dict", "__getstate__", "log", "debug", "dump")


@dataclass(eq=False, slots=True)
class _Place:
    """Where a write is reported: the statement, or the call of a method that does nothing else."""

    module: Module
    span: Span
    write: HostWrite
    written: tuple[Module, NodeSpan, str]
    call: str = ""
    ways: dict[int, tuple[Reach, Context]] = field(default_factory=dict)
    confidence: Confidence = Confidence.POSSIBLE


def find(engine: Engine, reaches: list[Reach]) -> Iterator[Around]:
    """Every write of captured code that a later pass or other code misses."""
    captured = {context.function for reach in reaches for context in reach.steps if context.is_call}
    places: dict[tuple[str, Span], _Place] = {}
    for reach in reaches:
        contexts = [context for context in reach.steps if not context.compiled]
        renewed = {*_renewed(contexts), *_balanced(contexts)}
        for context in contexts:
            for span, write in context.writes.items():
                if write.name in renewed or _only_at_capture(context, span) or _until_grown(context, span, write):
                    continue
                for place, at in _places(context, span, write):
                    if at not in reach.steps:
                        continue  # a caller in another region
                    known = places.setdefault((place.module.display, place.span), place)
                    known.ways.setdefault(id(reach), (reach, at))
                    known.confidence = max(known.confidence, _sure(reach, at, context, span))
    for place in places.values():
        yield _report(engine, place, captured)


def _sure(reach: Reach, at: Context, context: Context, span: NodeSpan) -> Confidence:
    step = reach.steps[at]
    if step.guessed or reach.entered.declaration.refuses_breaks:
        return Confidence.POSSIBLE
    return min(step.confidence, context.cap_at(span[0]), Confidence.LIKELY)


def _renewed(contexts: list[Context]) -> Iterator[str]:
    """Attributes that captured code sets anew: what it then adds to them is the same at each pass."""
    for context in contexts:
        for span, fact in context.stores.items():
            written = any(within(span, each) for each in context.writes)
            if not fact.augmented and not fact.item and not written and not any(True for _ in tensors(fact.value)):
                yield fact.attribute
        for node in context.calls:
            fact_of = context.calls[node]
            if any(callee.endswith((".list.clear", ".dict.clear", ".set.clear")) for callee in fact_of.callees):
                yield from (write.name for write in context.writes.values())


def _balanced(contexts: list[Context]) -> set[str]:
    """Stacks that captured code pushes to and pops from: they end as they began."""
    how: dict[str, set[str]] = {}
    for context in contexts:
        for write in context.writes.values():
            how.setdefault(write.name, set()).add(write.how)
    return {name for name, ways in how.items() if {GROWS, SHRINKS} <= ways}


def _only_at_capture(context: Context, span: NodeSpan) -> bool:
    """``if is_capturing: self.recorded += 1`` is meant for capture alone."""
    return any("captur" in context.module.segment(test, 400).lower() for test in _tests_around(context, span))


def _until_grown(context: Context, span: NodeSpan, write: HostWrite) -> bool:
    """``if len(SLOTS) < n: SLOTS.extend(...)``: what grows until it is long enough has grown before a capture."""
    return write.how == GROWS and any(
        reads(node, write) for test in _tests_around(context, span) for node in ast.walk(test)
    )


def _tests_around(context: Context, span: NodeSpan) -> Iterator[ast.expr]:
    for node in ast.walk(context.node):
        if isinstance(node, ast.If) and node.lineno <= span[0] <= (node.end_lineno or 0):
            yield node.test


# -- where it is reported --------------------------------------------------------------------------------------------


def _places(context: Context, span: NodeSpan, write: HostWrite) -> Iterator[tuple[_Place, Context]]:
    written = (context.module, span, context.name)
    if not _keeps_books(context):
        yield _Place(context.module, around.characters(context.module, span), write, written), context
        return
    seen: set[tuple[int, int]] = set()
    for caller, call in _calls(context, 0):
        if (id(call), id(caller)) not in seen:
            seen.add((id(call), id(caller)))
            text = caller.module.segment(call, 48)
            yield _Place(caller.module, around.span(caller.module, call), write, written, text), caller


def _keeps_books(context: Context) -> bool:
    """Whether a method works with no tensor at all."""
    info = context.function
    return (
        info is not None
        and info.owner is not None
        and info.name not in ("forward", "__call__")
        and not any(isinstance(option, Tensor) for value in context.values.values() for option in options(value))
        and any(caller.is_call for caller, _, _ in context.callers)
    )


def _calls(context: Context, depth: int) -> Iterator[tuple[Context, ast.Call]]:
    """The calls by which captured code comes to a method, through other such methods."""
    assert context.function is not None
    for caller, frame, _ in context.callers:
        if not caller.is_call:
            continue
        if _keeps_books(caller) and depth < _MAX_STEPS:
            yield from _calls(caller, depth + 1)
            continue
        for node in ast.walk(caller.node):
            if (
                isinstance(node, ast.Call)
                and node.lineno == frame.line
                and (last_name(node.func) == context.function.name or context in caller.enters.get(span_of(node), ()))
            ):
                yield caller, node


# -- who reads it ----------------------------------------------------------------------------------------------------


def _report(engine: Engine, place: _Place, captured: set[FunctionInfo | None]) -> Around:
    write = place.write
    module, span, function = place.written
    reader, inside = _reader(engine, module, span, write, captured)
    confidence = place.confidence if reader is not None else Confidence.POSSIBLE
    kept_apart = write.how == GROWS or write.text.endswith("]")
    if write.how == SHRINKS or (inside and kept_apart):
        confidence = Confidence.POSSIBLE
    reason = f"`{write.name}` {write.how} in {function} ({module.display}:{span[0]})"
    read = f", and {reader} reads it" if reader is not None else ""
    if place.call:
        message = f"`{place.call}` runs at capture and not at replay: {reason}{read}"
    else:
        message = f"`{write.text}` {write.how} at capture and not at replay{read}"
    related = (Related(module.display, span[0], "the state is changed here"),) if place.call else ()
    hazard = Hazard(
        "CG603", place.span, message, "happens once, at capture", Support(confidence, (), reason), related=related
    )
    regions = tuple(reach for reach, _ in place.ways.values())
    contexts = tuple(context for _, context in place.ways.values())
    return Around(place.module, contexts[0].name, hazard, regions, contexts)


def _reader(
    engine: Engine, home: Module, span: NodeSpan, write: HostWrite, captured: set[FunctionInfo | None]
) -> tuple[str | None, bool]:
    """The function that reads the state, one outside of the region first; and whether it is captured itself."""
    inside: str | None = None
    for module in _modules(engine, home, write):
        for function in (*module.all_functions(write.name), None):
            if function is not None and constructs(function, set()):
                continue
            for node in _own_nodes(module, function):
                if not reads(node, write) or (module is home and span[0] <= node.lineno <= span[2]):  # type: ignore[attr-defined]
                    continue
                if not _is_it(engine, module, function, node, write):
                    continue
                where = f"{function.qualname if function else 'the module'} ({module.display}:{node.lineno})"  # type: ignore[attr-defined]
                if function in captured:
                    inside = inside or where
                elif function is None or (function.name not in _TELLS and _matters(engine, function)):
                    return where, False
    return inside, True


def _matters(engine: Engine, function: FunctionInfo) -> bool:
    """Whether a function reads the state between replays; what a debugger or a set-up asks is as capture left it."""
    return not engine.replays.any or engine.replays.near(function)


def _own_nodes(module: Module, function: FunctionInfo | None) -> Iterator[ast.AST]:
    return walk_own(function.node if function is not None else module.top)


def _modules(engine: Engine, home: Module, write: HostWrite) -> list[Module]:
    files = engine.project.search.mentioning(write.name)
    return list(dict.fromkeys([home, *engine.project.modules(files, _MAX_FILES)]))


def _is_it(engine: Engine, module: Module, function: FunctionInfo | None, node: ast.AST, write: HostWrite) -> bool:
    if not isinstance(node, ast.Attribute):
        return True
    found = [option for option in options(write.owner) if isinstance(option, Instance)]
    return any(concerns(engine, module, function, node.value, owner) for owner in found)
