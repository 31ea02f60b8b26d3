"""Functions that capture at their first call and replay at every call: what they set beside the capture changes."""

from __future__ import annotations

import ast

from capturelint.project.definitions import FunctionInfo, contains, walk_own

_CAPTURES = ("capture_begin", "CUDAGraph", "make_graphed_callables")


def is_capture(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in _CAPTURES


def passes_by(function: FunctionInfo, node: ast.AST | None) -> bool:
    """Whether a statement runs at calls that capture nothing: ``if self.graph is None:`` captures, and it stands
    outside of that branch."""
    if node is None:
        return False
    captures = [each for each in walk_own(function.node) if is_capture(each)]
    branches = [
        branch
        for branch in walk_own(function.node)
        if isinstance(branch, ast.If) and any(contains(branch, each) for each in captures)
    ]
    return bool(branches) and not any(contains(branch, node) for branch in branches)
