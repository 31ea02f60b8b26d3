"""Which host values can differ between capture and replay, and why."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from capturelint.model import Confidence
from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import dotted_name, store_targets, walk_own
from capturelint.values import lazily_captured as lazy
from capturelint.values.change import Cause, Change, of_causes
from capturelint.values.domain import (
    Device,
    Mapping,
    Sequence,
    Tensor,
    Value,
    changed,
    join,
    options,
)
from capturelint.values.lazy import with_element
from capturelint.values.memo import unset

if TYPE_CHECKING:
    from capturelint.values.engine import Engine


_MAX_STORES = 8

#: a function, None at module level, and a statement of it that writes some state
Write = tuple[FunctionInfo, ast.AST]


def of_attribute(engine: Engine, name: str, writes: Iterable[Write]) -> Change | None:
    """Why ``something.name`` changes: code other than that which constructs the object assigns it."""
    if engine.replays.is_key(name):
        return None  # a graph is captured for each of its values
    writes = list(writes)
    causes = [cause for method, node in writes if (cause := _cause(engine, name, method, node)) is not None]
    if _latches(writes):
        causes = [cause for cause in causes if cause.function is not None and engine.replays.near(cause.function)]
    return of_causes(causes)


def _latches(writes: list[Write]) -> bool:
    """Whether all code that assigns it says the same word: ``self.verified = True``, which holds from then on."""
    if not all(isinstance(node, (ast.Assign, ast.AnnAssign)) for _, node in writes):
        return False
    values = [getattr(node, "value", None) for _, node in writes]
    return len({ast.dump(each) for each in values if isinstance(each, ast.Constant)}) == 1 and all(
        isinstance(each, ast.Constant) for each in values
    )


def _cause(engine: Engine, name: str, function: FunctionInfo, node: ast.AST) -> Cause | None:
    if _prepares(engine, function, node) or _set_once(function, node, name) or _is_key(engine, node):
        return None
    carried = isinstance(node, ast.AugAssign) or _reads_itself(node, name)
    reason = f"`{name}` is {_verb(node)} in {function.qualname} ({function.module.display}:{_line(node, function)})"
    return Cause(reason, _evidence(engine, function, carried), function=function, carried=carried)


def _evidence(engine: Engine, function: FunctionInfo, carried: bool) -> Confidence:
    """Likely where the write is seen to run around replays, or counts; much else is set once, before any capture."""
    if _restores(function):
        return Confidence.POSSIBLE
    if carried or not engine.replays.any or engine.replays.near(function):
        return Confidence.LIKELY
    if _changes_what_replays(engine, function) or lazy.stands_beside(function, engine.replays):
        return Confidence.LIKELY
    return Confidence.POSSIBLE


def _changes_what_replays(engine: Engine, function: FunctionInfo) -> bool:
    """``swap_adapter(pipe.model, state)``, by code that neither constructs the object nor has it captured next."""
    return any(not constructs(holder, set()) and not _sets_up(holder) for holder in engine.replays.giving(function))


def _restores(function: FunctionInfo) -> bool:
    """A context manager sets state for a block, and puts back what was there."""
    return function.name in ("__enter__", "__exit__", "__aenter__", "__aexit__") or function.has_decorator(
        "contextmanager", "asynccontextmanager"
    )


def _prepares(engine: Engine, function: FunctionInfo, node: ast.AST | None = None) -> bool:
    """Whether a function runs before captures, records one, or ends it all."""
    if tears_down(function):
        return True
    if _captures(engine, function) and not (function in engine.replays.functions and lazy.passes_by(function, node)):
        return True
    if _first_word(function) in _ALSO_LATER and engine.replays.near(function):
        return False
    return constructs(function, set()) or _sets_up(function)


def _verb(node: ast.AST) -> str:
    if isinstance(node, ast.AugAssign):
        return "advanced"
    return "changed" if isinstance(node, ast.Call) else "assigned"


def _line(node: ast.AST, function: FunctionInfo) -> int:
    line: int = getattr(node, "lineno", function.line)
    return line


def _reads_itself(node: ast.AST, name: str) -> bool:
    """``self.n = self.n + 1``."""
    value = getattr(node, "value", None)
    return isinstance(node, ast.Assign) and any(
        isinstance(each, ast.Attribute) and each.attr == name
        for each in ast.walk(value or node)
        if not (isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store))
    )


def _is_key(engine: Engine, node: ast.AST) -> bool:
    value = getattr(node, "value", None)
    return isinstance(value, ast.Name) and engine.replays.is_key(value.id)


def _set_once(function: FunctionInfo, node: ast.AST, name: str) -> bool:
    """``if self.n is None: self.n = ...`` and ``self.n = None``: set on demand, and dropped."""
    value = getattr(node, "value", None)
    if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(value, ast.Constant) and value.value is None:
        return True
    for each in walk_own(function.node, into_nested=True):
        if isinstance(each, ast.If) and any(node is inner for inner in ast.walk(each)):
            for side, body in ((True, each.body), (False, each.orelse)):
                if any(known.rpartition(".")[2] == name for known in unset(each.test, side)):
                    if any(node is inner for statement in body for inner in ast.walk(statement)):
                        return True
    return False


def of_growth(engine: Engine, method: FunctionInfo, name: str, node: ast.AST) -> Change | None:
    """Why the length of the container in ``self.name`` changes: a method appends to it after construction."""
    if constructs(method, set()) or _captures(engine, method) or not isinstance(node, ast.Call):
        return None
    sure = Confidence.LIKELY if not engine.replays.any or engine.replays.near(method) else Confidence.POSSIBLE
    reason = f"`{name}` grows in {method.qualname} ({method.module.display}:{node.lineno})"
    return Change((Cause(reason, sure, function=method, carried=True),))


_SETTING_UP = (
    "init", "setup", "build", "create", "make", "configure", "allocate", "alloc", "load", "from", "post", "process",
    "register", "compile", "prepare_model", "finalize",
)  # fmt: skip


#: words of these that a step may begin with as well: what replays calls it then
_ALSO_LATER = ("configure", "load", "process", "post")


_TEARING_DOWN = ("close", "shutdown", "destroy", "dispose", "release", "teardown", "cleanup", "free", "del", "exit")


def constructs(method: FunctionInfo, seen: set[FunctionInfo]) -> bool:
    """Whether a method only runs while its object is made: it says so, or every call of it stands in such a method."""
    if method.name in ("__init__", "__post_init__", "__new__", "__init_subclass__", "__setstate__"):
        return True
    if method.is_class_method and _makes_own(method):
        return True
    if method.owner is None or method in seen:
        return False
    seen.add(method)
    callers = [holder for holder, _ in method.module.calls_named(method.name) if holder is not None]
    if callers:
        return all(holder.owner is not None and constructs(holder, seen) for holder in callers)
    return _sets_up(method)


def only_sets_up(method: FunctionInfo) -> bool:
    """Whether a function's name says that it runs before the first replay, or after the last."""
    return _sets_up(method) or tears_down(method)


def _sets_up(method: FunctionInfo) -> bool:
    """A method whose name says that it prepares the object for all that follows."""
    return _first_word(method) in _SETTING_UP and not method.name.startswith("init_forward")


def tears_down(method: FunctionInfo) -> bool:
    """A method whose name says that nothing is replayed after it."""
    return _first_word(method) in _TEARING_DOWN


def _first_word(method: FunctionInfo) -> str:
    return method.name.strip("_").partition("_")[0]


def _makes_own(method: FunctionInfo) -> bool:
    """A class method that makes an object of its class, an alternative constructor."""
    name = method.parameters()[0].arg if method.parameters() else ""
    return any(
        isinstance(node, ast.Call) and dotted_name(node.func) in (name, f"{name}.__new__")
        for node in walk_own(method.node)
    )


def _captures(engine: Engine, method: FunctionInfo) -> bool:
    """A method that records a graph sets what it sets before or for that graph, not between replays."""
    return engine.remembered(
        ("captures", method),
        lambda: any(lazy.is_capture(node) for node in walk_own(method.node, into_nested=True)),
    )


def of_global(engine: Engine, module: Module, name: str, value: Value) -> Value:
    """A module-level name that functions rebind or mutate holds changing host state."""
    rebound = dict.fromkeys(module.uses.globals(name))
    causes: list[Cause] = []
    for info in rebound:
        for node in _binding_names(engine, info).get(name, ()):
            causes.append(_global_cause(engine, name, info, node, "rebound"))
            stored = getattr(node, "value", None)
            if isinstance(stored, ast.expr) and not isinstance(node, ast.AugAssign):
                scope = engine.function_scope(info, engine.receiver_of(info))
                value = join(value, engine.evaluate_in(scope, stored))
    causes.extend(_mutations(engine, module, name, value))
    value = _with_stored_items(engine, module, name, value)
    change = of_causes(causes)
    if change is None:
        return value
    return join(*(changed(option, change) for option in options(value)))


def _binding_names(engine: Engine, info: FunctionInfo) -> dict[str, list[ast.AST]]:
    """What a function's own code binds plain names by, in the order of the source."""

    def work_out() -> dict[str, list[ast.AST]]:
        found: dict[str, list[ast.AST]] = {}
        for node in walk_own(info.node):
            for target in store_targets(node):
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node)
        return found

    return engine.remembered(("binding names", info), work_out)


def _global_cause(engine: Engine, name: str, info: FunctionInfo, node: ast.AST, verb: str) -> Cause:
    reason = f"`{name}` is {verb} in {info.qualname} ({info.module.display}:{_line(node, info)})"
    carried = isinstance(node, (ast.AugAssign, ast.Call))
    sure = Confidence.POSSIBLE if _prepares(engine, info) else _evidence(engine, info, carried)
    return Cause(reason, sure, function=info, carried=carried)


def _with_stored_items(engine: Engine, module: Module, name: str, value: Value) -> Value:
    """A registry: ``REGISTRY[key] = function`` inside a decorator adds to what the container may hold."""
    if not any(isinstance(option, (Mapping, Sequence)) for option in options(value)):
        return value
    for info, node in module.uses.item_stores(name)[:_MAX_STORES]:
        stored = getattr(node, "value", None)
        if isinstance(stored, ast.expr) and isinstance(node, ast.Assign):
            scope = engine.function_scope(info, engine.receiver_of(info))
            value = with_element(value, engine.evaluate_in(scope, stored)) or value
    return value


def _mutations(engine: Engine, module: Module, name: str, value: Value) -> Iterator[Cause]:
    """``COUNT["n"] += 1`` and ``HOST.fill_(3)`` inside a function change what a module-level name holds."""
    found = list(options(value))
    if any(isinstance(option, (Mapping, Sequence)) for option in found):
        for info, node in module.uses.item_stores(name)[:_MAX_STORES]:
            yield _global_cause(engine, name, info, node, "changed")
        for method in GROWING:
            for holder, call in module.calls_named(method):
                if holder is not None and _called_on(call, name) and any(isinstance(o, Sequence) for o in found):
                    yield _global_cause(engine, name, holder, call, "changed")
    if any(isinstance(option, Tensor) and option.device is Device.HOST for option in found):
        for info, node in module.uses.item_stores(name)[:_MAX_STORES]:
            yield _global_cause(engine, name, info, node, "written")
        for method in IN_PLACE:
            for holder, call in module.calls_named(method):
                if holder is not None and _called_on(call, name):
                    yield _global_cause(engine, name, holder, call, "written")


#: methods that change how long a list is, and tensor methods that write another value into a tensor
GROWING = ("append", "extend", "insert", "pop", "popleft", "appendleft", "remove", "clear", "add", "discard", "update")
IN_PLACE = (
    "copy_",
    "fill_",
    "zero_",
    "add_",
    "sub_",
    "mul_",
    "div_",
    "set_",
    "random_",
    "uniform_",
    "normal_",
    "clamp_",
)


def _called_on(call: ast.Call, name: str) -> bool:
    """``name.append(...)``, ``name[:n].copy_(...)``."""
    if not isinstance(call.func, ast.Attribute):
        return False
    owner = call.func.value
    while isinstance(owner, ast.Subscript):
        owner = owner.value
    return isinstance(owner, ast.Name) and owner.id == name
