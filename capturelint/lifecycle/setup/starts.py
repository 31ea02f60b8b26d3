"""Threads that code starts: what runs in them, and whether they may still run at some later place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from capturelint.lifecycle.setup.before import external_name
from capturelint.lifecycle.setup.points import Point, ancestors, loops_at, value_at
from capturelint.lifecycle.setup.sources import Sources
from capturelint.project.definitions import FunctionInfo
from capturelint.project.syntax import dotted_name, last_name, walk_own
from capturelint.values import hierarchy
from capturelint.values.domain import ClassValue, Function, Partial, Value, options
from capturelint.values.engine import Engine

_THREADS = ("threading.Thread", "threading.Timer", "_thread.start_new_thread")
_EXECUTORS = ("ThreadPoolExecutor", "ThreadPool")
#: methods of an executor that run a function in its threads, with the position of the function
_RUNS = {"submit": 0, "map": 0, "apply_async": 0, "map_async": 0, "imap": 0, "imap_unordered": 0, "starmap": 0}
#: those that run it many times at once
_RUNS_MANY = ("map", "map_async", "imap", "imap_unordered", "starmap")
_ENDS = ("join", "result", "shutdown", "wait", "as_completed", "get", "close")


@dataclass(frozen=True, slots=True)
class Start:
    """``point`` is the call that makes the thread or hands work to one, ``target`` what runs there."""

    point: Point
    target: FunctionInfo
    #: started in a loop, or by a call that starts many
    many: bool
    #: what the thread is bound to, for ``join``
    names: tuple[str, ...] = ()


def starts_in(sources: Sources, point: Point, calls: Iterator[ast.Call]) -> Iterator[Start]:
    """The threads that some calls of a function start."""
    for call in calls:
        at = point.at(call)
        for target, many in _targets(sources, at, call):
            repeated = many or bool(loops_at(at))
            yield Start(at, target, repeated, point.module.uses.names_given_to(call))


def _targets(sources: Sources, point: Point, call: ast.Call) -> Iterator[tuple[FunctionInfo, bool]]:
    engine = sources.engine
    name = last_name(call.func)
    if name in ("Thread", "Timer") and external_name(engine, point, call.func) in _THREADS:
        given = [keyword.value for keyword in call.keywords if keyword.arg in ("target", "function")]
        given += call.args[1:2]
        for each in given[:1]:
            yield from ((info, False) for info in functions_of(engine, point, each))
        return
    if name in _RUNS and isinstance(call.func, ast.Attribute) and call.args:
        if _is_executor(sources, point, call.func.value):
            for info in functions_of(engine, point, call.args[_RUNS[name]]):
                yield info, name in _RUNS_MANY
        return
    if name == "run_in_executor" and len(call.args) > 1:
        yield from ((info, False) for info in functions_of(engine, point, call.args[1]))
        return
    if name == "to_thread" and call.args:
        yield from ((info, False) for info in functions_of(engine, point, call.args[0]))
        return
    for option in options(value_at(engine, point, call.func)):
        if isinstance(option, ClassValue) and any(base in _THREADS for base in engine.mro(option.info)):
            run = hierarchy.find_method(engine, option.info, "run")
            if run is not None:
                yield run, False


def functions_of(engine: Engine, point: Point, node: ast.expr) -> list[FunctionInfo]:
    found: list[FunctionInfo] = []
    stack: list[Value] = [value_at(engine, point, node)]
    while stack:
        for option in options(stack.pop()):
            if isinstance(option, Function):
                found.append(option.info)
            elif isinstance(option, Partial):
                stack.append(option.function)
    return found


def _is_executor(sources: Sources, point: Point, node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return last_name(node.func) in _EXECUTORS
    for item in _with_items(point):
        if item.optional_vars is not None and dotted_name(item.optional_vars) == dotted_name(node):
            return _is_executor(sources, point, item.context_expr)
    if isinstance(node, (ast.Name, ast.Attribute)):
        return any(_is_executor(sources, each.path[0], each.node) for each in sources.of((point,), node)
                   if isinstance(each.node, ast.Call))  # fmt: skip
    return False


def _with_items(point: Point) -> Iterator[ast.withitem]:
    for node in ancestors(point.root, point.node):
        if isinstance(node, (ast.With, ast.AsyncWith)):
            yield from node.items


def ended(start: Start, before: ast.AST) -> bool:
    """Whether the thread is waited for before ``before``, a node of the same function, or begins after it."""
    point = start.point
    inside = ancestors(point.root, before)
    for node in ancestors(point.root, point.node):
        if isinstance(node, (ast.With, ast.AsyncWith)) and node not in inside:
            if any(_is_executor_call(item.context_expr) for item in node.items):
                return True  # the executor's block waits for its threads
    line, last = point.line, getattr(before, "lineno", 0)
    if _begins_after(start, last):
        return True
    for node in walk_own(point.root):
        if isinstance(node, ast.Call) and line <= node.lineno < last and last_name(node.func) in _ENDS:
            return True
    return False


def _begins_after(start: Start, line: int) -> bool:
    """``t = Thread(...)`` whose first ``t.start()`` comes later."""
    begins = [
        node.lineno
        for node in walk_own(start.point.root)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "start"
        and dotted_name(node.func.value) in start.names
    ]
    return bool(begins) and min(begins) > line


def _is_executor_call(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) in _EXECUTORS


def locked(point: Point) -> bool:
    """Whether the place runs under a lock."""
    return any(
        "lock" in last_name(item.context_expr).lower() or "mutex" in last_name(item.context_expr).lower()
        for item in _with_items(point)
    )
