"""CG504: a tensor that a graph reads dies after the capture, and its memory goes to whoever allocates next.

What the region allocates itself lies in the graph's pool and stays. What was made before it lives as long as Python
holds it: a local of the capturing function dies when that returns, unless it is returned, stored or closed over.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.findings import Around
from capturelint.lifecycle import story
from capturelint.lifecycle.life import Life
from capturelint.lifecycle.making import MAKING, MOVING, makes_anew
from capturelint.lifecycle.moments import Moments
from capturelint.lifecycle.places import Place, argument
from capturelint.model import Confidence, Related
from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.forms import DROPPING
from capturelint.project.module import Module
from capturelint.project.syntax import last_name, walk_own
from capturelint.values.call_sites import CallSite
from capturelint.values.domain import Device, Function, Tensor, options
from capturelint.values.effects import deep_confidence
from capturelint.values.engine import Engine
from capturelint.values.lazy import LazyScope

_KEEPING = frozenset(("append", "add", "insert", "extend", "put", "update", "setdefault", "setattr", "register_buffer"))
#: how far functions are followed that get an object
_MAX_DEPTH = 3
_HELP = "keep it for as long as the graph lives: in an attribute, or returned together with the graph"


def find(life: Life, moments: Moments) -> Iterator[Around]:
    if not life.is_block:
        return
    if life.holder is not None and life.replays:
        yield from _locals(life, moments, life.holder)
        yield from _arguments(life, life.holder)
    yield from _dropped(life, moments)


def _locals(life: Life, moments: Moments, holder: FunctionInfo) -> Iterator[Around]:
    """Locals of the function that captures, where another one replays."""
    if any(each.function is holder for each in life.replays if each.depth == 0):
        return  # they live on while it replays
    for name in sorted(names_read(life, holder)):
        made = _made_by(life, holder, name)
        if made is None or is_kept(life, holder, name):
            continue
        yield _report(
            life, holder, holder.module, made,
            f"`{name}` dies when `{holder.name}` returns, but the graph captured in it goes on reading that memory",
        )  # fmt: skip


def _arguments(life: Life, holder: FunctionInfo) -> Iterator[Around]:
    """``capture(model, x.clone())``: nobody holds what is made for the call alone."""
    if any(each.function is holder for each in life.replays if each.depth == 0):
        return
    parameters = {each.arg for each in holder.parameters()} - set(life.engine.receiver_of(holder))
    for name in sorted(names_read(life, holder) & parameters):
        if is_kept(life, holder, name) or name in holder.assigned:
            continue
        for site in life.origins.callers(holder):
            for given in argument(holder, site, name):
                if makes_anew(given) and _is_device_tensor(life, site, given):
                    text = site.module.segment(given, 40)
                    yield _report(
                        life, site.holder, site.module, given,
                        f"`{text}` dies when `{holder.name}` returns, but the graph captured there goes on reading it",
                    )  # fmt: skip


def _is_device_tensor(life: Life, site: CallSite, node: ast.expr) -> bool:
    value = life.engine.evaluate_in(life.engine.scope_of(site.holder, site.module), node)
    return deep_confidence(value) is not None


def _dropped(life: Life, moments: Moments) -> Iterator[Around]:
    """``del static_in`` and ``self.x = None`` between capture and replay."""
    for module in dict.fromkeys((life.declaration.module, *(each.module for each in life.replays))):
        for function, node, target in _drops_in(life.engine, module):
            if function in life.entered or not _is_input(life, function, module, target):
                continue
            sure = moments.between(function, module, node, lasts=not isinstance(target, ast.Name))
            if sure is not None:
                text = module.segment(target, 40)
                yield _report(
                    life, function, module, target,
                    f"`{text}` is dropped here, but the graph captured at {story.where(life)} still reads it",
                    min(sure, Confidence.LIKELY, key=lambda c: c.rank),
                )  # fmt: skip


def _drops_in(engine: Engine, module: Module) -> list[tuple[FunctionInfo | None, ast.AST, ast.expr]]:
    """What a module's functions and its own code drop, looked up once for all graphs."""
    return engine.remembered(
        ("drops", module),
        lambda: [
            (function, node, target)
            for function in (None, *module.all_functions("", form=DROPPING))
            for node in walk_own(function.node if function is not None else module.top)
            for target in _drops(node)
        ],
    )


def _drops(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Delete):
        return [target for target in node.targets if isinstance(target, (ast.Name, ast.Attribute))]
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is None:
        return [target for target in node.targets if isinstance(target, (ast.Name, ast.Attribute))]
    return []


def _is_input(life: Life, function: FunctionInfo | None, module: Module, target: ast.expr) -> bool:
    """A tensor that the region reads by this name, and that nothing else holds."""
    owner: FunctionInfo | Module = function if function is not None else module
    if isinstance(target, ast.Name):
        if Place(owner, target.id) not in life.reads or function is None or function is not life.holder:
            return False
        return _made_by(life, function, target.id) is not None and not is_kept(life, function, target.id)
    if not isinstance(target, ast.Attribute):
        return False
    places = set(life.origins.attribute(function, module, target)) & life.reads
    if any(_is_made_in_region(life, place) for place in places):
        return False
    value = life.engine.evaluate_in(life.engine.scope_of(function, module), target)
    is_tensor = any(isinstance(each, Tensor) and each.device is Device.DEVICE for each in options(value))
    return is_tensor and any(isinstance(place.owner, ClassInfo) for place in places - life.outputs)


def _is_made_in_region(life: Life, place: Place) -> bool:
    """``if self.mask is None: self.mask = ...`` in the region: to drop it there is how to have it made anew."""
    owner = place.owner
    return isinstance(owner, ClassInfo) and any(
        method in life.entered for method, _ in owner.attribute_stores(place.name)
    )


def names_read(life: Life, holder: FunctionInfo) -> set[str]:
    """The holder's names that the region's code reads."""
    found = {
        name
        for context in life.reach.steps
        for owner, name in context.names_read
        if isinstance(owner, LazyScope) and owner.function is holder
    }
    spelled = {
        node.id
        for statement in life.declaration.body or ()
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    bound = {
        node.id
        for statement in life.declaration.body or ()
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return found | (spelled - bound)


def _made_by(life: Life, holder: FunctionInfo, name: str) -> ast.expr | None:
    """The expression that makes the tensor in a local, where every binding of it outside the region makes a new one."""
    scope = life.engine.scope_of(holder, holder.module)
    bindings = [each for each in scope.code.bindings.get(name, []) if not each.kind.startswith("mutate")]
    if not bindings or any(each.kind not in ("value", "augment") or each.path for each in bindings):
        return None
    if any(each.arg == name for each in holder.parameters()) or deep_confidence(scope.lookup(name)) is None:
        return None
    values = [each.node for each in bindings if each.kind == "value" and isinstance(each.node, ast.expr)]
    return values[0] if values and all(makes_anew(each) for each in values) else None


def is_kept(
    life: Life, function: FunctionInfo, name: str, captured: frozenset[str] | None = None, depth: int = 0
) -> bool:
    """Returned, stored, closed over by what is kept itself, or given to something that may hold it."""

    def speaks(node: ast.AST | None) -> bool:
        return node is not None and any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node))

    captured = _captured_calls(life) if captured is None else captured
    for node in walk_own(function.node):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)) and speaks(node):
            if not isinstance(node, ast.FunctionDef) or node.decorator_list or depth >= _MAX_DEPTH:
                return True
            if is_kept(life, function, node.name, captured, depth + 1):
                return True
        if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)) and speaks(node.value):
            return True
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return True
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and _holds(node.value, name):
            return True  # by another name, in an attribute or a container
        if isinstance(node, ast.Call) and _may_hold(node, captured) and any(
            _holds(each, name) for each in (*node.args, *(keyword.value for keyword in node.keywords))
        ):  # fmt: skip
            if depth >= _MAX_DEPTH or not _only_uses(life, function, node, name, captured, depth):
                return True
    return False


def _only_uses(
    life: Life, function: FunctionInfo, call: ast.Call, name: str, captured: frozenset[str], depth: int
) -> bool:
    """Whether a function of the project, such as one that warms up, gets the object and keeps it nowhere."""
    callee = life.engine.evaluate_in(life.engine.scope_of(function, function.module), call.func)
    helpers = [option.info for option in options(callee) if isinstance(option, Function)]
    if not helpers or len(helpers) < len(options(callee)):
        return False
    for helper in helpers:
        site = CallSite(function.module, function, call, bound=isinstance(call.func, ast.Attribute))
        arguments = helper.node.args
        given = {
            each.arg: list(argument(helper, site, each.arg))
            for each in (*helper.parameters(), arguments.vararg, arguments.kwarg)
            if each is not None
        }
        called = frozenset(key for key, nodes in given.items() if any(ast.unparse(n) in captured for n in nodes))
        theirs = [key for key, nodes in given.items() if any(_holds(each, name) for each in nodes)]
        if not theirs or any(is_kept(life, helper, each, captured | called, depth + 1) for each in theirs):
            return False
    return True


def _captured_calls(life: Life) -> frozenset[str]:
    """What the region's block calls: being called, these don't hold on to their arguments, as far as one can see."""
    return frozenset(
        ast.unparse(node.func)
        for statement in life.declaration.body or ()
        for node in (statement, *walk_own(statement))
        if isinstance(node, ast.Call)
    )


def _holds(value: ast.expr | None, name: str) -> bool:
    """Whether an expression is the object itself, a part of it, or a container with it."""
    if isinstance(value, ast.Name):
        return value.id == name
    if isinstance(value, (ast.Tuple, ast.List, ast.Set)):
        return any(_holds(each, name) for each in value.elts)
    if isinstance(value, ast.Dict):
        return any(_holds(each, name) for each in value.values)
    if isinstance(value, (ast.Subscript, ast.Attribute, ast.Starred)):
        return _holds(value.value, name)
    if isinstance(value, ast.IfExp):
        return _holds(value.body, name) or _holds(value.orelse, name)
    return False


def _may_hold(call: ast.Call, captured: frozenset[str]) -> bool:
    """Anything but torch's functions, a tensor's methods, and what is captured."""
    name = last_name(call.func)
    if name in _KEEPING or name[:1].isupper():
        return True
    if ast.unparse(call.func) in captured or name in MAKING | MOVING or name.endswith("_"):
        return False
    root = call.func
    while isinstance(root, ast.Attribute):
        root = root.value
    return not (isinstance(root, ast.Name) and root.id in ("torch", "F", "nn", "print", "len"))


def _report(
    life: Life, function: FunctionInfo | None, module: Module, node: ast.expr, message: str,
    confidence: Confidence = Confidence.LIKELY,
) -> Around:  # fmt: skip
    made = Related(module.display, node.lineno, "made here")
    return story.finding(
        life, "CG504", function, module, node, message, "the graph reads it after it is freed", confidence, help=_HELP,
        related=(made, story.captured_at(life), *story.replayed_at(life, None)),
    )  # fmt: skip
