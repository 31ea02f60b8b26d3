"""CG905: what ``make_graphed_callables`` asks of the callables, of their sample arguments, and of later calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.findings import Around
from capturelint.lifecycle.places import Origins
from capturelint.lifecycle.setup import graphed_grad
from capturelint.lifecycle.setup.before import external_name
from capturelint.lifecycle.setup.captures import GRAPHED_CALLABLES, Capture, report
from capturelint.lifecycle.setup.graphed_calls import calls_of_graphed
from capturelint.lifecycle.setup.graphed_hooks import hooks
from capturelint.lifecycle.setup.points import Point, value_at
from capturelint.model import Confidence
from capturelint.project.definitions import ClassInfo
from capturelint.project.syntax import last_name, walk_own
from capturelint.values import hierarchy
from capturelint.values.domain import ClassValue, Host, Instance, Mapping, Sequence, Tensor, options
from capturelint.values.engine import Engine

_MAX_DEPTH = 3


def find(engine: Engine, captures: list[Capture], origins: Origins) -> Iterator[Around]:
    for capture in captures:
        if capture.kind != GRAPHED_CALLABLES or capture.call is None:
            continue
        if not external_name(engine, capture.point, capture.call.func).startswith("torch."):
            continue  # TransformerEngine's takes keyword arguments, and other things that torch's does not
        yield from _samples(engine, capture)
        for each in _callables(capture):
            yield from hooks(engine, capture, each, _classes(engine, capture.point, each))
            yield from _buffers(engine, capture, each)
        yield from graphed_grad.graphed_without(capture)
        yield from calls_of_graphed(origins, capture)


def _callables(capture: Capture) -> list[ast.expr]:
    given = capture.argument("callables")
    if given is None:
        return []
    return list(given.elts) if isinstance(given, ast.Tuple) else [given]


# -- sample arguments ------------------------------------------------------------------------------------------------


def _samples(engine: Engine, capture: Capture) -> Iterator[Around]:
    callables, samples = capture.argument("callables"), capture.argument("sample_args")
    if callables is None or samples is None:
        return
    kinds = {o.kind for o in options(capture.value(callables)) if isinstance(o, Sequence)}
    if kinds == {"list"} or isinstance(callables, (ast.List, ast.ListComp)):
        yield _wrong(capture, callables, "several callables are given as a list; torch takes only a tuple for several",
                     "pass a tuple: `tuple(...)`", Confidence.CERTAIN)  # fmt: skip
        return
    several = isinstance(callables, ast.Tuple) or kinds == {"tuple"}
    each_sample = samples.elts if several and isinstance(samples, (ast.Tuple, ast.List)) else [samples]
    for sample in each_sample:
        if isinstance(sample, (ast.Tuple, ast.List)):
            for element in sample.elts:
                yield from _element(engine, capture, element)
        elif not several and _is_tensor(capture, sample):
            yield _wrong(capture, sample, f"`{capture.point.module.segment(sample, 40)}` is a tensor; sample arguments "
                         "come as a tuple, one for each parameter",
                         "wrap it in a tuple: `(x,)`", Confidence.LIKELY)  # fmt: skip


def _is_tensor(capture: Capture, node: ast.expr) -> bool:
    found = list(options(capture.value(node)))
    return bool(found) and all(isinstance(option, Tensor) for option in found)


def _element(engine: Engine, capture: Capture, node: ast.expr) -> Iterator[Around]:
    if isinstance(node, ast.Starred):
        return
    if isinstance(node, (ast.Tuple, ast.List)):
        for each in node.elts:
            yield from _element(engine, capture, each)
        return
    literal = isinstance(node, ast.Constant)
    found = list(options(value_at(engine, capture.point, node)))
    host = bool(found) and all(isinstance(option, Host) and not isinstance(option, Mapping) for option in found)
    if literal or host:
        text = capture.point.module.segment(node, 40)
        yield _wrong(capture, node, f"the sample argument `{text}` is no tensor, and torch takes only tensors here",
                     "bind it before, with `functools.partial` or a closure, and capture one callable for each value",
                     Confidence.CERTAIN if literal else Confidence.LIKELY)  # fmt: skip


def _wrong(capture: Capture, node: ast.expr, message: str, help: str, confidence: Confidence) -> Around:
    return report("CG905", capture.point.at(node), message, "not what torch takes", confidence, [capture], help=help,
                  related=[capture.related()])  # fmt: skip


# -- buffers -----------------------------------------------------------------------------------------------------------


def _classes(engine: Engine, point: Point, node: ast.expr) -> list[ClassInfo]:
    found = [o.site.cls for o in options(value_at(engine, point, node)) if isinstance(o, Instance)]
    return [cls for cls in found if hierarchy.is_module(engine, cls)]


def _buffers(engine: Engine, capture: Capture, module: ast.expr) -> Iterator[Around]:
    for cls in _classes(engine, capture.point, module):
        for owner, call in _registered(engine, cls, 0):
            init = hierarchy.find_method(engine, owner, "__init__")
            if init is not None:
                yield report(
                    "CG905",
                    Point(init.module, init, call),
                    f"a buffer of `{owner.name}` requires grad, which `make_graphed_callables` refuses",
                    "a buffer that requires grad",
                    Confidence.LIKELY,
                    [capture],
                    help="make it a parameter, or leave `requires_grad` off",
                    related=[capture.related()],
                )


def _registered(engine: Engine, cls: ClassInfo, depth: int) -> Iterator[tuple[ClassInfo, ast.Call]]:
    """Buffers that require grad, in a module's constructor and in those of modules that it makes."""
    init = hierarchy.find_method(engine, cls, "__init__")
    if init is None or depth >= _MAX_DEPTH:
        return
    for call in walk_own(init.node):
        if not isinstance(call, ast.Call):
            continue
        if last_name(call.func) == "register_buffer" and any(_requires_grad(each) for each in call.args[1:2]):
            yield cls, call
        for option in options(value_at(engine, Point(init.module, init, call), call.func)):
            inner = option.info if isinstance(option, ClassValue) else None
            if inner is not None and inner is not cls and hierarchy.is_module(engine, inner):
                yield from _registered(engine, inner, depth + 1)


def _requires_grad(node: ast.expr) -> bool:
    for each in ast.walk(node):
        if isinstance(each, ast.Call):
            if isinstance(each.func, ast.Attribute) and each.func.attr == "requires_grad_":
                return not (each.args and isinstance(each.args[0], ast.Constant) and not each.args[0].value)
            if any(
                k.arg == "requires_grad" and isinstance(k.value, ast.Constant) and k.value.value for k in each.keywords
            ):
                return True
    return False
