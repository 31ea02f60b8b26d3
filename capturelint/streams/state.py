"""What is known of all streams at one point of a captured region, and how waiting and working change it.

A stream is a member of the capture once it has waited for a member. Work on a stream is joined while some other stream
has waited for all of it; new work on the stream has to be waited for anew. Events stand for a stream at one moment.
Where the ways through the code meet, several states go on side by side; past a bound they become one, in favour of
the code: what was joined on one way counts as joined.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from capturelint.streams.keys import CAPTURE, Key
from capturelint.values.facts import Context, NodeSpan
from capturelint.values.identity import Place

#: code of a function in one of its contexts
Spot = tuple[Context, NodeSpan]


@dataclass(frozen=True, slots=True)
class Assumption:
    """A test was met with this result; ``owner`` says whose names it speaks of."""

    owner: object
    text: str
    holds: bool


@dataclass(frozen=True, slots=True)
class State:
    """``current`` is None where it is not known which stream is current; ``entered`` says where it was made current."""

    current: Key | None = CAPTURE
    entered: Spot | None = None
    members: frozenset[Key] = frozenset({CAPTURE})
    #: (who has waited, for whom): all work of the second is done before the first goes on
    covered: frozenset[tuple[Key, Key]] = frozenset()
    #: streams with captured work, and where the first of it was put there
    worked: frozenset[tuple[Key, Spot]] = frozenset()
    #: streams and events that the region made, events that it recorded
    made: frozenset[Key] = frozenset()
    recorded: frozenset[Key] = frozenset()
    #: streams that were reported as not forked: nothing more is said of them
    reported: frozenset[Key] = frozenset()
    #: streams that wait for something that may be part of the capture
    doubted: frozenset[Key] = frozenset()
    bound: frozenset[tuple[Place, Key | None]] = frozenset()
    assumed: frozenset[Assumption] = frozenset()
    #: a stream that nothing is known of was forked or joined
    loose: bool = False
    #: how the way leaves its block: ``return``, ``break``, ``continue``; empty while it goes on
    leaving: str = ""

    def leave(self, how: str) -> State:
        """The same way, leaving its block by ``how``, or going on where that is empty."""
        return self if self.leaving == how else replace(self, leaving=how)

    def of_streams(self) -> tuple[object, ...]:
        """All but what was assumed and bound on the way."""
        return (
            *(self.current, self.entered, self.members, self.covered, self.worked, self.made),
            *(self.recorded, self.reported, self.doubted, self.loose, self.leaving),
        )

    def bindings(self) -> dict[Place, Key | None]:
        return dict(self.bound)

    def bind(self, place: Place, key: Key | None) -> State:
        kept = frozenset(pair for pair in self.bound if pair[0] != place)
        return replace(self, bound=kept | {(place, key)})

    def waits_for(self, holder: Key) -> frozenset[Key]:
        """The streams whose work is done before ``holder`` goes on, itself among them."""
        return frozenset({holder, *(stream for who, stream in self.covered if who == holder)})

    def has_worked(self, key: Key) -> bool:
        return any(stream == key for stream, _ in self.worked)

    def unjoined(self) -> list[tuple[Key, Spot]]:
        """The streams with work that the capturing stream has not waited for."""
        joined = self.waits_for(CAPTURE)
        return [(stream, spot) for stream, spot in self.worked if stream not in joined]


def wait(state: State, waiters: Iterable[Key], sources: Iterable[Key]) -> State:
    """``waiters`` go on once ``sources`` are done; who waits for a member of the capture becomes one."""
    sources = list(sources)
    done = {stream for source in sources for stream in state.waits_for(source)}
    captured = any(source in state.members for source in sources)
    covered, members = set(state.covered), set(state.members)
    for waiter in waiters:
        covered.update((waiter, stream) for stream in done)
        if captured:
            members.add(waiter)
    return replace(state, covered=frozenset(covered), members=frozenset(members))


def wait_for_unknown(state: State, waiters: Iterable[Key]) -> State:
    """``waiters`` wait for something unknown: perhaps for all that was put on any stream."""
    done = {stream for stream, _ in state.worked}
    waiters = list(waiters)
    pairs = {(waiter, stream) for waiter in waiters for stream in done}
    return replace(state, covered=state.covered | pairs, members=state.members | set(waiters), loose=True)


def work(state: State, stream: Key, spot: Spot) -> State:
    """Something is launched on a side stream that is a member."""
    covered = frozenset(pair for pair in state.covered if pair[1] != stream or pair[0] == stream)
    worked = state.worked if state.has_worked(stream) else state.worked | {(stream, spot)}
    return replace(state, covered=covered, worked=worked)


def merged(states: Iterable[State]) -> State:
    """One state for many, in favour of the code."""
    found = list(states)
    first = found[0]
    bound = {place: key for state in found for place, key in state.bound}
    worked = {stream: spot for state in found for stream, spot in state.worked}
    return State(
        first.current if all(state.current == first.current for state in found) else None,
        first.entered,
        frozenset(key for state in found for key in state.members),
        frozenset(pair for state in found for pair in state.covered),
        frozenset(worked.items()),
        frozenset(key for state in found for key in state.made),
        frozenset(key for state in found for key in state.recorded),
        frozenset(key for state in found for key in state.reported),
        frozenset(key for state in found for key in state.doubted),
        frozenset(bound.items()),
        frozenset.intersection(*(state.assumed for state in found)),
        any(state.loose for state in found),
        first.leaving,
    )
