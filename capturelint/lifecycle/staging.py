"""CG203, around replay: a pinned buffer is written on the host while a copy of the step before may still read it.

A step is the body of a loop that replays, with the project's functions that it calls, or a function that replays and
is called from outside of the project. In it, or in the graph, a
``non_blocking`` copy reads the buffer; the host writes the buffer; and nothing waits for the GPU.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from capturelint.findings import Around
from capturelint.lifecycle import around
from capturelint.lifecycle.life import Life, Lives, Replay
from capturelint.lifecycle.order import always_leaves
from capturelint.lifecycle.places import Origins, Place
from capturelint.model import Confidence, Related
from capturelint.passes.hazard import Hazard
from capturelint.passes.unit import Support
from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import CHILDLESS, children, contains, last_name, walk_all, walk_own
from capturelint.values.changing import constructs
from capturelint.values.domain import Device, Function, Tensor, device_confidence, options
from capturelint.values.engine import Engine
from capturelint.values.facts import NodeSpan, span_of

_MAX_DEPTH = 3
#: what a step's writes, copies and waits are
_TELLING = (ast.Call, ast.Assign, ast.AugAssign)
_REPLAYS = "replay"
_WRITES = frozenset(("copy_", "fill_", "zero_", "random_", "uniform_", "normal_"))
#: what makes the host wait until the GPU is done, whatever it is called on
_WAITS = frozenset(("synchronize", "item", "tolist", "cpu", "query", "nonzero", "barrier", "block_until_ready"))
_NUMBERS = frozenset(("int", "float", "bool"))


@dataclass(frozen=True, eq=False, slots=True)
class _Line:
    """A node that a step runs, with the function that it stands in."""

    module: Module
    function: FunctionInfo | None
    node: ast.AST


def find(engine: Engine, lives: Lives) -> Iterator[Around]:
    if not engine.project.search.mentioning("pin_memory"):
        return
    found: dict[tuple[str, NodeSpan], Around] = {}
    known: dict[tuple[object, ...], list[_Step]] = {}  # many graphs are replayed by one call
    for life in lives.all:
        if not life.is_block:
            continue
        captured = _captured_sources(life)
        for replay in life.replays:
            key_of_steps = (replay.module, replay.function, id(replay.call), replay.depth == 0)
            if key_of_steps not in known:
                known[key_of_steps] = [
                    *_steps(engine, replay),
                    *_calls(engine, lives.origins, replay),
                    *_afterwards(engine, replay),
                ]
            for before, lines, sure in known[key_of_steps]:
                for write, copy, confidence in _races(engine, lives.origins, before, lines, captured):
                    key = (write.module.display, span_of(write.node))
                    if key not in found:
                        found[key] = _report(life, write, copy, min(sure, confidence))
    yield from found.values()


def _report(life: Life, write: _Line, copy: _Line, sure: Confidence) -> Around:
    text = write.module.segment(write.node, 48)
    hazard = Hazard(
        "CG203",
        around.span(write.module, write.node),
        f"`{text}` is written on the host while the copy of the step before may still read it: nothing waits for that",
        "overwritten too early",
        Support(sure, ()),
        help="wait before writing (`event.synchronize()` on an event recorded after the copy), or use buffers in turn",
        related=(Related(copy.module.display, getattr(copy.node, "lineno", 1), "read here, later, by the GPU"),),
    )
    scope = write.function.qualname if write.function is not None else ""
    return Around(write.module, scope, hazard, (life.reach,))


#: what ran before, what runs and may write too early, and how sure it is that a replay is what it runs after
_Step = tuple[list[_Line], list[_Line], Confidence]


def _steps(engine: Engine, replay: Replay) -> Iterator[_Step]:
    """The loops around a replay, each with all that one round of it runs."""
    holder: ast.AST = replay.function.node if replay.function is not None else replay.module.tree
    for loop in around.loops_around(holder, replay.call):
        lines: list[_Line] = []
        seen: dict[FunctionInfo, int] = {}
        for statement in loop.body:
            _collect(engine, _Line(replay.module, replay.function, statement), replay.call, lines, 0, seen)
        yield [], lines, Confidence.CERTAIN if replay.depth == 0 else Confidence.LIKELY


def _calls(engine: Engine, origins: Origins, replay: Replay) -> Iterator[_Step]:
    """A function that replays and that nobody in view calls, as a step: who calls it again may not have waited.

    Only the graph's own copies count here. A copy that the function makes by itself is a common thing to do where
    callers wait for each result, and nothing in view says whether they do.
    """
    function = replay.function
    if function is None or constructs(function, set()) or isinstance(function.node, ast.Lambda):
        return
    if any(around.loops_around(function.node, replay.call)) or origins.callers(function):
        return
    lines: list[_Line] = []
    for statement in function.node.body:
        _collect(engine, _Line(replay.module, function, statement), replay.call, lines, 0, {})
    yield [], [line for line in lines if _copied(line.node) is None], Confidence.LIKELY


def _afterwards(engine: Engine, replay: Replay) -> Iterator[_Step]:
    """What follows a replay in its block, up to the first wait, with all of the function that came before."""
    if replay.function is None:
        return
    blocks = around.blocks_around(replay.function.node, _statement_of(replay))
    if not blocks:
        return
    block = blocks[-1]
    at = next((i for i, statement in enumerate(block) if contains(statement, replay.call)), len(block))
    after: list[_Line] = []
    for statement in block[at + 1 :]:
        collected: list[_Line] = []
        _collect(engine, _Line(replay.module, replay.function, statement), replay.call, collected, 0, {})
        if any(_waits(engine, line) for line in collected):
            break
        after.extend(collected)
    if not _writes_of(engine, after):
        return  # then it does not matter what came before
    before: list[_Line] = []
    for statement in block[: at + 1]:
        _collect(engine, _Line(replay.module, replay.function, statement), replay.call, before, 0, {})
    yield before, after, Confidence.CERTAIN if replay.depth == 0 else Confidence.LIKELY


def _statement_of(replay: Replay) -> ast.AST:
    assert replay.function is not None
    return next(
        (
            node
            for node in walk_own(replay.function.node)
            if isinstance(node, ast.stmt) and not hasattr(node, "body") and contains(node, replay.call)
        ),
        replay.call,
    )


def _collect(
    engine: Engine, line: _Line, replay: ast.AST, lines: list[_Line], depth: int, seen: dict[FunctionInfo, int]
) -> None:
    """What writes, copies or waits below a statement, in a round that replays, and in the functions that it calls.

    ``seen``: the functions that were entered, with how far down that was. Entering one again tells nothing new.
    """
    node = line.node
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
        return
    if isinstance(node, _TELLING):
        lines.append(line)
    below = children(node)
    if isinstance(node, ast.If) and depth == 0 and _leaves_without(node, replay):
        below = [node.test, *node.orelse]
    elif isinstance(node, ast.If) and (depth == 0 or line.module.holds(_REPLAYS)):
        # the side that does not replay is another round's
        for side, other in ((node.body, node.orelse), (node.orelse, node.body)):
            if any(_replays(each, replay) for each in side) and not any(_replays(each, replay) for each in other):
                below = [node.test, *side]
    for child in below:
        if child.__class__ not in CHILDLESS:
            _collect(engine, _Line(line.module, line.function, child), replay, lines, depth, seen)
    if isinstance(node, ast.Call) and depth < _MAX_DEPTH:
        scope = engine.scope_of(line.function, line.module)
        for option in options(engine.evaluate_in(scope, node.func)):
            if isinstance(option, Function) and not isinstance(option.info.node, ast.Lambda):
                if seen.get(option.info, _MAX_DEPTH + 1) <= depth:
                    continue
                seen[option.info] = depth
                for statement in option.info.node.body:
                    _collect(engine, _Line(option.info.module, option.info, statement), replay, lines, depth + 1, seen)


def _leaves_without(node: ast.If, replay: ast.AST) -> bool:
    """``if self.eager: ...; return``: a call that replays further down has not been there."""
    return always_leaves(node.body) and not any(_replays(each, replay) for each in node.body)


def _replays(node: ast.AST, replay: ast.AST) -> bool:
    return any(each is replay or around.is_replay(each) for each in walk_all(node))


def _races(
    engine: Engine,
    origins: Origins,
    before: list[_Line],
    lines: list[_Line],
    captured: list[tuple[_Line, frozenset[Place]]],
) -> Iterator[tuple[_Line, _Line, Confidence]]:
    writes = _writes_of(engine, lines)
    if not writes or any(_waits(engine, line) for line in lines):
        return
    sources = [(line, source) for line in (*before, *lines) if (source := _copied(line.node)) is not None]
    copies = [*captured, *((line, frozenset(_places(origins, line, source))) for line, source in sources)]
    for line, buffer in writes:
        places = _places(origins, line, buffer)
        for copy, read in copies:
            if not read.isdisjoint(places):
                yield line, copy, _pinned(engine, line, buffer) or Confidence.LIKELY
                break


def _writes_of(engine: Engine, lines: list[_Line]) -> list[tuple[_Line, ast.expr]]:
    """What writes into a pinned buffer on the host."""
    found = [(line, buffer) for line in lines if (buffer := _written(line.node)) is not None]
    return [(line, buffer) for line, buffer in found if _pinned(engine, line, buffer) is not None]


def _places(origins: Origins, line: _Line, node: ast.expr) -> set[Place]:
    return origins.same(line.function, line.module, node).places


def _pinned(engine: Engine, line: _Line, node: ast.expr) -> Confidence | None:
    value = engine.evaluate_in(engine.scope_of(line.function, line.module), node)
    found = list(options(value))
    pinned = [each for each in found if isinstance(each, Tensor) and each.pinned and each.device is Device.HOST]
    if not pinned:
        return None
    return Confidence.CERTAIN if len(pinned) == len(found) else Confidence.LIKELY


def _written(node: ast.AST) -> ast.expr | None:
    """The buffer that a statement or a call writes on the host."""
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Subscript):
                return _buffer(target.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _WRITES:
        return _buffer(node.func.value)
    return None


def _copied(node: ast.AST) -> ast.expr | None:
    """The buffer that a ``non_blocking`` copy to the device reads."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    flags = [keyword.value for keyword in node.keywords if keyword.arg == "non_blocking"]
    given = [*flags, *node.args[1:2]] if node.func.attr == "copy_" else flags
    if not any(isinstance(flag, ast.Constant) and flag.value is True for flag in given):
        return None
    if node.func.attr == "copy_":
        return _buffer(node.args[0]) if node.args else None
    return _buffer(node.func.value) if node.func.attr in ("to", "cuda") else None


def _buffer(node: ast.expr) -> ast.expr:
    """``buffer`` of ``buffer[:n].view(-1)`` and of ``buffer.numpy()``."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr not in ("view", "narrow", "numpy", "reshape", "flatten"):
                return node
            node = node.func.value
        else:
            return node


def _waits(engine: Engine, line: _Line) -> bool:
    node = line.node
    if not isinstance(node, ast.Call):
        return False
    name = last_name(node.func)
    if name in _WAITS and not (name == "query" and isinstance(node.func, ast.Name)):
        return True
    scope = engine.scope_of(line.function, line.module)
    if name in _NUMBERS and node.args:
        return device_confidence(engine.evaluate_in(scope, node.args[0])) is not None
    if name == "to" and node.args and not any(keyword.arg == "non_blocking" for keyword in node.keywords):
        return isinstance(node.args[0], ast.Constant) and node.args[0].value == "cpu"
    return False


def _captured_sources(life: Life) -> list[tuple[_Line, frozenset[Place]]]:
    """The buffers that the graph itself copies from."""
    found: list[tuple[_Line, frozenset[Place]]] = []
    for context in life.reach.steps:
        nodes: Iterable[ast.AST] = context.function.acts if context.function is not None else ()
        if context is life.reach.entered.context and life.declaration.body is not None:
            nodes = [node for root in life.declaration.body for node in (root, *walk_own(root))]
        for node in nodes:
            source = _copied(node)
            if source is not None:
                line = _Line(context.module, context.function, node)
                found.append((line, frozenset(_places(life.origins, line, source))))
    return found
