"""Functions that capture at their first call and replay at every call: what they set beside the capture changes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from capturelint.project.definitions import FunctionInfo
from capturelint.project.syntax import contains, walk_own

if TYPE_CHECKING:
    from capturelint.values.replays import Replays

_CAPTURES = ("capture_begin", "CUDAGraph", "make_graphed_callables")


def is_capture(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in _CAPTURES


def passes_by(function: FunctionInfo, node: ast.AST | None) -> bool:
    """Whether a statement runs at calls that capture nothing: ``if self.graph is None:`` captures, and it stands
    outside of that branch."""
    branches = _branches(function) if node is not None else []
    return bool(branches) and not any(contains(branch, node) for branch in branches if node is not None)


def stands_beside(function: FunctionInfo, replays: Replays) -> bool:
    """``set_mode`` of an object that captures at the first call for each key, whenever that comes."""
    return (
        function.owner is not None
        and not function.name.startswith("_")
        and not list(function.module.calls_named(function.name))
        and any(method in replays.functions and _branches(method) for method in function.owner.methods.values())
    )


def _branches(function: FunctionInfo) -> list[ast.If]:
    captures = [each for each in walk_own(function.node) if is_capture(each)]
    return [
        branch
        for branch in walk_own(function.node)
        if isinstance(branch, ast.If) and any(contains(branch, each) for each in captures)
    ]
