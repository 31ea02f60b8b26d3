"""Follows a region's statements in order, over every way through them, with the state of all streams."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from capturelint.project.definitions import ClassInfo
from capturelint.project.syntax import children, walk_own
from capturelint.streams import conditions
from capturelint.streams.calls import Calls
from capturelint.streams.state import State, merged
from capturelint.streams.work import is_stream_context
from capturelint.values.domain import ExternalInstance, options
from capturelint.values.facts import Context, span_of

States = tuple[State, ...]
Then = Callable[[States], States]

#: ways that go on side by side; more become one
_MAX_STATES = 8
#: functions that are run, in any state, for one region; what is called beyond that is passed over
_MAX_RUNS = 2_000
_ROUNDS = 2


@dataclass(eq=False, slots=True)
class Activation:
    """A function (or the region's block) as it is walked. ``at_yield`` is what runs where a generator yields."""

    context: Context
    at_yield: Then | None = None

    @property
    def receiver(self) -> ClassInfo | None:
        return self.context.function.owner if self.context.function is not None else None


class Walk:
    """``calls`` says what calls do; a walk gives it the functions that they enter."""

    def __init__(self, calls: Calls, relevant: set[Context]) -> None:
        self._calls = calls
        self._relevant = relevant
        self._memo: dict[tuple[Context, State], States] = {}
        self._runs = 0

    def region(self, context: Context, body: list[ast.stmt] | None) -> States:
        """The states in which a region ends: a block's, or those of what is called in its place."""
        self._runs = 0
        start: States = (State(),)
        if body is not None:
            return self.block(body, start, Activation(context))
        entered = [each for found in context.enters.values() for each in found]
        return few(state for each in entered for state in self.enter(each, start))

    # -- functions ---------------------------------------------------------------------------------------------------

    def enter(self, context: Context, states: States, at_yield: Then | None = None) -> States:
        """Runs a function; a generator's body runs up to its end, with ``at_yield`` at each of its yields."""
        found: list[State] = []
        for state in states:
            key = (context, state)
            if at_yield is not None:
                found.extend(self._run(context, state, at_yield))
                continue
            if key not in self._memo:
                self._memo[key] = (state,)  # while a recursion is followed
                self._memo[key] = self._run(context, state, None)
            found.extend(self._memo[key])
        return few(found)

    def _run(self, context: Context, state: State, at_yield: Then | None) -> States:
        activation = Activation(context, at_yield)
        info = context.function
        self._runs += 1
        if info is None or self._runs > _MAX_RUNS:
            return (replace(state, loose=True),)
        left = self.block(info.body, (state,), activation)
        return few(conditions.forget(each.leave(""), context) for each in left)

    # -- statements --------------------------------------------------------------------------------------------------

    def block(self, body: list[ast.stmt], states: States, frame: Activation) -> States:
        left: list[State] = []
        for statement in body:
            going = tuple(state for state in states if not state.leaving)
            left.extend(state for state in states if state.leaving)
            if not going:
                return few(left)
            states = few(self._statement(statement, going, frame))
        return few((*left, *states))

    def _statement(self, node: ast.stmt, states: States, frame: Activation) -> States:
        if isinstance(node, ast.If):
            return self._if(node, states, frame)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            return self._with(node, list(node.items), states, frame)
        if isinstance(node, (ast.For, ast.AsyncFor)):
            return self._loop(node, self.expression(node.iter, states, frame), frame)
        if isinstance(node, ast.While):
            return self._loop(node, states, frame)
        if isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
            return self._try(node, states, frame)  # type: ignore[arg-type]
        if isinstance(node, ast.Match):
            return self._match(node, states, frame)
        if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
            states = self.expression(getattr(node, "value", None), states, frame)
            return tuple(state.leave(type(node).__name__.lower()) for state in states)
        if isinstance(node, ast.Raise):
            return ()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return states
        for child in children(node):
            if isinstance(child, ast.expr):
                states = self.expression(child, states, frame)
        if isinstance(node, ast.AugAssign):
            return self._calls.operator(node.target, states, frame.context)
        if isinstance(node, ast.Assign):
            for target in node.targets:
                states = tuple(
                    conditions.bind(target, node.value, state, frame.context, frame.receiver) for state in states
                )
        return states

    def _if(self, node: ast.If, states: States, frame: Activation) -> States:
        states = self.expression(node.test, states, frame)
        taken, other = self._split(node.test, states, frame)
        return (*self.block(node.body, taken, frame), *self.block(node.orelse, other, frame))

    def _split(self, test: ast.expr, states: States, frame: Activation) -> tuple[States, States]:
        """The states that go on where a test holds, and those that go on where it does not."""
        sides: dict[bool, list[State]] = {True: [], False: []}
        decided = frame.context.decided.get(span_of(test))
        for state in states:
            known = decided
            if known is None:
                known = conditions.known(test, state, frame.context, frame.receiver)
            if known is not None:
                sides[known].append(state)
                continue
            for side, kept in sides.items():
                kept.append(conditions.assume(test, side, state, frame.context, frame.receiver))
        return tuple(sides[True]), tuple(sides[False])

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, states: States, frame: Activation) -> States:
        """A loop runs once or more often: fork and join in two loops go together."""
        ended: list[State] = []
        for _ in range(_ROUNDS):
            if isinstance(node, ast.While):
                states = self.expression(node.test, states, frame)
            else:
                nothing = ast.Constant(value=...)
                states = tuple(
                    conditions.bind(target, nothing, state, frame.context, frame.receiver)
                    for state in states
                    for target in [node.target]
                )
            states = self.block(node.body, states, frame)
            ended.extend(each.leave("") for each in states if each.leaving == "break")
            ended.extend(each for each in states if each.leaving == "return")
            states = few(each.leave("") for each in states if each.leaving in ("", "continue"))
            ended.extend(states)
        going = tuple(state for state in few(ended) if not state.leaving)
        left = tuple(state for state in ended if state.leaving)
        return few((*self.block(node.orelse, going, frame), *left))

    def _try(self, node: ast.Try, states: States, frame: Activation) -> States:
        """Handlers are for what goes wrong, and then the capture is lost anyway."""
        states = self.block([*node.body, *node.orelse], states, frame)
        return self._always(lambda each: self.block(node.finalbody, each, frame), states)

    def _always(self, then: Then, states: States) -> States:
        """Runs what runs however a block is left, and goes on leaving it."""
        found: list[State] = []
        for state in states:
            after = then((state.leave(""),))
            found.extend(each.leave(each.leaving or state.leaving) for each in after)
        return few(found)

    def _match(self, node: ast.Match, states: States, frame: Activation) -> States:
        states = self.expression(node.subject, states, frame)
        found = list(states)
        for case in node.cases:
            found.extend(self.block(case.body, states, frame))
        return few(found)

    # -- with --------------------------------------------------------------------------------------------------------

    def _with(
        self, node: ast.With | ast.AsyncWith, items: list[ast.withitem], states: States, frame: Activation
    ) -> States:
        if not items:
            return self.block(node.body, states, frame)
        first, *rest = items
        return self._managed(first.context_expr, states, frame, lambda each: self._with(node, rest, each, frame))

    def _managed(self, manager: ast.expr, states: States, frame: Activation, then: Then) -> States:
        if isinstance(manager, ast.IfExp):
            states = self.expression(manager.test, states, frame)
            taken, other = self._split(manager.test, states, frame)
            return few(
                (*self._managed(manager.body, taken, frame, then), *self._managed(manager.orelse, other, frame, then))
            )
        entered = frame.context.enters.get(span_of(manager), [])
        generators = [each for each in entered if each in self._relevant and _is_generator(each)]
        if generators:
            for child in children(manager):
                states = self.expression(child, states, frame) if isinstance(child, ast.expr) else states
            return few(
                state
                for each in generators
                for state in self._always(lambda left: left, self._generated(each, states, then))
            )
        states = self.expression(manager, states, frame)
        for each in self._named(entered, "__enter__"):
            states = self.enter(each, states)
        value = frame.context.values.get(span_of(manager))
        if is_stream_context(value) or _is_stack(value):
            found: list[State] = []
            for state in states:
                inside = self._calls.current(value, state, (frame.context, span_of(manager)))
                found.extend(replace(each, current=state.current, entered=state.entered) for each in then((inside,)))
            states = few(found)
        else:
            states = then(states)
        for each in self._named(entered, "__exit__"):
            states = self._always(lambda left, each=each: self.enter(each, left), states)  # type: ignore[misc]
        return states

    def _generated(self, context: Context, states: States, then: Then) -> States:
        """A context manager written as a generator: its body up to the yield, the block, and the rest of its body."""
        left: list[State] = []

        def at_yield(going: States) -> States:
            after = then(going)
            left.extend(state for state in after if state.leaving)
            # however the block is left, the generator goes on
            return few(state.leave("") for state in after)

        after = self.enter(context, states, at_yield)
        ways = {state.leaving for state in left}
        if len(ways) == 1 and len(left) >= len(after):
            return tuple(state.leave(next(iter(ways))) for state in after)
        return after

    def _named(self, contexts: list[Context], name: str) -> list[Context]:
        return [
            each
            for each in contexts
            if each in self._relevant and each.function is not None and each.function.name == name
        ]

    # -- expressions -------------------------------------------------------------------------------------------------

    def expression(self, node: ast.expr | None, states: States, frame: Activation) -> States:
        if node is None or isinstance(node, (ast.Lambda, ast.Constant, ast.Name)) or not states:
            return states
        if _launches_nothing(node):
            return states
        if isinstance(node, ast.IfExp):
            states = self.expression(node.test, states, frame)
            taken, other = self._split(node.test, states, frame)
            return few((*self.expression(node.body, taken, frame), *self.expression(node.orelse, other, frame)))
        if isinstance(node, ast.BoolOp):
            states = self.expression(node.values[0], states, frame)
            for operand in node.values[1:]:
                states = few((*states, *self.expression(operand, states, frame)))
            return states
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            return self._comprehension(node, states, frame)
        for child in children(node):
            if isinstance(child, ast.keyword):
                child = child.value
            if isinstance(child, ast.expr):
                states = self.expression(child, states, frame)
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return frame.at_yield(states) if frame.at_yield is not None else states
        if isinstance(node, ast.Call):
            return self._call(node, states, frame)
        if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare)):
            return self._calls.operator(node, states, frame.context)
        return states

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, states: States, frame: Activation
    ) -> States:
        for generator in node.generators:
            states = self.expression(generator.iter, states, frame)
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for part in parts:
            states = self.expression(part, states, frame)
        return states

    def _call(self, node: ast.Call, states: States, frame: Activation) -> States:
        context = frame.context
        managers = ("__enter__", "__exit__")
        entered = [
            each
            for each in context.enters.get(span_of(node), ())
            if each.function is not None and each.function.name not in managers
        ]
        if not entered:
            return few(self._calls.call(node, state, context) for state in states)
        found: list[State] = []
        for each in entered:
            if each in self._relevant:
                found.extend(self.enter(each, states))
            else:
                found.extend(self._calls.enters(node, each, state, context) for state in states)
        return few(self._calls.returned(node, state, context) for state in found)


def few(states: Iterable[State]) -> States:
    """Each state once, whatever was assumed on the way to it, and no more than a handful of them."""
    found = tuple(states)
    if len(found) < 2:
        return found
    alike: dict[tuple[object, ...], list[State]] = {}
    for state in dict.fromkeys(found):
        alike.setdefault(state.of_streams(), []).append(state)
    found = tuple(group[0] if len(group) == 1 else merged(group) for group in alike.values())
    if len(found) <= _MAX_STATES:
        return found
    ways: dict[str, list[State]] = {}
    for state in found:
        ways.setdefault(state.leaving, []).append(state)
    return tuple(merged(group) for group in ways.values())


@lru_cache(maxsize=65536)
def _launches_nothing(node: ast.expr) -> bool:
    """Whether an expression has no calls and no operators: most have none."""
    busy = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Yield, ast.YieldFrom)
    return not any(isinstance(each, busy) for each in ast.walk(node))


@lru_cache(maxsize=65536)
def _is_generator(context: Context) -> bool:
    return context.function is not None and any(
        isinstance(node, (ast.Yield, ast.YieldFrom)) for node in walk_own(context.function.node)
    )


def _is_stack(value: object) -> bool:
    return any(
        isinstance(option, ExternalInstance) and option.cls.endswith("ExitStack")
        for option in options(value)  # type: ignore[arg-type]
    )
