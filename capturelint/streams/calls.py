"""What single calls do to the state of the streams: waits, records, changes of the current stream, launches."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TypeGuard

from capturelint.streams import state as algebra
from capturelint.streams.keys import CAPTURE, Key, key_of, streams_of
from capturelint.streams.report import Report
from capturelint.streams.state import Spot, State
from capturelint.streams.work import Work, event_of, is_stream_context
from capturelint.values import identity
from capturelint.values.domain import MISSING, ExternalInstance, Host, Value, options
from capturelint.values.facts import CallFact, Context, span_of
from capturelint.values.identity import Place

_BY_HANDLE = frozenset({"torch.cuda.ExternalStream", "torch.cuda.get_stream_from_external"})
_RAW_DEFAULTS = ("stream", "cuda_stream", "stream_ptr", "stream_handle", "raw_stream")


class Calls:
    """``captured_on``: streams that are the capturing one, as the region names them.

    ``asked``: where regions ask for the current stream at each run.
    """

    def __init__(self, work: Work, report: Report, captured_on: frozenset[Key], asked: frozenset[Place]) -> None:
        self._work = work
        self._report = report
        self._captured_on = captured_on
        self._asked = asked

    # -- names of streams --------------------------------------------------------------------------------------------

    def keys(self, value: Value | None, state: State) -> list[Key | None]:
        bound = state.bindings()
        found = [key_of(each, bound) if each is not None else None for each in streams_of(value)]
        found = [None if key is not None and key.at in self._asked else key for key in found]
        return list(dict.fromkeys(CAPTURE if key in self._captured_on else key for key in found))

    def current(self, value: Value | None, state: State, spot: Spot) -> State:
        """The state inside ``with value:``."""
        if not is_stream_context(value):
            return state
        found: list[Key | None] = []
        for option in options(value):
            if isinstance(option, ExternalInstance) and option.cls == "torch.cuda.StreamContext":
                stream = option.argument("stream")
                if isinstance(stream, Host):
                    found.append(state.current)  # torch.cuda.stream(None) changes nothing
                else:
                    found.extend(self.keys(stream, state))
            elif is_stream_context(option):
                found.extend(self.keys(option, state))
            else:
                found.append(None)
        chosen = _one_of(found)
        return state if chosen == state.current else replace(state, current=chosen, entered=spot)

    # -- calls -------------------------------------------------------------------------------------------------------

    def call(self, node: ast.Call, state: State, context: Context) -> State:
        fact = context.calls.get(span_of(node))
        if fact is None:
            return state  # never made, as far as is known
        spot = (context, span_of(node))
        names = {callee.rpartition(".")[2] for callee in fact.callees}
        receiver = _receiver(node, fact, context)
        self._handles(node, fact, state, context)
        if names & {"wait_stream", "wait_event"} and receiver is not None:
            source = fact.arguments[0] if fact.arguments else next((v for _, v in fact.keywords), None)
            return self._wait(receiver, source, state, spot)
        if "wait" in names and event_of(receiver):
            return self._wait(self._stream_given(fact), receiver, state, spot)
        if "record" in names and event_of(receiver):
            return self._record(receiver, self._stream_given(fact), state)
        if "record_event" in names and receiver is not None:
            return self._record(context.values.get(span_of(node)), receiver, state)
        if "set_stream" in names and fact.arguments:
            return replace(state, current=_one_of(self.keys(fact.arguments[0], state)), entered=spot)
        if "enter_context" in names and fact.arguments:
            return self.current(fact.arguments[0], state, spot)
        if "__enter__" in names:
            return self.current(receiver, state, spot)
        if "__exit__" in names and is_stream_context(receiver):
            return replace(state, current=CAPTURE, entered=None)
        made = self._made(node, state, context)
        if made is not None:
            return made
        state = self._escapes(fact, state)
        return self.launch(state, spot) if self._work.in_call(context, node, fact) else state

    def enters(self, node: ast.Call, callee: Context, state: State, context: Context) -> State:
        """A call of a function that does nothing with streams: what it launches goes to the current one."""
        if state.current in (CAPTURE, None) or not self._work.in_context(callee):
            return state
        return self.launch(state, (context, span_of(node)))

    def returned(self, node: ast.Call, state: State, context: Context) -> State:
        """A helper of the project's own that asks for the current stream, or keeps it."""
        fact = context.calls.get(span_of(node))
        if fact is None:
            return state
        named = any(_gives_current(callee) for callee in fact.callees)
        for stream in _streams_in(context.values.get(span_of(node))):
            place = identity.place_of(stream)
            if place is not None and (named or place in self._asked):
                state = state.bind(place, state.current)
        return state

    def operator(self, node: ast.expr, states: tuple[State, ...], context: Context) -> tuple[State, ...]:
        if all(state.current in (CAPTURE, None) for state in states) or not self._work.in_operator(context, node):
            return states
        return tuple(self.launch(state, (context, span_of(node))) for state in states)

    def launch(self, state: State, spot: Spot) -> State:
        """Something is launched on the current stream."""
        stream, where = state.current, state.entered or spot
        if stream is None or stream == CAPTURE:
            return state
        if stream.role in (identity.DEFAULT, identity.CURRENT):
            self._report.left_out(stream, where)
            return state
        if stream not in state.members:
            self._report.unforked(stream, state, where)
            return replace(state, members=state.members | {stream}, reported=state.reported | {stream})
        if stream in state.reported:
            return state
        return algebra.work(state, stream, where)

    # -- waits -------------------------------------------------------------------------------------------------------

    def _stream_given(self, fact: CallFact) -> Value | None:
        """The stream of ``event.record(stream)``; None stands for the current one."""
        given = fact.arguments[0] if fact.arguments else next((v for _, v in fact.keywords), None)
        return None if isinstance(given, Host) else given

    def _keys_or_current(self, value: Value | None, state: State) -> list[Key | None]:
        return [state.current] if value is None else self.keys(value, state)

    def _wait(self, waiter: Value | None, source: Value | None, state: State, spot: Spot) -> State:
        waiters, sources = self._keys_or_current(waiter, state), self.keys(source, state)
        sources = [None if key is not None and key.role == identity.CURRENT else key for key in sources]
        known = [key for key in waiters if key is not None]
        if None in waiters:
            known = [*known, CAPTURE]  # it may be the capturing stream that waits
            state = replace(state, loose=True)
        if None in sources:
            return algebra.wait_for_unknown(state, known)
        found = [key for key in sources if key is not None]
        if not any(key in state.members for key in found) and None not in waiters:
            if all(key in state.members for key in known):
                self._outside(found, source, state, spot)
                return state
        unsettled = [key for key in found if key not in state.members and key not in state.made]
        if len(unsettled) == len(found):
            # it may be that what it waits for is part of the capture in a way that is not seen
            state = replace(state, doubted=state.doubted | {key for key in known if key not in state.members})
        return algebra.wait(state, known, found)

    def _outside(self, keys: list[Key], source: Value | None, state: State, spot: Spot) -> None:
        """A member of the capture waits for something that is no part of it."""
        if event_of(source) and any(key in state.made for key in keys):
            return  # made in the region and not recorded yet: such a wait is over at once
        if any(_external(option) for option in options(source)):
            return
        self._report.waits_outside(keys, state, spot, event=event_of(source))

    def _record(self, event: Value | None, stream: Value | None, state: State) -> State:
        events, streams = self.keys(event, state), self._keys_or_current(stream, state)
        known = [key for key in events if key is not None]
        if None in streams:
            return replace(algebra.wait_for_unknown(state, known), recorded=state.recorded | set(known))
        sources = [key for key in streams if key is not None]
        return replace(algebra.wait(state, known, sources), recorded=state.recorded | set(known))

    # -- what is made ------------------------------------------------------------------------------------------------

    def _made(self, node: ast.Call, state: State, context: Context) -> State | None:
        """Asking for the current stream, or making a stream or an event; None for any other call."""
        here = (context.module.display, node.lineno, node.col_offset)
        for stream in streams_of(context.values.get(span_of(node))):
            if stream is None or identity.place_of(stream) != here:
                continue
            if identity.role_of(stream) == identity.CURRENT:
                return state.bind(here, state.current) if here in self._asked else state
            if identity.role_of(stream) == identity.MADE:
                key = Key(identity.MADE, here)
                members = state.members if state.has_worked(key) else state.members - {key}
                return replace(state, made=state.made | {key}, members=members)
        return None

    def _escapes(self, fact: CallFact, state: State) -> State:
        """Streams that third-party code gets: it may fork and join them, or begin a capture on them."""
        if all(callee.startswith(("torch.", "builtins.")) for callee in fact.callees):
            return state
        given = (*fact.arguments, *(value for _, value in fact.keywords))
        found: set[Key] = set()
        for option in (option for value in given for option in options(value)):
            stream = option.argument("stream") if _is_handle(option) else option
            if isinstance(stream, ExternalInstance) and stream.cls in identity.STREAMS:
                found.update(key for key in self.keys(stream, state) if key is not None and key.exact)
        return replace(state, members=state.members | found, reported=state.reported | found) if found else state

    def _handles(self, node: ast.Call, fact: CallFact, state: State, context: Context) -> None:
        """A raw handle of the default stream, or of one that was current before, given to a launch."""
        if any(callee in _BY_HANDLE for callee in fact.callees):
            return
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            for option in options(context.values.get(span_of(argument))):
                if _is_handle(option):
                    for key in self.keys(option.argument("stream"), state):
                        if key is not None and key.role in (identity.DEFAULT, identity.CURRENT):
                            self._report.left_out(key, (context, span_of(argument)), handle=True)
        if not (fact.launch or span_of(node) in context.unresolved):
            return
        for keyword in node.keywords:
            value = keyword.value
            if keyword.arg in _RAW_DEFAULTS and isinstance(value, ast.Constant) and value.value == 0:
                if value.value is not False:
                    self._report.left_out(Key(identity.DEFAULT), (context, span_of(value)), handle=True)


def _gives_current(callee: str) -> bool:
    """``current_stream()`` and the like of a project's own, which may keep what ``set_stream`` made current."""
    name = callee.rpartition(".")[2].lower()
    return "current" in name and "stream" in name


def _streams_in(value: Value | None) -> list[ExternalInstance]:
    """The streams that a value may be, or be the handle of."""
    found: list[ExternalInstance] = []
    for option in options(value):
        stream = option.argument("stream") if _is_handle(option) else option
        found.extend(each for each in streams_of(stream) if each is not None)
    return found


def _one_of(keys: list[Key | None]) -> Key | None:
    """The stream that several keys stand for where it is one of side streams: what is done to one is done to all."""
    found = set(keys)
    if len(found) == 1:
        return keys[0]
    sides = [key for key in found if key is not None and key.role in (identity.MADE, identity.DECLARED)]
    return min(sides, key=lambda key: (not key.exact, str(key.at))) if len(sides) == len(found) else None


def _receiver(node: ast.Call, fact: CallFact, context: Context) -> Value | None:
    """What a method is called on: every object that it may be, where the fact keeps one of them."""
    known = context.values.get(span_of(node.func.value)) if isinstance(node.func, ast.Attribute) else None
    return known if known is not None else fact.receiver


def _is_handle(value: Value) -> TypeGuard[ExternalInstance]:
    return isinstance(value, ExternalInstance) and value.cls == identity.HANDLE


def _external(event: Value) -> bool:
    """An event that is made to be waited for across captures."""
    external = event.argument("external") if isinstance(event, ExternalInstance) else None
    return isinstance(external, Host) and (external.const is MISSING or bool(external.const))
