"""CG807: a region captures, or replays a graph, while it is being captured itself."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from capturelint.lifecycle.wrapped import GRAPHED, Kind, WrappedCallables
from capturelint.model import Confidence
from capturelint.passes.hazard import Hazard
from capturelint.passes.run import UnitHazards
from capturelint.passes.unit import Support, Unit, characters
from capturelint.project.syntax import children
from capturelint.reach import Reach
from capturelint.regions.managers import BEGINS, is_graph
from capturelint.values.domain import UNKNOWN
from capturelint.values.facts import Context, NodeSpan, span_of

_REPLAYS = frozenset({"torch.cuda.CUDAGraph.replay", "torch.accelerator.Graph.replay"})
_HELP = {
    "captures": "capture it by itself, outside the region; inside, call the function that it captures",
    "replays": "inside, call the function that the graph was captured from: the outer graph records its kernels",
}


@dataclass(frozen=True, slots=True)
class _Nested:
    """A statement that captures or replays."""

    span: NodeSpan
    what: str
    help: str
    cap: Confidence = Confidence.CERTAIN


class Nesting:
    """Looks for captures and replays in what regions reach."""

    def __init__(self, wrapped: WrappedCallables) -> None:
        self._wrapped = wrapped
        self._own: dict[Context, list[_Nested]] = {}
        self._always: dict[Context, bool] = {}

    def own(self, context: Context, body: list[ast.stmt]) -> list[_Nested]:
        """The captures and replays that stand in a function (or block) itself."""
        if context not in self._own:
            self._own[context] = [
                found for statement in body for node in _walk(statement) if (found := self._nested(node, context))
            ]
        return self._own[context]

    def _nested(self, node: ast.AST, context: Context) -> _Nested | None:
        if isinstance(node, ast.withitem):
            manager = node.context_expr
            if is_graph(context.values.get(span_of(manager), UNKNOWN)):
                return _Nested(span_of(manager), "begins a capture inside a captured region", _HELP["captures"])
            return None
        if not isinstance(node, ast.Call) or span_of(node) not in context.calls:
            return None
        callees = context.calls[span_of(node)].callees
        if any(callee in _REPLAYS for callee in callees):
            return _Nested(span_of(node), "replays a graph inside a captured region", _HELP["replays"])
        last = {callee.rpartition(".")[2] for callee in callees if callee.startswith("torch.")}
        if last & {*BEGINS, GRAPHED}:
            return _Nested(span_of(node), "begins a capture inside a captured region", _HELP["captures"])
        wrapped = self._wrapped.called(node, context)
        if wrapped is None or wrapped.kind is Kind.COMPILED:
            return None
        if wrapped.kind is Kind.REPLAYS:
            what, help = "calls a graphed callable, which replays a graph, inside a captured region", _HELP["replays"]
        else:
            what = "calls a function that is compiled with CUDA graphs, inside a captured region"
            help = "compile it in a mode without CUDA graphs (the default one, or `max-autotune-no-cudagraphs`)"
        return _Nested(span_of(node), what, help, Confidence.POSSIBLE if wrapped.conditional else Confidence.LIKELY)

    # -- on every way ------------------------------------------------------------------------------------------------

    def always(self, context: Context, body: list[ast.stmt]) -> bool:
        """Whether every way through a function captures or replays."""
        if context not in self._always:
            self._always[context] = False  # while a recursion is followed
            self._always[context] = self._block(body, context) is True
        return self._always[context]

    def _block(self, body: list[ast.stmt], context: Context) -> bool | None:
        """True where every way meets one; False where some way leaves without; None where it may go on without."""
        for statement in body:
            met = self._statement(statement, context)
            if met is not None:
                return met
        return None

    def _statement(self, node: ast.stmt, context: Context) -> bool | None:
        if isinstance(node, ast.If):
            if self._meets(node.test, context):
                return True
            known = context.decided.get(span_of(node.test))
            sides = [self._block(body, context) for side, body in ((True, node.body), (False, node.orelse))
                     if known is None or known is side]  # fmt: skip
            if all(side is True for side in sides):
                return True
            return False if False in sides else None
        if isinstance(node, (ast.With, ast.AsyncWith)):
            if any(self._meets(item, context) for item in node.items):
                return True
            return self._block(node.body, context)
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            return True if self._block(node.body, context) is True else None
        if isinstance(node, ast.Try):
            return self._block([*node.body, *node.finalbody], context)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return None
        if isinstance(node, ast.Raise) or self._meets(node, context):
            return True
        return False if isinstance(node, (ast.Return, ast.Break, ast.Continue)) else None

    def _meets(self, node: ast.AST, context: Context) -> bool:
        """Whether evaluating something captures or replays, itself or in all that it may call."""
        spans = {each.span for each in self._own.get(context, ())}
        for inner in _walk(node, conditional=False):
            expression = inner.context_expr if isinstance(inner, ast.withitem) else inner
            if not isinstance(expression, ast.expr):
                continue
            if span_of(expression) in spans:
                return True
            entered = context.enters.get(span_of(expression), ())
            if entered and all(each.function is not None and self._function(each) for each in entered):
                return True
        return False

    def _function(self, context: Context) -> bool:
        assert context.function is not None
        self.own(context, context.function.body)
        return self.always(context, context.function.body)


def find(reaches: Iterable[Reach], wrapped: WrappedCallables) -> Iterator[UnitHazards]:
    """Captures and replays in regions, as sure as it is that the way there is taken."""
    nesting = Nesting(wrapped)
    best: dict[tuple[Context, NodeSpan], tuple[Confidence, _Nested]] = {}
    for reach in reaches:
        if reach.entered.declaration.compiled:
            continue
        for context in reach.steps:
            body = _body(reach, context)
            for found in nesting.own(context, body):
                sure = min(_sure(reach, context, nesting), found.cap, key=lambda each: each.rank)
                known = best.get((context, found.span))
                if known is None or sure > known[0]:
                    best[context, found.span] = (sure, found)
    for (context, span), (sure, found) in best.items():
        sure = min(sure, context.cap_at(span[0]), key=lambda each: each.rank)
        hazard = Hazard(
            "CG807",
            characters(context.module, span),
            f"{found.what}; capture fails on this line",
            "captures or replays",
            Support(sure, (context,)),
            found.help,
        )
        yield UnitHazards(Unit(context.module, context.node, [context]), (hazard,))


def _sure(reach: Reach, context: Context, nesting: Nesting) -> Confidence:
    """A wrapper that chooses between its graph and its function chooses the function while a capture goes on."""
    step: Context | None = context
    while step is not None:
        body = _body(reach, step)
        nesting.own(step, body)
        if body and not nesting.always(step, body):
            return Confidence.POSSIBLE
        step = reach.steps[step].caller
    return Confidence.CERTAIN if reach.steps[context].caller is None else Confidence.LIKELY


def _body(reach: Reach, context: Context) -> list[ast.stmt]:
    if context is reach.entered.context:
        return reach.entered.declaration.body or []
    return context.function.body if context.function is not None else []


def _walk(node: ast.AST, *, conditional: bool = True) -> Iterator[ast.AST]:
    """A node and what is evaluated with it: no nested functions, and on demand no second operands."""
    stack = [node]
    while stack:
        each = stack.pop()
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        yield each
        if not conditional and isinstance(each, ast.BoolOp):
            stack.append(each.values[0])
        elif not conditional and isinstance(each, ast.IfExp):
            stack.append(each.test)
        else:
            stack.extend(children(each))
