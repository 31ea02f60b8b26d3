"""Tests that a way through the code has met before: ``if self.side is not None`` twice takes the same side twice."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import lru_cache

from capturelint.streams.state import Assumption, State


def _parts(test: ast.expr) -> tuple[ast.expr, bool]:
    """A test without its negations, and whether it is meant as it stands."""
    meant = True
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, meant = test.operand, not meant
    return test, meant


@lru_cache(maxsize=4096)
def _text(test: ast.expr) -> tuple[str, bool]:
    """One spelling for a test and its opposite."""
    test, meant = _parts(test)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        opposite = {ast.IsNot: ast.Is, ast.NotEq: ast.Eq, ast.NotIn: ast.In}.get(type(test.ops[0]))
        if opposite is not None:
            positive = ast.Compare(test.left, [opposite()], test.comparators)
            return ast.unparse(positive), not meant
    return ast.unparse(test), meant


@lru_cache(maxsize=4096)
def _of_self(test: ast.expr) -> bool:
    return {node.id for node in ast.walk(test) if isinstance(node, ast.Name)} <= {"self"}


def _owner(test: ast.expr, function: object, receiver: object) -> object:
    """Tests of an object's attributes are the object's; those of local names hold in the function only."""
    return receiver if receiver is not None and _of_self(test) else function


def known(test: ast.expr, state: State, function: object, receiver: object) -> bool | None:
    """What the test gives on this way, as far as it was met before."""
    test, meant = _parts(test)
    if isinstance(test, ast.BoolOp):
        decides = isinstance(test.op, ast.Or)
        found = [known(part, state, function, receiver) for part in test.values]
        if decides in found:
            return decides is meant
        return None if None in found else (not decides) is meant
    text, positive = _text(test)
    owner = _owner(test, function, receiver)
    for each in state.assumed:
        if each.owner == owner and each.text == text:
            return (each.holds is positive) is meant
    return None


def assume(test: ast.expr, holds: bool, state: State, function: object, receiver: object) -> State:
    """The way on which the test gives ``holds``."""
    test, meant = _parts(test)
    holds = holds is meant
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is holds:
        for part in test.values:
            state = assume(part, holds, state, function, receiver)
    text, positive = _text(test)
    found = Assumption(_owner(test, function, receiver), text, holds is positive)
    return replace(state, assumed=state.assumed | {found})


def bind(target: ast.expr, value: ast.expr, state: State, function: object, receiver: object) -> State:
    """A name or attribute is bound: what was assumed of it no longer holds, what is bound may say something new."""
    flag = isinstance(value, ast.Constant) and (value.value is None or isinstance(value.value, bool))
    if not isinstance(target, (ast.Name, ast.Attribute)) or not (state.assumed or flag):
        return state
    name = _spelled(target)
    kept = frozenset(each for each in state.assumed if name not in _names(each.text))
    told = known(value, state, function, receiver) if isinstance(value, (ast.Compare, ast.BoolOp, ast.Name)) else None
    was_told, state = kept != state.assumed, replace(state, assumed=kept)
    load, nothing = _tests_of(name)
    if isinstance(value, ast.Constant) and flag:
        state = assume(nothing, value.value is None, state, function, receiver)
        told = bool(value.value)
    elif was_told and isinstance(value, ast.Call):
        state = assume(nothing, False, state, function, receiver)
    return assume(load, told, state, function, receiver) if told is not None else state


_spelled = lru_cache(maxsize=4096)(ast.unparse)


@lru_cache(maxsize=4096)
def _tests_of(name: str) -> tuple[ast.expr, ast.expr]:
    """The test of a name or attribute itself, and of whether it is None."""
    load = ast.parse(name, mode="eval").body
    return load, ast.Compare(load, [ast.Is()], [ast.Constant(value=None)])


@lru_cache(maxsize=4096)
def _names(text: str) -> frozenset[str]:
    """The names and dotted names that a test speaks of."""
    tree = ast.walk(ast.parse(text, mode="eval"))
    return frozenset(ast.unparse(node) for node in tree if isinstance(node, (ast.Name, ast.Attribute)))


def forget(state: State, function: object) -> State:
    """A function is left: its local names mean nothing outside."""
    kept = frozenset(each for each in state.assumed if each.owner != function)
    return state if kept == state.assumed else replace(state, assumed=kept)
