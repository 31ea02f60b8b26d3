"""Statements that only some machines run: those behind a test of the platform, found in the text of a function."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

_WORDS = ("hip", "cuda", "rocm", "npu", "xpu", "musa", "hpu", "tpu", "mps", "platform", "type_checking")
#: such words are about capturing, which code outside regions does at some times and not at others
_OF_CAPTURE = ("graph", "captur")


@dataclass(frozen=True, slots=True)
class Guard:
    """``tests``: what a statement stands behind, and how each comes out where it runs.

    ``alone``: nothing else decides whether it runs.
    """

    tests: tuple[tuple[ast.expr, bool], ...]
    alone: bool


def guards(node: ast.AST, nodes: Iterable[ast.AST]) -> dict[int, Guard]:
    """The guard of each statement of a function's (or module's) own code that has one, by the statement's identity."""
    if not any(isinstance(each, ast.If) and asks_for_platform(each.test) for each in nodes):
        return {}
    found: dict[int, Guard] = {}
    _read(getattr(node, "body", []), Guard((), alone=True), found)
    return found


def asks_for_platform(test: ast.expr) -> bool:
    """Whether a test names hardware or the platform, and nothing of captures."""
    names = [
        (each.id if isinstance(each, ast.Name) else each.attr).lower()
        for each in ast.walk(test)
        if isinstance(each, (ast.Name, ast.Attribute))
    ]
    return any(word in name for name in names for word in _WORDS) and not any(
        word in name for name in names for word in _OF_CAPTURE
    )


def _read(body: object, guard: Guard, found: dict[int, Guard]) -> None:
    if not isinstance(body, list):
        return  # of a lambda
    for statement in body:
        if guard.tests:
            found[id(statement)] = guard
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        if isinstance(statement, ast.If) and asks_for_platform(statement.test):
            for block, holds in ((statement.body, True), (statement.orelse, False)):
                _read(block, Guard((*guard.tests, (statement.test, holds)), guard.alone), found)
            continue
        within = Guard(guard.tests, alone=False)
        for name in ("body", "orelse", "finalbody"):
            _read(getattr(statement, name, []), within, found)
        for handler in getattr(statement, "handlers", []):
            _read(handler.body, within, found)
