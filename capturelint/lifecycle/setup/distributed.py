"""CG906: DistributedDataParallel around a captured backward: where it is built, and how often it is warmed up."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from capturelint.findings import Around
from capturelint.lifecycle.setup import backwards
from capturelint.lifecycle.setup.backwards import Backward, Backwards
from capturelint.lifecycle.setup.before import external_name, on_side_stream
from capturelint.lifecycle.setup.captures import GRAPHED_CALLABLES, Capture, report, story
from capturelint.lifecycle.setup.points import Path, Point, loops_at
from capturelint.lifecycle.setup.series_reader import SeriesReader
from capturelint.lifecycle.setup.sizes import names_in
from capturelint.model import Confidence, Related
from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.syntax import last_name
from capturelint.values.engine import Engine

_NAMES = ("DistributedDataParallel", "DDP")
#: torch's note on CUDA graphs with DDP: it logs and rebuilds its buckets in the first iterations
_ROUNDS = 11


def find(captures: list[Capture], finder: Backwards, reader: SeriesReader) -> Iterator[Around]:
    for capture in captures:
        if not backwards.captured(capture):
            continue
        for path in capture.paths:
            for built in _built(finder.engine, path):
                if not _captured_one(capture, path, built):
                    continue
                yield from _on_default_stream(finder.engine, capture, built)
                yield from _few_rounds(capture, path, built, finder, reader)


def _built(engine: Engine, path: Path) -> Iterator[Point]:
    """Calls that wrap a model, in functions on the way to the capture and in the constructors of their objects."""
    functions: dict[FunctionInfo, None] = {}
    for point in path:
        if point.function is not None:
            functions[point.function] = None
            owner = _owner(point.function)
            functions.update(dict.fromkeys(owner.all_methods() if owner is not None else ()))
    modules = dict.fromkeys(point.module for point in path)
    for module in modules:
        for name in (*_NAMES, *_aliases(module.names)):
            for holder, call in module.calls_named(name):
                point = Point(module, holder, call)
                known = holder in functions or (holder is None and any(each.function is None for each in path))
                if known and external_name(engine, point, call.func).endswith(_NAMES[0]):
                    yield point


def _aliases(names: Iterable[str]) -> list[str]:
    return [name for name in names if name.lower().endswith(("ddp", "dataparallel")) and name not in _NAMES]


def _owner(function: FunctionInfo) -> ClassInfo | None:
    info: FunctionInfo | None = function
    while info is not None and info.owner is None:
        info = info.parent
    return info.owner if info is not None else None


def _captured_one(capture: Capture, path: Path, built: Point) -> bool:
    """Whether the capture is about the wrapped model: its name is read in the region, or passed on the way there."""
    call = built.node
    names = set(built.module.uses.names_given_to(call)) if isinstance(call, ast.Call) else set()
    if not names:
        return False
    read = {name for context in capture.reach.steps for _, name in context.names_read | context.attributes_read}
    if names & read:
        return True
    given = capture.argument("callables") if capture.kind == GRAPHED_CALLABLES else None
    if given is not None and names & {last_name(given), *names_in(given)}:
        return True
    return any(names & {*names_in(point.node)} for point in path[1:])


def _on_default_stream(engine: Engine, capture: Capture, built: Point) -> Iterator[Around]:
    if capture.kind == GRAPHED_CALLABLES or on_side_stream(engine, (built,)):
        return
    yield report(
        "CG906",
        built,
        "DistributedDataParallel is built on the default stream; its gradient hooks belong to that stream, "
        "and a captured backward cannot wait for it",
        "built on the default stream",
        Confidence.LIKELY,
        [capture],
        help="build it under `with torch.cuda.stream(side):`, and warm up there too",
        related=[capture.related()],
    )


def _few_rounds(
    capture: Capture, path: Path, built: Point, finder: Backwards, reader: SeriesReader
) -> Iterator[Around]:
    if capture.kind == GRAPHED_CALLABLES:
        yield from _few_given(capture, path, built, reader)
        return
    counts: dict[int, int] = {}  # a call may run several passes in each round, or mean several functions
    point = None
    for each in finder.before(path):
        count, point = _rounds(each, reader)
        if count is None:
            return
        call = id(each.point.node)
        counts[call] = max(count, counts.get(call, 0))
    rounds = sum(counts.values())
    if point is None or rounds >= _ROUNDS:
        return  # no warm-up at all is CG801's business
    yield report(
        "CG906",
        point,
        f"{_times(rounds)} before the capture; DistributedDataParallel still changes what it does then: "
        f"it needs {_ROUNDS}",
        f"{rounds} of {_ROUNDS}",
        Confidence.LIKELY,
        [capture],
        help=f"warm up for at least {_ROUNDS} iterations, on a side stream",
        related=[
            Related(built.module.display, built.line, "DistributedDataParallel is built here"),
            *story(path, capture),
        ],
    )


def _times(rounds: int) -> str:
    return "one warm-up iteration" if rounds == 1 else f"{rounds} warm-up iterations"


def _rounds(each: Backward, reader: SeriesReader) -> tuple[int | None, Point]:
    """How often a backward pass runs before the capture, and where that number stands."""
    total, where = 1, each.point
    for level, point in enumerate((*each.inside, *each.path[:1])):
        if point is each.point and level < len(each.inside):
            continue  # a pass that stands in the path itself is looked at once
        for loop in loops_at(point):
            series = reader.read((point.at(loop.iter),), loop.iter)
            if series is None or series.count is None:
                return None, where
            total *= series.count
            where = point.at(loop.iter)
    return total, where


def _few_given(capture: Capture, path: Path, built: Point, reader: SeriesReader) -> Iterator[Around]:
    given = capture.argument("num_warmup_iters")
    rounds = 3 if given is None else reader.number((capture.point, *path[1:]), given)
    if rounds is None or rounds >= _ROUNDS or capture.opaque:
        return
    yield report(
        "CG906",
        capture.point.at(given if given is not None else capture.begins),
        f"{_times(rounds)} of a DistributedDataParallel module before it is captured; it needs {_ROUNDS}",
        f"{rounds} of {_ROUNDS}",
        Confidence.LIKELY,
        [capture],
        help=f"pass `num_warmup_iters={_ROUNDS}`, or graph the module before it is wrapped",
        related=[Related(built.module.display, built.line, "DistributedDataParallel is built here")],
    )
