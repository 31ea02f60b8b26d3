"""CG905: what ``make_graphed_callables`` asks of the callables, of their sample arguments, and of later calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.findings import Around
from capturelint.lifecycle.setup.before import calls_in, earlier, external_name
from capturelint.lifecycle.setup.captures import GRAPHED_CALLABLES, Capture, report
from capturelint.lifecycle.setup.graphed_calls import calls_of_graphed
from capturelint.lifecycle.setup.points import Path, Point, value_at
from capturelint.model import Confidence
from capturelint.project.definitions import ClassInfo, dotted_name, last_name, walk_own
from capturelint.values import hierarchy
from capturelint.values.domain import ClassValue, Host, Instance, Mapping, Sequence, Tensor, options
from capturelint.values.engine import Engine

#: what fills the three dictionaries that torch looks into; a module's own, not those of the modules in it
_HOOKS = (
    *("register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook"),
    *("register_backward_hook", "register_module_forward_hook"),
)
#: torch's older wrappers of a weight, which work by a forward hook on the module
_HOOKING = ("torch.nn.utils.spectral_norm", "torch.nn.utils.weight_norm", "torch.nn.utils.remove_weight_norm")
_MAX_DEPTH = 3


def find(engine: Engine, captures: list[Capture]) -> Iterator[Around]:
    for capture in captures:
        if capture.kind != GRAPHED_CALLABLES or capture.call is None:
            continue
        if not external_name(engine, capture.point, capture.call.func).startswith("torch."):
            continue  # TransformerEngine's takes keyword arguments, and other things that torch's does not
        yield from _samples(engine, capture)
        for each in _callables(capture):
            yield from _hooks(engine, capture, each)
            yield from _buffers(engine, capture, each)
        yield from calls_of_graphed(engine, capture)


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


# -- hooks and buffers -----------------------------------------------------------------------------------------------


def _hooks(engine: Engine, capture: Capture, module: ast.expr) -> Iterator[Around]:
    name = dotted_name(module)
    for path in capture.paths:
        for point, call in _hook_calls(engine, path, name):
            yield _hooked(capture, point, call, name or "the module")
    for cls in _classes(engine, capture.point, module):
        init = hierarchy.find_method(engine, cls, "__init__")
        if init is None or not init.parameters():
            continue
        receiver = init.parameters()[0].arg
        for call in (node for node in walk_own(init.node) if isinstance(node, ast.Call)):
            if _hooks_on(call, receiver) and not _removed(init.node, call):
                yield _hooked(capture, Point(init.module, init, call), call, f"`{cls.name}`")


def _hook_calls(engine: Engine, path: Path, name: str | None) -> Iterator[tuple[Point, ast.Call]]:
    if name is None:
        return
    for each in earlier(path[:1]):
        for call in calls_in(each.statement):
            point = each.point.at(call)
            if _hooks_on(call, name) and not _removed(point.root, call):
                yield point, call
            wrapped = call.args[0] if call.args else None
            if wrapped is not None and external_name(engine, point, call.func) in _HOOKING:
                if name in (dotted_name(wrapped), *point.module.uses.names_given_to(call)):
                    yield point, call


def _hooks_on(call: ast.Call, name: str) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in _HOOKS and dotted_name(call.func.value) == name


def _removed(root: ast.AST, call: ast.Call) -> bool:
    """``handle = m.register_forward_hook(f)`` and ``handle.remove()``."""
    names = {
        last_name(target)
        for node in walk_own(root)
        if isinstance(node, ast.Assign) and node.value is call
        for target in node.targets
    }
    return any(
        isinstance(node, ast.Call) and last_name(node.func) == "remove" and isinstance(node.func, ast.Attribute)
        and last_name(node.func.value) in names
        for node in walk_own(root)
    )  # fmt: skip


def _hooked(capture: Capture, point: Point, call: ast.Call, name: str) -> Around:
    shown = name if name.startswith("`") or name == "the module" else f"`{name}`"
    return report(
        "CG905",
        point,
        f"{shown} has a hook when it is passed to `make_graphed_callables`, which raises then",
        "registers a hook",
        Confidence.LIKELY,
        [capture],
        help="register the hook after `make_graphed_callables`, which torch allows, or remove it before",
        related=[capture.related()],
    )


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
