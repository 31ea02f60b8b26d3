"""CG801: code that needs a first run before it can be captured, and has it inside the region.

Whether something ran before is told by names: no other code of the project calls what leads there from the region. A
region that is merely marked says nothing of what ran before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from capturelint.lifecycle import around
from capturelint.lifecycle.wrapped import Kind, WrappedCallables
from capturelint.model import Confidence
from capturelint.passes.hazard import Hazard
from capturelint.passes.run import UnitHazards
from capturelint.passes.unit import Support, Unit, characters
from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import dotted_name, keyword_value, last_name, walk_all
from capturelint.reach import Reach
from capturelint.values.domain import External, Function, Sequence, options
from capturelint.values.engine import Engine
from capturelint.values.facts import Context, NodeSpan, span_of

_MAX_FILES = 40
#: blocks whose capture stands where we see it
_SEEN = frozenset({"torch.cuda.graph", "capture_begin"})
_CAPTURING = "torch.cuda.is_current_stream_capturing"
_AUTOTUNE = "triton.autotune"


def find(engine: Engine, reaches: Iterable[Reach], wrapped: WrappedCallables) -> Iterator[UnitHazards]:
    """First calls of compiled functions and autotuned kernels in regions."""
    looks = _Cold(engine, wrapped)
    found: dict[tuple[Context, NodeSpan], Hazard] = {}
    for reach in reaches:
        if reach.entered.declaration.compiled:
            continue
        for context in reach.steps:
            for hazard, span in looks.at(reach, context):
                known = found.get((context, span))
                if known is None or hazard.support.confidence > known.support.confidence:
                    found[context, span] = hazard
    for (context, _), hazard in found.items():
        yield UnitHazards(Unit(context.module, context.node, [context]), (hazard,))


class _Cold:
    def __init__(self, engine: Engine, wrapped: WrappedCallables) -> None:
        self._engine = engine
        self._wrapped = wrapped
        self._first: dict[Context, list[tuple[ast.Call, str, str]]] = {}

    def at(self, reach: Reach, context: Context) -> Iterator[tuple[Hazard, NodeSpan]]:
        if context not in self._first:
            self._first[context] = list(self._needing(context))
        for node, what, name in self._first[context]:
            created = not name
            sure = Confidence.LIKELY
            if not created:
                if reach.entered.declaration.kind not in _SEEN:
                    continue
                warm = self._ran_before(reach, context, node, name)
                if warm is True:
                    continue
                # called by another name, it is handed on as a value, and others may have called it too
                sure = Confidence.POSSIBLE if warm is None or last_name(node.func) != name else Confidence.LIKELY
            elif self._warmed(reach, context) is not False:
                sure = Confidence.POSSIBLE
            span = span_of(node)
            sure = min(sure, context.cap_at(span[0]), key=lambda each: each.rank)
            hazard = Hazard(
                "CG801",
                characters(context.module, span),
                f"{what}; capture fails on this line",
                "needs a run before the capture",
                Support(sure, (context,)),
            )
            yield hazard, span

    # -- what needs a first run --------------------------------------------------------------------------------------

    def _needing(self, context: Context) -> Iterator[tuple[ast.Call, str, str]]:
        """Calls that compile or benchmark when made for the first time, what they do, and by which name they go.

        The name is empty for what is created in the region itself.
        """
        for node in walk_all(context.node) if context.calls else ():
            fact = context.calls.get(span_of(node)) if isinstance(node, ast.Call) else None
            if fact is None or not isinstance(node, ast.Call):
                continue
            if isinstance(node.func, ast.Call) and _calls(context, node.func, "torch.compile"):
                yield node, "`torch.compile` is called in the region, and compiles at the first call", ""
            elif _calls(context, node, _AUTOTUNE) or any(_is_autotuner(callee) for callee in fact.callees):
                yield node, f"`{last_name(node.func)}` tunes kernels in the region, by timing them", ""
            elif fact.launch:
                kernel = self._autotuned(context, node)
                if kernel is not None:
                    what = f"`{kernel.name}` is tuned at its first launch, by timing each configuration"
                    yield node, f"{what}, and nothing launches it before the capture", kernel.name
            else:
                yield from self._compiled(context, node)

    def _compiled(self, context: Context, node: ast.Call) -> Iterator[tuple[ast.Call, str, str]]:
        called = self._wrapped.called(node, context)
        if called is None or called.kind is not Kind.COMPILED or called.node is node.func:
            return
        name = called.function.name if called.function is not None else last_name(node.func)
        if any(called.node is inner for inner in ast.walk(context.node)):
            yield node, f"`{name}` is made by `torch.compile` in the region, and compiles at its first call", ""
        elif not called.conditional:
            yield node, f"`{name}` is compiled at its first call, and nothing calls it before the capture", name

    def _autotuned(self, context: Context, node: ast.Call) -> FunctionInfo | None:
        """The kernel of a launch, where it is benchmarked first: with more than one configuration."""
        if not isinstance(node.func, ast.Subscript):
            return None
        for option in options(context.values.get(span_of(node.func.value))):
            if isinstance(option, Function) and option.role == "triton":
                for decorator in option.info.decorators:
                    if isinstance(decorator, ast.Call) and self._benchmarks(option.info.module, decorator):
                        return option.info
        return None

    def _benchmarks(self, module: Module, decorator: ast.Call) -> bool:
        scope = self._engine.module_scope(module)
        callee = self._engine.evaluate_in(scope, decorator.func)
        if not any(isinstance(option, External) and option.path == _AUTOTUNE for option in options(callee)):
            return False
        configs = keyword_value(decorator, "configs")
        configs = configs if configs is not None else (decorator.args[0] if decorator.args else None)
        known = self._engine.evaluate_in(scope, configs) if configs is not None else None
        return not (isinstance(known, Sequence) and known.items is not None and len(known.items) <= 1)

    # -- what ran before ---------------------------------------------------------------------------------------------

    def _ran_before(self, reach: Reach, context: Context, node: ast.Call, name: str) -> bool | None:
        """Whether some code ran the call before; None where that cannot be told."""
        ways = [self._elsewhere(reach, name, node, launches=isinstance(node.func, ast.Subscript))]
        if not _only_while_capturing(context, node):
            ways.append(self._warmed(reach, context))
        if True in ways:
            return True
        return None if None in ways else False

    def _warmed(self, reach: Reach, context: Context) -> bool | None:
        """Whether one of the calls on the way from the region is made elsewhere too."""
        if reach.entered.declaration.kind not in _SEEN:
            return False if context is reach.entered.context or reach.entered.declaration.body is None else None
        answers: list[bool | None] = []
        step = reach.steps[context]
        while step.caller is not None and step.frame is not None:
            entered = context.function
            for call in _calls_on(step.caller, step.frame.line, context):
                answers.append(self._spelled(reach, call) or self._elsewhere(reach, last_name(call.func), None))
            if entered is not None:
                answers.append(self._elsewhere(reach, entered.name, None))
            context = step.caller
            step = reach.steps[context]
        return True if True in answers else None if None in answers else False

    def _spelled(self, reach: Reach, call: ast.Call) -> bool:
        """Whether the capture's class makes the same call outside the region: ``self.forward()`` as a warm-up."""
        declaration, name = reach.entered.declaration, dotted_name(call.func)
        first, last = declaration.line, around.last_line(declaration)
        return name is not None and any(
            dotted_name(other.func) == name
            and not first <= other.lineno <= last
            and around.owner_of(holder) is around.owner_of(declaration.holder)
            for holder, other in declaration.module.calls_named(last_name(call.func))
        )

    def _elsewhere(self, reach: Reach, name: str, node: ast.AST | None, *, launches: bool = False) -> bool | None:
        """Calls by the same name outside the region: True beside the capture, None where it is not known to run."""
        declaration = reach.entered.declaration
        if name in ("<lambda>", "forward", "__call__", "__init__"):
            return False  # called through an object, by its name
        first, last = declaration.line, around.last_line(declaration)
        own = {each.function for each in reach.steps if each is not reach.entered.context}
        home = declaration.module
        others = self._engine.project.modules(self._engine.project.search.mentioning(name), _MAX_FILES)
        far = False
        for module in dict.fromkeys((home, *others)):
            calls = _launches(module, name) if launches else module.calls_named(name)
            for holder, call in calls:
                inside = module is home and first <= call.lineno <= last
                if call is node or inside or (holder is not None and holder in own):
                    continue
                if module is home:
                    return True
                far = True
        return None if far else False


def _only_while_capturing(context: Context, node: ast.Call) -> bool:
    """``if torch.cuda.is_current_stream_capturing(): return fast(x)``: a warm-up goes the other way."""
    for branch in ast.walk(context.node):
        if isinstance(branch, ast.If) and isinstance(branch.test, ast.Call):
            if _calls(context, branch.test, _CAPTURING) and any(
                inner is node for statement in branch.body for inner in ast.walk(statement)
            ):
                return True
    return False


def _calls(context: Context, node: ast.Call, path: str) -> bool:
    fact = context.calls.get(span_of(node))
    return fact is not None and path in fact.callees


def _is_autotuner(callee: str) -> bool:
    return callee.startswith("flashinfer.") and callee.rpartition(".")[2] == "autotune"


def _calls_on(caller: Context, line: int, callee: Context) -> Iterator[ast.Call]:
    """The calls on a line by which a function is entered."""
    for node in ast.walk(caller.node):
        if isinstance(node, ast.Call) and node.lineno == line and callee in caller.enters.get(span_of(node), ()):
            yield node


def _launches(module: Module, name: str) -> Iterator[tuple[FunctionInfo | None, ast.Call]]:
    """``name[grid](...)`` in a module."""
    if not module.holds(f"{name}["):
        return
    for calls in module.uses.all_calls().values():
        for holder, call in calls:
            if isinstance(call.func, ast.Subscript) and last_name(call.func.value) == name:
                yield holder, call
