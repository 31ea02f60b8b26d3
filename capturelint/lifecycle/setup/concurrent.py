"""CG705: graphs that share memory, replayed on several streams or in several threads with nothing between them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from capturelint.findings import Around
from capturelint.lifecycle.life import Lives, Replay
from capturelint.lifecycle.setup.captures import Capture, report
from capturelint.lifecycle.setup.points import Point, ancestors, loops_at, withs_at
from capturelint.lifecycle.setup.shared_memory import share_memory
from capturelint.lifecycle.setup.sizes import names_in
from capturelint.lifecycle.setup.sources import Sources
from capturelint.lifecycle.setup.starts import Start, locked
from capturelint.lifecycle.setup.threads import threads_that_run
from capturelint.model import Confidence, Related
from capturelint.project.syntax import dotted_name, keyword_value, last_name, store_targets, walk_own

_WAITS = ("wait_stream", "wait_event", "synchronize", "wait", "wait_stream_event")
_HELP = "let one replay wait for the other (`wait_stream`), or capture them with pools and inputs of their own"


@dataclass(frozen=True, slots=True)
class _Use:
    """A direct ``graph.replay()``, with the captures whose graph it may be."""

    point: Point
    captures: tuple[Capture, ...]
    #: the stream that a ``with`` block chooses for it
    stream: ast.expr | None

    @property
    def receiver(self) -> ast.expr:
        assert isinstance(self.point.node, ast.Call) and isinstance(self.point.node.func, ast.Attribute)
        return self.point.node.func.value

    @property
    def text(self) -> str:
        return self.point.module.segment(self.receiver, 40)

    @property
    def stream_text(self) -> str:
        return self.point.module.segment(self.stream, 40) if self.stream is not None else "the current stream"


def find(captures: list[Capture], lives: Lives, sources: Sources) -> Iterator[Around]:
    of_reach = {id(capture.reach): capture for capture in captures}
    known: dict[int, tuple[Replay, list[Capture]]] = {}
    for life in lives.all:
        capture = of_reach.get(id(life.reach))
        if capture is None:
            continue
        for replay in life.replays:
            if replay.depth == 0 and last_name(replay.call.func) == "replay":
                known.setdefault(id(replay.call), (replay, []))[1].append(capture)
        yield from _in_threads(capture, life.replays, sources)
    by_root: dict[ast.AST, list[_Use]] = {}
    for replay, owners in known.values():
        point = Point(replay.module, replay.function, replay.call)
        by_root.setdefault(point.root, []).append(_Use(point, tuple(owners), _stream_at(point)))
    for group in by_root.values():
        yield from _on_streams(sorted(group, key=lambda use: use.point.line), sources)


def _stream_at(point: Point) -> ast.expr | None:
    found = None
    for item in withs_at(point):
        call = item.context_expr
        if isinstance(call, ast.Call) and last_name(call.func) in ("stream", "StreamContext") and call.args:
            found = call.args[0]
    return found


# -- streams ---------------------------------------------------------------------------------------------------------


def _on_streams(group: list[_Use], sources: Sources) -> Iterator[Around]:
    for use in group:
        yield from _in_loop(use, sources)
    for index, second in enumerate(group):
        for first in group[:index]:
            if first.stream_text == second.stream_text or _waited(first, second):
                continue
            if _alternatives(first.point, second.point):
                continue
            reason = _shared(first, second, sources)
            if reason:
                yield report(
                    "CG705",
                    second.point,
                    f"replayed on `{second.stream_text}` while `{first.text}` may still run on "
                    f"`{first.stream_text}`; they share {reason}",
                    "no wait in between",
                    Confidence.LIKELY,
                    [*first.captures, *second.captures],
                    help=_HELP,
                    related=[
                        Related(first.point.module.display, first.point.line, "the other replay"),
                        *(capture.related() for capture in dict.fromkeys((*first.captures, *second.captures))),
                    ],
                )
                break


def _shared(first: _Use, second: _Use, sources: Sources) -> str:
    if first.text == second.text:
        return "all their memory: it is one graph"
    for one in first.captures:
        for other in second.captures:
            if share_memory(one, other):
                return "a pool"
    return ""


def _waited(first: _Use, second: _Use) -> bool:
    """Some wait stands between two replays that may order them."""
    between = [
        node
        for node in walk_own(first.point.root)
        if isinstance(node, ast.Call) and first.point.line < node.lineno < second.point.line
    ]
    changed = {
        dotted_name(node.func.value)
        for node in between
        if _records(node)
        and isinstance(node.func, ast.Attribute)
        and (second.stream is None or ast.dump(node.func.value) != ast.dump(second.stream))
    }
    return any(
        last_name(node.func) in _WAITS
        and not (
            first.stream is not None
            and second.stream is not None
            and _only_forks(node, second.stream)
            and first.stream_text not in {second.point.module.segment(each, 40) for each in node.args}
            and dotted_name(node.args[0]) not in changed
        )
        for node in between
    )


def _only_forks(wait: ast.Call, stream: ast.expr) -> bool:
    """``stream.wait_stream(main)``: the replay's own stream begins after another, which says nothing of a third."""
    if last_name(wait.func) not in ("wait_stream", "wait_event") or not isinstance(wait.func, ast.Attribute):
        return False
    return bool(wait.args) and ast.dump(wait.func.value) == ast.dump(stream)


def _records(node: ast.Call) -> bool:
    return last_name(node.func) in ("record", "record_event", "wait_stream", "wait_event")


def _alternatives(first: Point, second: Point) -> bool:
    """The two stand on different sides of an ``if``."""
    mine, theirs = ancestors(first.root, first.node), ancestors(second.root, second.node)
    for one, other, above in zip(mine[1:], theirs[1:], mine, strict=False):
        if one is not other:
            return isinstance(above, ast.If) and (one in above.body) != (other in above.body)
    return False


def _in_loop(use: _Use, sources: Sources) -> Iterator[Around]:
    """``for stream, graph in pairs: with torch.cuda.stream(stream): graph.replay()``."""
    if use.stream is None:
        return
    for loop in loops_at(use.point):
        names = names_in(loop.target)
        if isinstance(loop, ast.comprehension) or not names_in(use.stream) & names:
            continue
        if _waits_in_loop(loop, use.stream):
            continue
        same = not names_in(use.receiver) & names
        if not same and not any(share_memory(one, one) for one in use.captures):
            continue
        reason = "it is one graph each time" if same else "the graphs share a pool"
        yield report(
            "CG705",
            use.point,
            f"each round replays on another stream, with no wait in between; {reason}",
            "several replays at once",
            Confidence.LIKELY,
            use.captures,
            help=_HELP,
            related=[
                Related(use.point.module.display, loop.iter.lineno, "once in each round of this loop"),
                *(capture.related() for capture in use.captures),
            ],
        )
        return


def _waits_in_loop(loop: ast.For | ast.AsyncFor, stream: ast.expr) -> bool:
    """Some wait in the loop may order its rounds: all but a fork of the round's stream from what stays the same."""
    varying = names_in(loop.target)
    waits = []
    for node in (inner for statement in loop.body for inner in ast.walk(statement)):
        for target in store_targets(node):
            varying |= names_in(target)
        if isinstance(node, ast.Call) and last_name(node.func) in _WAITS:
            waits.append(node)
        if isinstance(node, ast.Call) and _records(node) and isinstance(node.func, ast.Attribute):
            if ast.dump(node.func.value) != ast.dump(stream):
                varying |= names_in(node.func.value)
    return any(not _only_forks(wait, stream) or names_in(wait.args[0]) & varying for wait in waits)


# -- threads ---------------------------------------------------------------------------------------------------------


def _in_threads(capture: Capture, replays: tuple[Replay, ...], sources: Sources) -> Iterator[Around]:
    points = {
        replay.function: Point(replay.module, replay.function, replay.call)
        for replay in reversed(replays)
        if replay.function is not None
    }
    if not points or any(locked(point) for point in points.values()):
        return
    capturing = {point.function for path in capture.paths for point in path}
    for start in threads_that_run(sources, {function for function in points if function is not None}):
        if not start.many or start.target in capturing or _own_graph(start, points[start.target]):
            continue
        where = next(replay for replay in replays if replay.depth == 0 or replay.function is start.target)
        direct = Point(where.module, where.function, where.call)
        yield report(
            "CG705",
            direct,
            f"`{start.target.name}` runs in several threads, which replay one graph at the same time",
            "replayed by several threads",
            Confidence.LIKELY,
            [capture],
            help="replay under one lock, together with filling the inputs and copying the outputs; or a graph for each",
            related=[
                Related(start.point.module.display, start.point.line, "the threads begin here"),
                capture.related(),
            ],
        )
        return


def _own_graph(start: Start, point: Point) -> bool:
    """Each thread is given another object, which it then replays."""
    call, node = start.point.node, point.node
    if not isinstance(call, ast.Call) or not isinstance(node, ast.Call):
        return True
    roots = names_in(node.func)
    parameters = [each.arg for each in start.target.parameters()]
    varying = {name for loop in loops_at(start.point) for name in names_in(loop.target)}
    given = keyword_value(call, "args")
    passed = list(given.elts) if isinstance(given, (ast.Tuple, ast.List)) else list(call.args[1:])
    if start.target.owner is not None and not start.target.is_static:
        bound = next((k.value for k in call.keywords if k.arg == "target"), call.args[0] if call.args else None)
        if bound is not None and names_in(bound) & varying:
            return True
        parameters = parameters[1:]
    for name, value in zip(parameters, passed, strict=False):
        if name in roots and (names_in(value) & varying or last_name(call.func) == "map"):
            return True
    return last_name(call.func) == "map" and bool(roots & set(parameters))
