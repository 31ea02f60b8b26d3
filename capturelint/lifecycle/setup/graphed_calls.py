"""CG905, later: how the result of ``make_graphed_callables`` is called."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from capturelint.findings import Around
from capturelint.lifecycle.places import Origins, Place
from capturelint.lifecycle.setup.captures import Capture, report
from capturelint.lifecycle.setup.graphed_grad import untracked
from capturelint.lifecycle.setup.points import Point, ancestors, loops_at, value_at
from capturelint.lifecycle.setup.shapes import shape_of
from capturelint.model import Confidence
from capturelint.project.definitions import FunctionInfo
from capturelint.project.syntax import dotted_name, last_name, store_targets, walk_own
from capturelint.values.domain import Function, options
from capturelint.values.engine import Engine

#: calls that are asked whether they call a graphed callable, and files that are searched for them
_MAX_ASKED = 300
_MAX_FILES = 12


def calls_of_graphed(origins: Origins, capture: Capture) -> Iterator[Around]:
    engine = origins.engine
    calls: list[list[Point]] = []
    results = list(_results(capture))
    for target, sample in results:
        calls.append(list(_calls(capture, target)))
        for point in calls[-1]:
            yield from _judged(engine, capture, point, sample)
    for earlier, later in pairwise(calls):
        yield from _out_of_order(capture, earlier, later)
    known = {id(point.node) for each in calls for point in each}
    only = results[0][1] if len(results) == 1 and not _several(capture) else None
    for point in _calls_elsewhere(origins, capture):
        if id(point.node) not in known:
            yield from _judged(engine, capture, point, only)


def _several(capture: Capture) -> bool:
    given = capture.argument("callables")
    return given is None or not isinstance(given, (ast.Name, ast.Attribute))


def _out_of_order(capture: Capture, first: list[Point], second: list[Point]) -> Iterator[Around]:
    """Callables that were graphed together share a pool, and are to run in the order of the tuple."""
    for point in second:
        own = [each for each in first if each.function is point.function]
        if not own or not all(point.line < each.line for each in own) or loops_at(point):
            continue
        if any(each.node in ast.walk(point.node) for each in own):
            continue  # the other's result is its argument
        name, before = (each.module.segment(each.node, 30).partition("(")[0] for each in (point, own[0]))
        yield _wrong(capture, point, f"`{name}` runs before `{before}`, which was graphed first, in one pool",
                     "graph them in the order in which they run, or one by one", Confidence.LIKELY)  # fmt: skip
        return


def _results(capture: Capture) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """What each graphed callable is bound to, with its sample arguments."""
    way = ancestors(capture.point.root, capture.begins)
    statement = way[-2] if len(way) > 1 else None
    samples = capture.argument("sample_args")
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return
    callables = capture.argument("callables")
    targets = store_targets(statement)
    if isinstance(statement.targets[0], (ast.Tuple, ast.List)) and isinstance(callables, ast.Tuple):
        given = samples.elts if isinstance(samples, (ast.Tuple, ast.List)) else []
        for index, target in enumerate(targets):
            yield target, given[index] if index < len(given) else None
    elif len(targets) == 1 and not isinstance(callables, ast.Tuple):
        yield targets[0], samples


def _calls(capture: Capture, target: ast.expr) -> Iterator[Point]:
    """Calls by the same name: later in the function, or in the methods of the object whose attribute it is."""
    name, here = dotted_name(target), capture.point
    if name is None:
        return
    line = getattr(capture.begins, "end_lineno", 0) or 0
    for holder, call in here.module.calls_named(last_name(target)):
        if dotted_name(call.func) != name:
            continue
        if isinstance(target, ast.Name):
            if holder is here.function and call.lineno > line and not _rebound(here, target.id, line, call.lineno):
                yield Point(here.module, holder, call)
        elif holder is not None and here.function is not None and holder.owner is here.function.owner:
            if holder is not here.function or call.lineno > line:
                yield Point(here.module, holder, call)


def _calls_elsewhere(origins: Origins, capture: Capture) -> Iterator[Point]:
    """Calls by other names: of what a container gives, a parameter, an attribute of another object."""
    places = _kept_in(origins, capture)
    files = [name for place in places for name in origins.engine.project.search.mentioning(place.name)[:_MAX_FILES]]
    modules = origins.engine.project.modules(list(dict.fromkeys(files)), _MAX_FILES)
    asked = 0
    for module in dict.fromkeys((capture.point.module, *modules)):
        for name, calls in module.uses.all_calls().items():
            for holder, call in calls:
                if name in module.names or not isinstance(call.func, (ast.Name, ast.Attribute, ast.Subscript)):
                    continue
                if not (call.keywords or call.args) or not _runs_after(capture, holder, call):
                    continue
                asked += 1
                if asked > _MAX_ASKED:
                    return
                origin = origins.same(holder, module, call.func)
                if id(capture.begins) in origin.nodes or not origin.places.isdisjoint(places):
                    yield Point(module, holder, call)


def _kept_in(origins: Origins, capture: Capture) -> set[Place]:
    """Where the results are kept; a module is changed itself, so where it is kept, too."""
    point, found = capture.point, set()
    way = ancestors(point.root, capture.begins)
    for statement in reversed(way):
        for target in store_targets(statement):
            kept = target.value if isinstance(target, ast.Subscript) else target
            if isinstance(kept, ast.Attribute):
                found |= set(origins.attribute(point.function, point.module, kept))
            elif isinstance(kept, ast.Name):
                found.add(Place(point.function if point.function is not None else point.module, kept.id))
    given = capture.argument("callables")
    if given is not None and _is_module(origins.engine, capture):
        for each in given.elts if isinstance(given, ast.Tuple) else [given]:
            found |= origins.same(point.function, point.module, each).places
    return found


def _runs_after(capture: Capture, holder: FunctionInfo | None, call: ast.Call) -> bool:
    """Not before the capture; names of its own function are told apart by their assignments, not asked about here."""
    return holder is not capture.point.function or (
        call.lineno > (getattr(capture.begins, "end_lineno", 0) or 0) and not isinstance(call.func, ast.Name)
    )


def _rebound(point: Point, name: str, first: int, last: int) -> bool:
    return any(
        isinstance(node, ast.Assign)
        and first < node.lineno < last
        and any(isinstance(each, ast.Name) and each.id == name for each in store_targets(node))
        for node in walk_own(point.root)
    )


def _judged(engine: Engine, capture: Capture, point: Point, sample: ast.expr | None) -> Iterator[Around]:
    call = point.node
    assert isinstance(call, ast.Call)
    text = point.module.segment(call.func, 30)
    changed = _mode_changed(point, call)
    function = not _is_module(engine, capture)
    if call.keywords and (function or not changed):
        names = ", ".join(f"`{keyword.arg}=`" if keyword.arg else "`**`" for keyword in call.keywords)
        yield _wrong(capture, point, f"`{text}` is graphed, and takes no keyword arguments ({names})",
                     "pass the arguments by position, in the order of `sample_args`", Confidence.LIKELY)  # fmt: skip
        return
    if changed and not function:
        yield _wrong(capture, point, f"`{text}` may have been graphed in another mode: then its original forward runs",
                     "graph the module in the mode in which it is to run", Confidence.POSSIBLE)  # fmt: skip
        return
    if not isinstance(sample, (ast.Tuple, ast.List)) or any(isinstance(each, ast.Starred) for each in sample.elts):
        return
    if any(isinstance(each, ast.Starred) for each in call.args):
        return
    if len(call.args) != len(sample.elts):
        yield _wrong(capture, point, f"`{text}` was graphed with {_count(len(sample.elts))}, and gets {len(call.args)}",
                     "pass what `sample_args` held, in the same order", Confidence.LIKELY)  # fmt: skip
        return
    for given, made in zip(call.args, sample.elts, strict=True):
        yield from _argument(capture, point, given, made)
        yield from untracked(engine, capture, point, given, made)
    yield from _twice(capture, point, text)


def _argument(capture: Capture, point: Point, given: ast.expr, made: ast.expr) -> Iterator[Around]:
    shown = point.module.segment(given, 30)
    if isinstance(given, ast.Constant):
        yield _wrong(capture, point.at(given), f"`{shown}` is no tensor; a graphed callable takes only tensors",
                     "bind it before the callable is graphed", Confidence.CERTAIN)  # fmt: skip
        return
    mine, theirs = shape_of(point, given), shape_of(capture.point, made)
    if mine is not None and theirs is not None and mine != theirs:
        yield _wrong(capture, point.at(given), f"`{shown}` is {list(mine)}, and the sample was {list(theirs)}",
                     "pad to the sample's shape, or graph one callable for each shape", Confidence.LIKELY)  # fmt: skip


def _count(number: int) -> str:
    return "1 argument" if number == 1 else f"{number} arguments"


def _is_module(engine: Engine, capture: Capture) -> bool:
    given = capture.argument("callables")
    if given is None:
        return True
    found = list(options(value_at(engine, capture.point, given)))
    return not found or not all(isinstance(option, Function) for option in found)


def _mode_changed(point: Point, call: ast.Call) -> bool:
    """``model.eval()`` or ``model.train(False)`` in the function before the call, after the module was graphed."""
    name = dotted_name(call.func)
    last = ""
    for node in walk_own(point.root):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.lineno < call.lineno:
            if node.func.attr in ("eval", "train") and dotted_name(node.func.value) == name:
                last = node.func.attr
    return last != ""


def _twice(capture: Capture, point: Point, text: str) -> Iterator[Around]:
    """``create_graph=True`` where the result's gradient is taken: a graphed backward has no derivative."""
    for node in walk_own(point.root):
        if not isinstance(node, ast.Call) or last_name(node.func) not in ("grad", "backward"):
            continue
        if node.lineno < point.line:
            continue
        for keyword in node.keywords:
            if keyword.arg == "create_graph" and isinstance(keyword.value, ast.Constant) and keyword.value.value:
                yield _wrong(capture, point.at(node), f"a second derivative through `{text}`, whose graphed backward "
                             "has none", "call the original callable for the double backward",
                             Confidence.LIKELY)  # fmt: skip


def _wrong(capture: Capture, point: Point, message: str, help: str, confidence: Confidence) -> Around:
    return report("CG905", point, message, "not as it was graphed", confidence, [capture], help=help,
                  related=[capture.related("graphed here")])  # fmt: skip
