"""Code that runs once: ``if self.x is None: self.x = ...`` has run in the warm-up before a capture gets to it.

What such code does to the device is a hazard only where nothing ran before, which this code alone can't tell.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.syntax import dotted_name, last_name, store_targets, walk_all
from capturelint.values.domain import Instance, options
from capturelint.values.scope import Scope

if TYPE_CHECKING:
    from capturelint.values.frame import Frame


RAN_BEFORE = "it runs until it has set what it asks for: the warm-up has run it"


def runs_once(node: ast.If, side: bool, body: list[ast.stmt], frame: Frame) -> bool:
    """Whether a branch runs only until it has set what the test asks for."""
    if side and _grows(node.test, body, frame):
        return True
    if _moved_once(node.test, body):
        return True
    names = unset(node.test, side)
    return any(_sets(body, name, frame) if _outlives(name, frame) else _keeps(body, name) for name in names)


def _moved_once(test: ast.expr, body: list[ast.stmt]) -> bool:
    """``if table.device != x.device: self.table = table.to(x.device)``: done once, by whatever name the table goes."""
    asked = {name.rpartition(".")[0] for name in _names_in(test) if name.rpartition(".")[2] in ("device", "dtype")}
    for statement in body if asked else ():
        for node in walk_all(statement):
            if not isinstance(node, ast.Assign) or not any(isinstance(each, ast.Attribute) for each in node.targets):
                continue
            value = node.value
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _MOVES:
                if dotted_name(value.func.value) in asked:
                    return True
    return False


_MOVES = ("to", "cuda", "type", "float", "half", "bfloat16")
_SIZES = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_MAX_STEPS = 3


def _grows(test: ast.expr, body: list[ast.stmt], frame: Frame) -> bool:
    """``if capacity < n: cache[key] = make(n)``, where ``capacity`` comes from what is kept in ``cache``."""
    if isinstance(test, ast.BoolOp):
        return any(_grows(part, body, frame) for part in test.values)
    if not isinstance(test, ast.Compare) or not all(isinstance(each, _SIZES) for each in test.ops):
        return False
    return any(_outlives(name, frame) and _sets(body, name, frame) for name in _sources(test, frame))


def _sources(test: ast.expr, frame: Frame) -> set[str]:
    """The names that a test rests on, through the local names between."""
    found = _names_in(test)
    if frame.function is None:
        return found
    assigned = frame.function.assigned
    fresh = found
    for _ in range(_MAX_STEPS):
        fresh = {name for each in fresh for value in assigned.get(each, ()) for name in _names_in(value)} - found
        found = found | fresh
    return found


def _names_in(node: ast.expr) -> set[str]:
    chains = (dotted_name(each) for each in walk_all(node) if isinstance(each, (ast.Name, ast.Attribute)))
    return {name for name in chains if name is not None}


def rest_runs_once(node: ast.If, rest: list[ast.stmt], frame: Frame) -> bool:
    """``if self.x is not None: return`` and then code that sets ``self.x``: the test's body leaves."""
    return runs_once(node, False, rest, frame)


def unset(test: ast.expr, holds: bool) -> set[str]:
    """The names and attributes that are not set yet when the test holds (or fails)."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return unset(test.operand, not holds)
    if isinstance(test, ast.BoolOp):
        # `a is None or too_small` is the same idiom; for `set and ...` failing, either may be the reason
        return {name for part in test.values for name in unset(part, holds)}
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compared(test, holds)
    if isinstance(test, ast.Call) and last_name(test.func) == "hasattr" and len(test.args) == 2:
        return set() if holds else _attribute(test)
    name = dotted_name(test)
    return {name} if name is not None and not holds else set()


def _compared(test: ast.Compare, holds: bool) -> set[str]:
    operator, other = test.ops[0], test.comparators[0]
    if isinstance(operator, (ast.Is, ast.IsNot)) and isinstance(other, ast.Constant) and other.value is None:
        return _kept_in(test.left) if isinstance(operator, ast.Is) is holds else set()
    if isinstance(operator, (ast.In, ast.NotIn)) and isinstance(operator, ast.NotIn) is holds:
        name = dotted_name(other)
        return {name} if name is not None else set()
    return set()


def _kept_in(asked: ast.expr) -> set[str]:
    """What is unset where ``asked`` is None: a name, an attribute, a container's item, or what a walrus binds."""
    if isinstance(asked, ast.NamedExpr):
        return _kept_in(asked.target) | _kept_in(asked.value)
    if isinstance(asked, ast.Call):
        if last_name(asked.func) == "getattr":
            return _attribute(asked)
        if not isinstance(asked.func, ast.Attribute) or asked.func.attr != "get":
            return set()
        asked = asked.func.value
    name = dotted_name(asked)
    return {name} if name is not None else set()


def ternary(node: ast.Assign) -> bool:
    """``self.x = self.x if self.x is not None else ...``: what is kept stays."""
    value = node.value
    if not isinstance(value, ast.IfExp):
        return False
    names = {dotted_name(target) for target in node.targets if isinstance(target, ast.Attribute)}
    return any(
        dotted_name(other) in names and unset(value.test, side) & names
        for side, other in ((True, value.orelse), (False, value.body))
    )


def after_missing(handler: ast.ExceptHandler) -> bool:
    """``try: return self.x``, ``except AttributeError: self.x = ...``."""
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type] if handler.type else []
    if not any(last_name(each) in ("AttributeError", "KeyError") for each in caught):
        return False
    targets = (t for statement in handler.body for node in walk_all(statement) for t in store_targets(node))
    return any(isinstance(target, (ast.Attribute, ast.Subscript)) for target in targets)


def _attribute(call: ast.Call) -> set[str]:
    if len(call.args) < 2:
        return set()
    base, name = dotted_name(call.args[0]), call.args[1]
    if base is None or not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        return set()
    return {f"{base}.{name.value}"}


def _outlives(name: str, frame: Frame) -> bool:
    """Attributes and module-level names outlive the call; a local name does not."""
    if "." in name:
        return True
    if not isinstance(frame.scope, Scope) or name not in frame.scope.ever:
        return True
    return name in frame.scope.global_names or name in frame.scope.outer_names


def _keeps(body: list[ast.stmt], name: str) -> bool:
    """``found = cache.get(key)``, ``if found is None: ...; cache[key] = found``: the local name is put away."""
    return any(
        isinstance(node, ast.Assign)
        and any(isinstance(each, ast.Name) and each.id == name for each in (node.value, *node.targets))
        and any(isinstance(target, (ast.Attribute, ast.Subscript)) for target in node.targets)
        for statement in body
        for node in walk_all(statement)
    )


def _sets(body: list[ast.stmt], name: str, frame: Frame) -> bool:
    attribute = name.rpartition(".")[2]
    for statement in body:
        for node in walk_all(statement):
            for target in store_targets(node):
                while isinstance(target, ast.Subscript):
                    target = target.value
                if dotted_name(target) == name:
                    return True
            if isinstance(node, ast.Call):
                if last_name(node.func) in ("append", "add", "update", "setdefault", "setattr", "register_buffer"):
                    if isinstance(node.func, ast.Attribute) and dotted_name(node.func.value) == name:
                        return True
                    if any(isinstance(each, ast.Constant) and each.value == attribute for each in node.args):
                        return True
                if "." in name and _callee_sets(node, name, frame):
                    return True
    return False


def _callee_sets(call: ast.Call, name: str, frame: Frame) -> bool:
    """``self._build()`` where ``_build`` is a method that stores the attribute; so on another object that is asked."""
    if not isinstance(call.func, ast.Attribute):
        return False
    owner, _, attribute = name.rpartition(".")
    info: FunctionInfo | None = frame.function
    while info is not None and info.owner is None:
        info = info.parent
    if info is not None and info.owner is not None and _stores(info.owner, call.func.attr, attribute, frame):
        return True
    if dotted_name(call.func.value) != owner or owner == "self":
        return False
    return any(_stores(cls, call.func.attr, attribute, frame) for cls in _classes_of(owner, frame))


def _classes_of(dotted: str, frame: Frame) -> list[ClassInfo]:
    """The project classes of the object that a name or a chain of attributes stands for."""
    from capturelint.values import attributes

    first, *rest = dotted.split(".")
    value = frame.engine.name(first, frame)
    for part in rest:
        value = attributes.get(value, part, frame)
    return [option.site.cls for option in options(value) if isinstance(option, Instance)]


def _stores(cls: ClassInfo, method: str, attribute: str, frame: Frame, depth: int = 0) -> bool:
    """Whether a method stores an attribute of its object, or calls one of its own that does."""
    return frame.engine.remembered(
        ("stores it", cls, method, attribute, depth), lambda: _finds_store(cls, method, attribute, frame, depth)
    )


def _finds_store(cls: ClassInfo, method: str, attribute: str, frame: Frame, depth: int) -> bool:
    for entry in frame.engine.mro(cls):
        if not isinstance(entry, ClassInfo):
            continue
        if any(each.name == method for each, _ in entry.attribute_stores(attribute)):
            return True
        info = entry.methods.get(method)
        if info is None or depth >= _MAX_STEPS or not info.parameters():
            continue
        called = frame.engine.remembered(("own methods called", info), partial(_own_methods_called, info))
        return any(_stores(cls, each, attribute, frame, depth + 1) for each in called if each != method)
    return False


def _own_methods_called(info: FunctionInfo) -> list[str]:
    receiver = info.parameters()[0].arg
    return sorted(
        {
            node.func.attr
            for node in walk_all(info.node)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and dotted_name(node.func.value) == receiver
        }
    )
