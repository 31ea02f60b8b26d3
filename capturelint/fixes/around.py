"""Fixes that need no facts, only the statement or call at a finding: what is rebound, and how a graph is captured.

All of them are unsafe. What keeps a buffer's address or changes how a capture is made may mean something else.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from capturelint.fixes.code import replacement
from capturelint.fixes.in_place import copying
from capturelint.fixes.keywords import with_keyword
from capturelint.model import Applicability, Edit, Fix, Span
from capturelint.passes.unit import characters
from capturelint.project.module import Module
from capturelint.values.facts import span_of

Builder = Callable[[Module, ast.expr], "Fix | None"]


def fix(module: Module, rule: str, span: Span) -> Fix | None:
    """The fix of a rule's finding at a place."""
    builder = BUILDERS[rule]
    node = next((each for each in _expressions(module, span.line) if characters(module, span_of(each)) == span), None)
    return builder(module, node) if node is not None else None


def _expressions(module: Module, line: int) -> list[ast.expr]:
    return [each for each in ast.walk(module.tree) if isinstance(each, ast.expr) and each.lineno == line]


def _unsafe(message: str, edit: Edit | None) -> Fix | None:
    return Fix(Applicability.UNSAFE, message, (edit,)) if edit is not None else None


def _assignment(module: Module, target: ast.expr) -> ast.Assign | None:
    return next(
        (each for each in ast.walk(module.tree) if isinstance(each, ast.Assign) and target in each.targets), None
    )


def _state(module: Module, node: ast.expr) -> Fix | None:
    """CG502: ``self.h = new`` in a region."""
    statement = _assignment(module, node)
    return _unsafe("update it in place", copying(module, statement, node)) if statement is not None else None


def _parameters(module: Module, node: ast.expr) -> Fix | None:
    """CG505: ``p.data = new``, ``load_state_dict(assign=True)`` and ``zero_grad()``."""
    if isinstance(node, ast.Attribute) and node.attr == "data":
        statement = _assignment(module, node)
        return _unsafe("write in place", copying(module, statement, node)) if statement is not None else None
    called = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
    if called == "load_state_dict":
        return _unsafe("copy into the parameters", with_keyword(module, node, "assign", "False"))
    if called == "zero_grad":
        return _unsafe("keep the gradients' memory", with_keyword(module, node, "set_to_none", "False"))
    return None


def _capture_mode(module: Module, node: ast.expr) -> Fix | None:
    """CG704: what other threads do is not this capture's business."""
    if not isinstance(node, ast.Call) or "thread_local" in ast.unparse(node):
        return None
    return _unsafe("let other threads be", with_keyword(module, node, "capture_error_mode", '"thread_local"'))


def _order(module: Module, node: ast.expr) -> Fix | None:
    """CG804: sizes from the largest down."""
    message = "capture the largest first"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sorted":
        return _unsafe(message, with_keyword(module, node, "reverse", "True"))
    if isinstance(node, (ast.List, ast.Tuple)):
        span = characters(module, span_of(node))
        return _unsafe(message, replacement(module, span, f"reversed({module.text_of(node)})"))
    return None


BUILDERS: Mapping[str, Builder] = {"CG502": _state, "CG505": _parameters, "CG704": _capture_mode, "CG804": _order}
