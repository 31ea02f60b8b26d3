"""Which host values can differ between capture and replay, and why."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from capturelint.project.definitions import FunctionInfo, dotted_name, walk_own
from capturelint.project.module import Module
from capturelint.values.domain import Device, Host, Mapping, Sequence, Tensor, Value, join, options
from capturelint.values.lazy import with_element

if TYPE_CHECKING:
    from capturelint.values.engine import Engine


_MAX_STORES = 8


def attribute_reason(name: str, outside: list[tuple[FunctionInfo, ast.AST]]) -> str | None:
    """Why ``self.name`` changes: a method other than those that construct the object assigns it."""
    for method, statement in outside:
        if constructs(method, set()) or _sets_up(method) or _tears_down(method) or _captures(method):
            continue
        line = getattr(statement, "lineno", method.line)
        verb = "advanced" if isinstance(statement, ast.AugAssign) else "assigned"
        return f"`{name}` is {verb} in {method.qualname} ({method.module.display}:{line})"
    return None


def growth_reason(method: FunctionInfo, name: str, node: ast.AST) -> str | None:
    """Why the length of the container in ``self.name`` changes: a method appends to it after construction."""
    if constructs(method, set()) or _captures(method) or not isinstance(node, ast.Call):
        return None
    return f"`{name}` grows in {method.qualname} ({method.module.display}:{node.lineno})"


_SETTING_UP = (
    "init", "setup", "build", "create", "make", "configure", "allocate", "alloc", "load", "from", "post", "process",
    "register", "compile", "prepare_model", "finalize",
)  # fmt: skip


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


def _sets_up(method: FunctionInfo) -> bool:
    """A method whose name says that it prepares the object for all that follows."""
    return _first_word(method) in _SETTING_UP and not method.name.startswith("init_forward")


def _tears_down(method: FunctionInfo) -> bool:
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


def _captures(method: FunctionInfo) -> bool:
    """A method that records a graph sets what it sets before or for that graph, not between replays."""
    for node in walk_own(method.node, into_nested=True):
        if isinstance(node, ast.Attribute) and node.attr in ("capture_begin", "CUDAGraph", "make_graphed_callables"):
            return True
    return False


def global_value(engine: Engine, module: Module, name: str, value: Value) -> Value:
    """A module-level name that functions rebind or mutate holds changing host state."""
    rebound = dict.fromkeys(module.uses.globals.get(name, []))
    reason = None
    for info in rebound:
        for node in walk_own(info.node):
            for target in _plain_targets(node):
                if isinstance(target, ast.Name) and target.id == name:
                    reason = f"`{name}` is rebound in {info.qualname} ({module.display}:{node.lineno})"  # type: ignore[attr-defined]
                    stored = getattr(node, "value", None)
                    if isinstance(stored, ast.expr) and not isinstance(node, ast.AugAssign):
                        value = join(
                            value, engine.evaluate_in(engine.function_scope(info, engine.receiver_of(info)), stored)
                        )
    reason = reason or _mutation(module, name, value)
    value = _with_stored_items(engine, module, name, value)
    if reason is None:
        return value
    return join(*(_changing(option, reason) for option in options(value)))


def _with_stored_items(engine: Engine, module: Module, name: str, value: Value) -> Value:
    """A registry: ``REGISTRY[key] = function`` inside a decorator adds to what the container may hold."""
    if not any(isinstance(option, (Mapping, Sequence)) for option in options(value)):
        return value
    for info, node in module.uses.item_stores.get(name, [])[:_MAX_STORES]:
        stored = getattr(node, "value", None)
        if isinstance(stored, ast.expr) and isinstance(node, ast.Assign):
            scope = engine.function_scope(info, engine.receiver_of(info))
            value = with_element(value, engine.evaluate_in(scope, stored)) or value
    return value


def _plain_targets(node: ast.AST) -> list[ast.expr]:
    from capturelint.project.definitions import store_targets

    return store_targets(node)


def _changing(value: Value, reason: str) -> Value:
    from capturelint.values.domain import MISSING

    if isinstance(value, Host) and not value.is_none:
        return replace(value, changing=reason, const=MISSING)
    if isinstance(value, Tensor) and value.device is Device.HOST:
        return replace(value, changing=reason)
    if isinstance(value, Mapping):
        items = tuple((key, _changing(item, reason)) for key, item in value.items)
        return Mapping(items, _changing(value.element, reason) if value.element else None)
    if isinstance(value, Sequence):
        return replace(value, changing=reason)
    return value


def _mutation(module: Module, name: str, value: Value) -> str | None:
    """``COUNT["n"] += 1`` inside a function changes what the module-level container holds."""
    if not any(isinstance(option, (Mapping, Sequence)) for option in options(value)):
        return None
    for info, node in module.uses.item_stores.get(name, []):
        return f"`{name}` is changed in {info.qualname} ({module.display}:{node.lineno})"  # type: ignore[attr-defined]
    return None
