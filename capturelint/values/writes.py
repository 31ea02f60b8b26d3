"""Who writes an object's state: through other names for it, into tensors in place, into items of containers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import contains, last_name, walk_all, walk_own
from capturelint.values.changing import GROWING, IN_PLACE, Write
from capturelint.values.domain import MISSING, ClassValue, Host, Instance, Value, options

if TYPE_CHECKING:
    from capturelint.values.engine import Engine

#: a name that is mentioned in more files says too little of whose attribute it is
_MAX_FILES = 24
_CONSTRUCTORS = ("__init__", "__post_init__", "__new__", "setup", "__attrs_post_init__")


def from_elsewhere(engine: Engine, value: Instance, name: str) -> Iterator[Write]:
    """``runner.limit = ...`` where ``runner`` is such an object: assignments that the class itself does not show."""
    few = len(engine.project.search.mentioning(name)) <= _MAX_FILES
    for module in engine.project.modules(engine.project.search.storing(name)) if few else ():
        for holder, statement, receiver in module.uses.attribute_stores(name):
            if holder is None or (isinstance(receiver, ast.Name) and receiver.id in ("self", "cls")):
                continue
            if concerns(engine, module, holder, receiver, value) or _told_apart(
                engine, module, holder, statement, receiver, value
            ):
                yield holder, statement


def into_tensor(engine: Engine, value: Instance, name: str) -> Iterator[Write]:
    """``self.lens.copy_(...)``, ``self.lens[:n] = ...``: the tensor stays, what it holds does not."""
    for module in _modules(engine, name):
        for method in IN_PLACE:
            for holder, call in module.calls_named(method):
                owner = _owner(call.func, name)
                if holder is not None and owner is not None and _writes(engine, module, holder, owner, value):
                    yield holder, call
        for holder, statement, target in module.uses.attribute_items(name):
            assert isinstance(target.value, ast.Attribute)
            if holder is not None and _writes(engine, module, holder, target.value.value, value):
                yield holder, statement


def into_container(engine: Engine, value: Instance, name: str) -> Iterator[tuple[object, Write]]:
    """``self.state["n"] += 1``: the key (MISSING where it is not known) with each write."""
    for module in _modules(engine, name):
        for holder, statement, target in module.uses.attribute_items(name):
            assert isinstance(target.value, ast.Attribute)
            if holder is None or not _writes(engine, module, holder, target.value.value, value):
                continue
            scope = engine.function_scope(holder, engine.receiver_of(holder))
            key = engine.evaluate_in(scope, target.slice)
            yield (key.const if isinstance(key, Host) else MISSING), (holder, statement)


def growing(engine: Engine, value: Instance, name: str) -> Iterator[Write]:
    """``self.requests.pop()``, ``runner.requests.append(r)``: another length."""
    for module in _modules(engine, name):
        for method in GROWING:
            for holder, call in module.calls_named(method):
                owner = _owner(call.func, name)
                if holder is not None and owner is not None and _writes(engine, module, holder, owner, value):
                    yield holder, call


def _modules(engine: Engine, name: str) -> list[Module]:
    files = engine.project.search.mentioning(name)
    return engine.project.modules(files, _MAX_FILES)


def _owner(func: ast.expr, name: str) -> ast.expr | None:
    """``runner`` of ``runner.lens[:n].copy_``."""
    owner = func.value if isinstance(func, ast.Attribute) else None
    while isinstance(owner, ast.Subscript):
        owner = owner.value
    return owner.value if isinstance(owner, ast.Attribute) and owner.attr == name else None


def _writes(engine: Engine, module: Module, holder: FunctionInfo, receiver: ast.expr, value: Instance) -> bool:
    return holder.name not in _CONSTRUCTORS and concerns(engine, module, holder, receiver, value)


def concerns(engine: Engine, module: Module, holder: FunctionInfo | None, receiver: ast.expr, value: Instance) -> bool:
    """Whether an expression, in a function or at module level, may stand for an object."""
    scope = engine.scope_of(holder, module)
    owner: Value = engine.evaluate_in(scope, receiver)
    return any(isinstance(option, Instance) and _related(engine, option, value) for option in options(owner))


def _told_apart(
    engine: Engine, module: Module, holder: FunctionInfo, statement: ast.AST, receiver: ast.expr, value: Instance
) -> bool:
    """``for m in model.modules(): if not isinstance(m, Lora): continue``, and then ``m.scaling = ...``."""
    if not isinstance(receiver, ast.Name):
        return False
    for test, inside in _type_tests(holder, receiver.id):
        if inside is None or contains(inside, statement):
            cls = engine.evaluate_in(engine.scope_of(holder, module), test.args[1])
            if any(isinstance(each, ClassValue) and each.info in engine.mro(value.site.cls) for each in options(cls)):
                return True
    return False


def _type_tests(holder: FunctionInfo, name: str) -> Iterator[tuple[ast.Call, ast.If | None]]:
    """The ``isinstance`` tests of a name, with the branch that each opens; None: all that comes after it."""
    for node in walk_own(holder.node):
        if not isinstance(node, ast.If):
            continue
        refused = isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not)
        for test in walk_all(node.test):
            if isinstance(test, ast.Call) and last_name(test.func) == "isinstance" and len(test.args) == 2:
                if isinstance(test.args[0], ast.Name) and test.args[0].id == name:
                    if not refused:
                        yield test, node
                    elif isinstance(node.body[-1], (ast.Continue, ast.Return, ast.Raise)):
                        yield test, None


def _related(engine: Engine, owner: Instance, value: Instance) -> bool:
    if owner.site is value.site:
        return True
    if not (owner.site.generic or value.site.generic):
        return False  # two objects that are told apart
    return owner.site.cls in engine.mro(value.site.cls) or value.site.cls in engine.mro(owner.site.cls)
