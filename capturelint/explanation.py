"""What a finding rests on: the way there and how sure each call is, the values, the branches around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from capturelint.model import Confidence, Finding, RegionRef
from capturelint.project.definitions import FunctionInfo
from capturelint.reach import Evidence, Reach, span_text
from capturelint.values.described import describe
from capturelint.values.domain import Host, Read, Tensor, options
from capturelint.values.facts import Context, NodeSpan, span_of, within

#: how many assignments the values of local names are followed back through
_MAX_STEPS = 6


@dataclass(frozen=True, slots=True)
class Hop:
    """One call on the way: how sure it is that it is made at capture, and why it is no surer."""

    path: str
    line: int
    function: str
    confidence: Confidence
    why: str


@dataclass(frozen=True, slots=True)
class Origin:
    """What is known of an expression."""

    line: int
    text: str
    what: str


@dataclass(frozen=True, slots=True)
class Branch:
    """A statement around the finding, which side of it the finding is on, and what decides that."""

    line: int
    text: str
    side: str
    decided: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """``hops``, ``origins`` and ``branches`` belong to the surest way; ``others`` counts the other regions."""

    finding: Finding
    region: RegionRef | None
    hops: tuple[Hop, ...] = ()
    origins: tuple[Origin, ...] = ()
    branches: tuple[Branch, ...] = ()
    doubt: str | None = None
    others: int = 0


def explain(finding: Finding, evidence: Evidence) -> Explanation:
    """Looks up what evaluation left about a finding."""
    region = finding.regions[0] if finding.regions else None
    others = max(len(finding.regions) - 1, 0)
    best = (_reported(finding, evidence) if finding.regions else None) or _surest(finding, evidence)
    if best is None:  # it is about the life of a graph: no call from the region leads there
        hops = tuple(
            Hop(frame.path, frame.line, frame.function, Confidence.CERTAIN, "")
            for frame in (region.trace if region is not None else ())
        )
        return Explanation(finding, region, hops, others=others)
    reach, context = best
    span = _bytes_of(finding, context)
    return Explanation(
        finding,
        reach.reference(context),
        tuple(_hops(reach, context)),
        tuple(_origins(context, span)),
        tuple(_branches(context, span)),
        context.doubt_at(span[0]),
        others,
    )


def _reported(finding: Finding, evidence: Evidence) -> tuple[Reach, Context] | None:
    """The way that the report shows: the first of the finding's regions."""
    for reach in evidence.reaches:
        for context in reach.steps:
            if context.module.display == finding.path and _covers(context, finding.span.line):
                if reach.reference(context) == finding.regions[0]:
                    return reach, context
    return None


def _surest(finding: Finding, evidence: Evidence) -> tuple[Reach, Context] | None:
    found: list[tuple[int, int, Reach, Context]] = []
    for reach in evidence.reaches:
        for context, step in reach.steps.items():
            if context.module.display == finding.path and _covers(context, finding.span.line):
                found.append((step.confidence.rank, -len(reach.trace(context)), reach, context))
    if not found:
        return None
    _, _, reach, context = max(found, key=lambda each: each[:2])
    return reach, context


def _covers(context: Context, line: int) -> bool:
    return any(first <= line <= last for first, _, last, _ in context.candidates)


def _bytes_of(finding: Finding, context: Context) -> NodeSpan:
    """The finding's span as ``ast`` counts: columns from 0, in bytes."""
    span, text = finding.span, context.module.line_text
    return (
        span.line,
        len(text(span.line)[: span.column - 1].encode()),
        span.end_line,
        len(text(span.end_line)[: span.end_column - 1].encode()),
    )


def _hops(reach: Reach, context: Context) -> Iterator[Hop]:
    hops: list[Hop] = []
    step = reach.steps[context]
    while step.caller is not None and step.frame is not None:
        hops.append(Hop(step.frame.path, step.frame.line, step.frame.function, step.call.confidence, step.call.why))
        step = reach.steps[step.caller]
    if reach.entered.declaration.body is None and hops:
        hops.pop()  # a region that is a function: the declaration is not a call
    return reversed(hops)


# -- values ----------------------------------------------------------------------------------------------------------


def _origins(context: Context, span: NodeSpan) -> Iterator[Origin]:
    """The tensors (and changing or read numbers) in a span, inner ones first, then where local names got them."""
    inside = [each for each in context.values if within(each, span) and _tells(context, each)]
    for each in sorted(inside, key=lambda each: (each[2] - each[0], each[3] - each[1] if each[0] == each[2] else 0)):
        yield _origin(context, each)
    yield from _assigned(context, span)


def _assigned(context: Context, span: NodeSpan) -> Iterator[Origin]:
    info = context.function
    if info is None:
        return
    seen: set[str] = set()
    names = [node.id for node in ast.walk(info.node) if isinstance(node, ast.Name) and within(span_of(node), span)]
    steps = 0
    while names and steps < _MAX_STEPS:
        name = names.pop(0)
        if name in seen:
            continue
        seen.add(name)
        for value in info.assigned.get(name, ()):
            if value.lineno > span[0] or within(span_of(value), span) or not _tells(context, span_of(value)):
                continue
            steps += 1
            found = _origin(context, span_of(value))
            yield Origin(found.line, f"{name} = {found.text}", found.what)
            names.extend(node.id for node in ast.walk(value) if isinstance(node, ast.Name))
        if name in _parameters(info) and name not in info.assigned:
            steps += 1
            yield Origin(info.line, name, f"a parameter of `{info.qualname}`")


def _parameters(info: FunctionInfo) -> set[str]:
    receiver = {info.parameters()[0].arg} if info.owner is not None and info.parameters() else set()
    return {each.arg for each in info.parameters()} - receiver


def _origin(context: Context, span: NodeSpan) -> Origin:
    return Origin(span[0], span_text(context.module, span), describe(context.values[span]))


def _tells(context: Context, span: NodeSpan) -> bool:
    return any(
        isinstance(option, (Tensor, Read)) or (isinstance(option, Host) and option.changing is not None)
        for option in options(context.values.get(span))
    )


# -- branches --------------------------------------------------------------------------------------------------------


def _branches(context: Context, span: NodeSpan) -> Iterator[Branch]:
    """The compound statements around a line, outermost first, within the code that was evaluated."""
    body: list[ast.stmt] = list(getattr(context.node, "body", ()) or ()) if not _is_lambda(context) else []
    while body:
        statement = next((each for each in body if each.lineno <= span[0] <= (each.end_lineno or each.lineno)), None)
        if statement is None or isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return
        body = []
        for side, block in _blocks(statement):
            if block and block[0].lineno <= span[0] <= (block[-1].end_lineno or block[-1].lineno):
                body = block
                if side:
                    yield Branch(statement.lineno, _header(context, statement), side, _decided(context, statement))


def _is_lambda(context: Context) -> bool:
    return isinstance(context.node, ast.Lambda)


def _blocks(statement: ast.stmt) -> Iterator[tuple[str, list[ast.stmt]]]:
    """The blocks of a statement, each with what has to be the case for it to run; empty where it runs anyway."""
    if isinstance(statement, ast.If):
        yield "where this holds", statement.body
        yield "where this fails", statement.orelse
    elif isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
        yield "in this loop", statement.body
        yield "", statement.orelse
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        yield "", statement.body
    elif isinstance(statement, ast.Match):
        for case in statement.cases:
            yield f"in the case on line {case.pattern.lineno}", case.body
    elif isinstance(statement, ast.Try) or statement.__class__.__name__ == "TryStar":
        yield "", statement.body  # type: ignore[attr-defined]
        for handler in statement.handlers:  # type: ignore[attr-defined]
            yield f"where the handler on line {handler.lineno} catches something", handler.body
        yield "", statement.orelse  # type: ignore[attr-defined]
        yield "", statement.finalbody  # type: ignore[attr-defined]


def _header(context: Context, statement: ast.stmt) -> str:
    return context.module.line_text(statement.lineno).strip()


def _decided(context: Context, statement: ast.stmt) -> str:
    if not isinstance(statement, (ast.If, ast.While)):
        return ""
    value = context.values.get(span_of(statement.test))
    known = {option.truth if isinstance(option, Host) else None for option in options(value)}
    if known == {True} or known == {False}:
        return f"known at capture to be {known.pop()}"
    return f"not decided: {describe(value)}" if value is not None else "not decided"
