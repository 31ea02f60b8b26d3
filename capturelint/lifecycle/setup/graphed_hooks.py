"""CG905, hooks: what registers one on a module before ``make_graphed_callables`` gets it, there or by way of others.

torch looks at the hooks of the module that it is given, not at those of the modules in it. A module is told here by how
it is written, ``model.encoder``, and by what that becomes in the functions that it is passed to and passed on from.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from capturelint.findings import Around
from capturelint.lifecycle.setup.before import callees, calls_in, earlier, external_name
from capturelint.lifecycle.setup.captures import Capture, report
from capturelint.lifecycle.setup.parameters import passed_to
from capturelint.lifecycle.setup.points import Path, Point, ancestors, loops_at, value_at
from capturelint.model import Confidence
from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.syntax import dotted_name, last_name, walk_own
from capturelint.values import hierarchy
from capturelint.values.domain import ClassValue, options
from capturelint.values.engine import Engine

#: what fills the three dictionaries that torch looks into; a module's own, not those of the modules in it
_HOOKS = (
    *("register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook"),
    *("register_backward_hook", "register_module_forward_hook"),
)
_DICTIONARIES = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")
#: torch's older wrappers of a weight, which work by a forward hook on the module
_HOOKING = ("torch.nn.utils.spectral_norm", "torch.nn.utils.weight_norm", "torch.nn.utils.remove_weight_norm")
_ALL_MODULES = ("modules", "named_modules")
_COLLECTING = ("tuple", "list", "enumerate", "reversed", "children", "values")
_MAX_DEPTH = 3


@dataclass(frozen=True, slots=True)
class _Hooked:
    point: Point
    name: str
    conditional: bool = False


def hooks(engine: Engine, capture: Capture, module: ast.expr, classes: Iterable[ClassInfo]) -> Iterator[Around]:
    """``classes`` are those that the module may be an object of: their constructors may register hooks."""
    found: dict[int, _Hooked] = {}
    for path in capture.paths:
        for each in _before(engine, path, subject(path[0], module)):
            found.setdefault(id(each.point.node), each)
    for cls in classes:
        init = hierarchy.find_method(engine, cls, "__init__")
        if init is not None and init.parameters():
            inside = _in_function(engine, init, init.parameters()[0].arg, 0)
            found.update({id(each.point.node): _Hooked(each.point, cls.name, each.conditional) for each in inside})
    for each in found.values():
        yield _finding(capture, each)


def _finding(capture: Capture, hooked: _Hooked) -> Around:
    return report(
        "CG905",
        hooked.point,
        f"`{hooked.name}` has a hook when it is passed to `make_graphed_callables`, which raises then",
        "registers a hook",
        Confidence.POSSIBLE if hooked.conditional else Confidence.LIKELY,
        [capture],
        help="register the hook after `make_graphed_callables`, which torch allows, or remove it before",
        related=[capture.related()],
    )


# -- how a module is written -----------------------------------------------------------------------------------------


def subject(point: Point, node: ast.expr, depth: int = 0) -> str | None:
    """``model.encoder`` with local names resolved; ``model.layers[*]`` for elements; None for anything else."""
    if isinstance(node, ast.Attribute):
        inner = subject(point, node.value, depth)
        return f"{inner}.{node.attr}" if inner is not None else None
    if isinstance(node, ast.Subscript):
        inner = subject(point, node.value, depth)
        return f"{inner}[*]" if inner is not None else None
    if isinstance(node, ast.Starred):
        return _elements(point, node.value, depth)
    if isinstance(node, ast.Call) and last_name(node.func) in ("tuple", "list") and len(node.args) == 1:
        return _elements(point, node.args[0], depth)
    if not isinstance(node, ast.Name) or depth > _MAX_DEPTH:
        return None
    bound = point.function.assigned.get(node.id, []) if point.function is not None else []
    if len(bound) == 1 and isinstance(bound[0], (ast.Name, ast.Attribute, ast.Subscript)):
        return subject(point, bound[0], depth + 1)
    for loop in loops_at(point):
        if node.id in {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}:
            return _elements(point.at(loop.iter), loop.iter, depth + 1)
    return node.id


def _elements(point: Point, node: ast.expr, depth: int) -> str | None:
    """What a loop over ``node`` goes through: ``model[modules]`` for ``model.modules()``, which has the model too."""
    while isinstance(node, ast.Call) and last_name(node.func) in _COLLECTING:
        if node.args:
            node = node.args[0]
        elif isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return None
    if isinstance(node, ast.Call) and last_name(node.func) in _ALL_MODULES and isinstance(node.func, ast.Attribute):
        inner = subject(point, node.func.value, depth)
        return f"{inner}[modules]" if inner is not None else None
    inner = subject(point, node, depth) if isinstance(node, (ast.Name, ast.Attribute)) else None
    return f"{inner}[*]" if inner is not None else None


def _means(one: str | None, name: str) -> bool:
    if one is not None and one.endswith("[modules]"):
        return _within(name, one.removesuffix("[modules]"))
    return one == name


def _within(name: str, whole: str) -> bool:
    return name == whole or name.startswith((f"{whole}.", f"{whole}["))


# -- what registers hooks --------------------------------------------------------------------------------------------


def _before(engine: Engine, path: Path, name: str | None) -> Iterator[_Hooked]:
    """Hooks that code before the capture registers, in its function and in the callers that pass the module on."""
    for level in range(len(path)):
        if name is None:
            return
        statements = [each.statement for each in earlier(path[level : level + 1])]
        if not any(_cleared(engine, path[level], statement) for statement in statements):
            for statement in statements:
                yield from _in_calls(engine, path[level], calls_in(statement), name, 0)
        name = _passed_name(path, level, name)


def _cleared(engine: Engine, point: Point, statement: ast.stmt) -> bool:
    """Hooks are taken away by code that runs before: by their handles, or from torch's own dictionaries."""
    nodes = [statement, *walk_own(statement)]
    if any(isinstance(node, ast.Attribute) and node.attr in _DICTIONARIES for node in nodes):
        return True
    entered = (info for call in calls_in(statement) for info in callees(engine, point.at(call), call))
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "remove"
        for info in entered
        for node in walk_own(info.node)
    )


def _passed_name(path: Path, level: int, name: str) -> str | None:
    """How the caller at the next level writes what is ``name`` at this one."""
    function = path[level].function
    if function is None or level + 1 >= len(path):
        return None
    outer = path[level + 1]
    if not isinstance(outer.node, ast.Call):
        return None
    for parameter, given in _given(outer.node, function):
        if _within(name, parameter):
            inner = subject(outer, given)
            return inner + name[len(parameter) :] if inner is not None else None
    return None


def _given(call: ast.Call, function: FunctionInfo) -> Iterator[tuple[str, ast.expr]]:
    parameters = [each.arg for each in function.parameters()]
    if function.owner is not None and not function.is_static and isinstance(call.func, ast.Attribute):
        yield parameters[0], call.func.value
        parameters = parameters[1:]
    for parameter in parameters:
        given = passed_to(call, function, parameter)
        if given is not None:
            yield parameter, given


def _in_calls(engine: Engine, point: Point, calls: Iterable[ast.Call], name: str, depth: int) -> Iterator[_Hooked]:
    for call in calls:
        here = point.at(call)
        if _registers(engine, here, call, name) and not _removed(point.root, call):
            yield _Hooked(here, name, depth > 0 and _conditional(here))
        elif depth < _MAX_DEPTH:
            for info in _entered(engine, here, call):
                for parameter, given in _given(call, info):
                    passed = subject(here, given)
                    if passed is not None and _within(name, passed):
                        for each in _in_function(engine, info, parameter + name[len(passed) :], depth + 1):
                            yield _Hooked(each.point, name, each.conditional or (depth > 0 and _conditional(here)))


def _in_function(engine: Engine, info: FunctionInfo, name: str, depth: int) -> Iterator[_Hooked]:
    calls = [node for node in walk_own(info.node) if isinstance(node, ast.Call)]
    yield from _in_calls(engine, Point(info.module, info, info.node), calls, name, depth)


def _registers(engine: Engine, point: Point, call: ast.Call, name: str) -> bool:
    if isinstance(call.func, ast.Attribute) and call.func.attr in _HOOKS:
        written = subject(point, call.func.value)
        return _means(written, name) and not (written != name and _conditional(point))
    wrapped = call.args[0] if call.args else None
    if wrapped is None or external_name(engine, point, call.func) not in _HOOKING:
        return False
    return name in (dotted_name(wrapped), subject(point, wrapped), *point.module.uses.names_given_to(call))


def _entered(engine: Engine, point: Point, call: ast.Call) -> Iterator[FunctionInfo]:
    yield from callees(engine, point, call)
    for option in options(value_at(engine, point, call.func)):
        init = hierarchy.find_method(engine, option.info, "__init__") if isinstance(option, ClassValue) else None
        if init is not None and not isinstance(call.func, ast.Attribute):
            yield init


def _conditional(point: Point) -> bool:
    return any(isinstance(node, (ast.If, ast.IfExp)) for node in ancestors(point.root, point.node))


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
