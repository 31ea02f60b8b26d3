"""CG704: a capture in global mode while other threads use CUDA, and captures in several threads at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.findings import Around
from capturelint.lifecycle.setup.before import callees, calls_in, earlier
from capturelint.lifecycle.setup.captures import GRAPHED_CALLABLES, Capture, report, story
from capturelint.lifecycle.setup.cuda_work import CudaWork
from capturelint.lifecycle.setup.loaders import pinning_loaders
from capturelint.lifecycle.setup.points import Path, Point, value_at
from capturelint.lifecycle.setup.sources import Sources
from capturelint.lifecycle.setup.starts import Start, ended, locked, starts_in
from capturelint.model import Confidence, Related
from capturelint.project.definitions import FunctionInfo, calls_within
from capturelint.values import hierarchy
from capturelint.values.domain import ClassValue, Host, options
from capturelint.values.engine import Engine

_MAX_DEPTH = 2


def find(captures: list[Capture], sources: Sources) -> Iterator[Around]:
    work = CudaWork(sources.engine)
    for capture in captures:
        for path in capture.paths:
            yield from _several(capture, path, sources)
            if not _is_global(capture):
                continue
            yield from _loaders(capture, path, sources)
            yield from _threads(capture, path, sources, work)


def _is_global(capture: Capture) -> bool:
    if capture.kind == GRAPHED_CALLABLES:
        return True
    if capture.opaque:
        return False
    given = capture.argument("capture_error_mode")
    if given is None:
        return True
    values = [option.const for option in options(capture.value(given)) if isinstance(option, Host)]
    return values == ["global"]


def _help(capture: Capture) -> str:
    if capture.kind == GRAPHED_CALLABLES:
        return "let the threads rest while the callables are captured; `make_graphed_callables` captures in global mode"
    return 'pass `capture_error_mode="thread_local"`, or let the other threads rest while this one captures'


# -- loaders ---------------------------------------------------------------------------------------------------------


def _loaders(capture: Capture, path: Path, sources: Sources) -> Iterator[Around]:
    for use, made in pinning_loaders(sources, path):
        yield report(
            "CG704",
            capture.point.at(capture.begins),
            "captures in global mode while the data loader's thread pins memory; CUDA then fails there or here",
            "no other thread may allocate, pin or wait now",
            Confidence.LIKELY,
            [capture],
            help=_help(capture),
            related=[
                Related(made.module.display, made.line, "a loader with a thread that pins memory"),
                Related(use.module.display, use.line, "it is running here"),
                *list(story(path, capture))[:-1],
            ],
        )
        return


# -- threads ---------------------------------------------------------------------------------------------------------


def _threads(capture: Capture, path: Path, sources: Sources, work: CudaWork) -> Iterator[Around]:
    mine = {point.function for point in path}
    for start in _started_before(sources, path):
        if start.target in mine:
            continue
        found = work.of(start.target)
        if found is None or (locked(path[0]) and locked(found)):
            continue
        yield report(
            "CG704",
            capture.point.at(capture.begins),
            f"captures in global mode while `{start.target.name}` runs in another thread and uses CUDA",
            "no other thread may allocate, pin or wait now",
            Confidence.LIKELY,
            [capture],
            help=_help(capture),
            related=[
                Related(start.point.module.display, start.point.line, "the thread begins here"),
                Related(found.module.display, found.line, "it uses CUDA here"),
                *list(story(path, capture))[:-1],
            ],
        )
        return


def _started_before(sources: Sources, path: Path) -> Iterator[Start]:
    for each in earlier(path):
        node = next(point.node for point in path if point.function is each.point.function)
        for start in _within(sources, each.point, each.statement, 0):
            if start.point.function is not each.point.function or not ended(start, node):
                yield start
    known = {point.function for point in path}
    for point in path:
        owner = point.function.owner if point.function is not None else None
        init = hierarchy.find_method(sources.engine, owner, "__init__") if owner is not None else None
        if init is not None and init not in known:
            known.add(init)
            for statement in init.body:
                yield from _within(sources, Point(init.module, init, statement), statement, 0)


def _within(sources: Sources, point: Point, statement: ast.AST, depth: int) -> Iterator[Start]:
    """The threads that a statement starts, itself or in what it calls."""
    calls = list(calls_in(statement))
    yield from starts_in(sources, point, iter(calls))
    if depth >= _MAX_DEPTH:
        return
    for call in calls:
        for info in (*callees(sources.engine, point, call), *_constructors(sources.engine, point, call)):
            inner = Point(info.module, info, info.node)
            for start in starts_in(sources, inner, calls_within(info)):
                if not _ended_within(start, info):
                    yield start


def _ended_within(start: Start, info: FunctionInfo) -> bool:
    last = ast.Pass()
    last.lineno = (info.node.end_lineno or info.line) + 1
    return ended(start, last)


def _constructors(engine: Engine, point: Point, call: ast.Call) -> Iterator[FunctionInfo]:
    for option in options(value_at(engine, point, call.func)):
        if isinstance(option, ClassValue):
            init = hierarchy.find_method(engine, option.info, "__init__")
            if init is not None:
                yield init


# -- several captures at once ----------------------------------------------------------------------------------------


def _several(capture: Capture, path: Path, sources: Sources) -> Iterator[Around]:
    """The function that captures is what several threads run."""
    if any(locked(point) for point in path):
        return
    functions = {point.function for point in path if point.function is not None}
    for start in threads_that_run(sources, functions):
        if start.many and start.point.function not in functions:
            yield report(
                "CG704",
                capture.point.at(capture.begins),
                f"`{start.target.name}` captures in several threads at once; torch allows one capture at a time",
                "captures in several threads",
                Confidence.LIKELY,
                [capture],
                help="capture in one thread, or under one lock for all",
                related=[Related(start.point.module.display, start.point.line, "the threads begin here")],
            )
            return


def threads_that_run(sources: Sources, functions: set[FunctionInfo]) -> Iterator[Start]:
    """Threads whose target is one of some functions."""
    found: list[Start] = []
    for module in dict.fromkeys(info.module for info in functions):
        for name in ("Thread", "submit", "map", "run_in_executor", "apply_async", "starmap"):
            for holder, call in module.calls_named(name):
                point = Point(module, holder, call)
                found.extend(start for start in starts_in(sources, point, iter([call])) if start.target in functions)
    if len(found) > 1:
        found = [Start(each.point, each.target, True, each.names) for each in found]
    yield from found
