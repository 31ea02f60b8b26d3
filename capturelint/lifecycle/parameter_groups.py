"""Stores into an optimizer's parameter groups: ``for group in optimizer.param_groups: group["lr"] = value``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import walk_own
from capturelint.values import training
from capturelint.values.domain import Unknown, Value, options
from capturelint.values.engine import Engine
from capturelint.values.training import Made

_MAX_FILES = 20
#: names that stand for other names on the way from a group to its optimizer
_MAX_STEPS = 3


@dataclass(frozen=True, eq=False, slots=True)
class GroupStore:
    """``group[key] = value`` or ``group.update(key=value)``; ``target`` is what a finding underlines.

    ``optimizer`` is the expression that has the groups.
    """

    module: Module
    function: FunctionInfo | None
    statement: ast.AST
    target: ast.AST
    optimizer: ast.expr
    value: ast.expr
    augmented: bool = False


def stores(engine: Engine, *keys: str) -> Iterator[GroupStore]:
    """Every store of one of ``keys`` into a parameter group, in the project's code."""
    for module in engine.project.modules(engine.project.search.mentioning("param_groups"), _MAX_FILES):
        if any(module.holds(key) for key in keys):
            for function in (None, *module.all_functions()):
                yield from _in_function(module, function, keys)


def _in_function(module: Module, function: FunctionInfo | None, keys: tuple[str, ...]) -> Iterator[GroupStore]:
    holder = function.node if function is not None else module.tree
    for statement in walk_own(holder):
        for target, group, value in _stored(statement, keys):
            optimizer = _optimizer_of(holder, group)
            if optimizer is not None:
                augmented = isinstance(statement, ast.AugAssign)
                yield GroupStore(module, function, statement, target, optimizer, value, augmented)


def _stored(node: ast.AST, keys: tuple[str, ...]) -> Iterator[tuple[ast.AST, ast.expr, ast.expr]]:
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Subscript) and _is_key(target.slice, keys):
                yield target, target.value, node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "update":
        for keyword in node.keywords:
            if keyword.arg in keys:
                yield node, node.func.value, keyword.value
        for argument in node.args:
            if isinstance(argument, ast.Dict):
                for name, value in zip(argument.keys, argument.values, strict=True):
                    if name is not None and _is_key(name, keys):
                        yield node, node.func.value, value


def _is_key(node: ast.expr, keys: tuple[str, ...]) -> bool:
    return isinstance(node, ast.Constant) and node.value in keys


def _optimizer_of(holder: ast.AST, node: ast.expr, steps: int = 0) -> ast.expr | None:
    """The ``optimizer`` of an expression that is one of ``optimizer.param_groups``, or what they are read from."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and part.attr == "param_groups":
            return part.value
    while isinstance(node, ast.Subscript):
        node = node.value
    if not isinstance(node, ast.Name) or steps >= _MAX_STEPS:
        return None
    for statement in walk_own(holder):
        source: ast.expr | None = None
        if isinstance(statement, (ast.For, ast.AsyncFor)) and _binds(statement.target, node.id):
            source = statement.iter
        elif isinstance(statement, ast.Assign) and any(_binds(target, node.id) for target in statement.targets):
            source = statement.value
        if source is not None and not _mentions(source, node.id):
            names = [each for each in ast.walk(source) if isinstance(each, (ast.Attribute, ast.Name))]
            for each in (source, *names):
                found = _optimizer_of(holder, each, steps + 1)
                if found is not None:
                    return found
    return None


def _binds(target: ast.expr, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(target)) and not isinstance(
        target, (ast.Subscript, ast.Attribute)
    )


def _mentions(node: ast.expr, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))


def concerns(engine: Engine, module: Module, function: FunctionInfo | None, node: ast.expr, made: Made) -> bool | None:
    """Whether ``node`` is the optimizer that is meant; None where that can't be told."""
    scope = engine.scope_of(function, module)
    value = engine.evaluate_in(scope, node)
    return same_object(engine, value, made)


def same_object(engine: Engine, value: Value, made: Made) -> bool | None:
    """Whether a value is the optimizer that is meant; None where that can't be told."""
    found = list(training.optimizers(engine, value))
    known = [each for each in found if each.made is not None]
    if made.made is not None and any(each.made is not None and each.made == made.made for each in found):
        return True
    open_ended = any(isinstance(option, Unknown) or training.is_base(option) for option in options(value))
    if open_ended or not known or made.made is None:
        return None
    return False


def switched_on(engine: Engine, optimizer: Made, key: str) -> bool:
    """Whether some code sets a flag in the groups of this optimizer, or of one that may be it."""
    return any(
        not (isinstance(store.value, ast.Constant) and not store.value.value)
        and concerns(engine, store.module, store.function, store.optimizer, optimizer) is not False
        for store in stores(engine, key)
    )
