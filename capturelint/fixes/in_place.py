"""``static_in = new`` to ``static_in.copy_(new)``: the tensor that the graph reads is filled instead of replaced."""

from __future__ import annotations

import ast

import libcst as cst

from capturelint.fixes.aliases import held_by_name_alone, uses
from capturelint.fixes.code import code, parsed, receiver, replacement, torch_name
from capturelint.fixes.layouts import same_layout
from capturelint.model import Applicability, Edit, Fix
from capturelint.passes.unit import characters
from capturelint.project.module import Module
from capturelint.values.facts import span_of

_COPY = "write into the tensor that the graph reads"
_CLONE = "keep a copy"


def filled(module: Module, function: ast.AST | None, statement: ast.AST, target: ast.expr) -> Fix | None:
    """The fix of a plain assignment to what the graph reads, in ``function`` (None: at module level).

    Safe where both tensors are seen to be made alike and no other name holds the old one: what else is written to
    ``target`` may have another shape or dtype, and somebody may count on the old tensor to stay as it was.
    """
    edit = copying(module, statement, target)
    if edit is None:
        return None
    assert isinstance(statement, ast.Assign)
    scope = function if function is not None else module.tree
    sure = (
        isinstance(target, ast.Name)
        and same_layout(module, scope, target.id, statement)
        and held_by_name_alone(scope, target.id, torch_name(module))
        and _is_let_go(scope, statement.value)
    )
    return Fix(Applicability.SAFE if sure else Applicability.UNSAFE, _COPY, (edit,))


def copying(module: Module, statement: ast.AST, target: ast.expr) -> Edit | None:
    """``target = value`` as a copy; ``target = value[:n]`` fills the first rows. The layout of the source stays."""
    if not isinstance(statement, ast.Assign) or statement.targets != [target] or _is_no_tensor(statement.value):
        return None
    assignment = _small_statement(module.text_of(statement))
    if not isinstance(assignment, cst.Assign):
        return None
    into = receiver(assignment.targets[0].target)
    if (rows := _rows(statement.value)) is not None:
        into = f"{into}[:{rows}]"
    text = f"{into}.copy_{_in_brackets(assignment.value)}"
    return replacement(module, characters(module, span_of(statement)), text)


def cloned(module: Module, node: ast.expr) -> Fix | None:
    """``static_out`` to ``static_out.clone()``."""
    if isinstance(node, (ast.Starred, ast.IfExp)):
        return None
    text = f"{receiver(parsed(module.text_of(node)))}.clone()"
    edit = replacement(module, characters(module, span_of(node)), text)
    return Fix(Applicability.UNSAFE, _CLONE, (edit,))


def _is_let_go(scope: ast.AST, value: ast.expr) -> bool:
    """Whether nothing more is done with a tensor that is given: what is written to it later would not be seen."""
    return not isinstance(value, ast.Name) or uses(scope, value.id) == 1


def _small_statement(text: str) -> cst.BaseSmallStatement | None:
    line = cst.parse_module(text + "\n").body[0]
    return line.body[0] if isinstance(line, cst.SimpleStatementLine) else None


def _in_brackets(value: cst.BaseExpression) -> str:
    """The value as the only argument of a call: brackets of its own, with their comments, become those of the call."""
    own = len(value.lpar) == 1 and not isinstance(value, (cst.Tuple, cst.GeneratorExp, cst.NamedExpr, cst.Yield))
    return code(value) if own else f"({code(value)})"


def _is_no_tensor(value: ast.expr) -> bool:
    """Containers and constants, and what is joined from containers."""
    if isinstance(value, ast.BinOp):
        return _is_no_tensor(value.left) or _is_no_tensor(value.right)
    kinds = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.JoinedStr)
    return isinstance(value, kinds) or (isinstance(value, ast.Constant) and not isinstance(value.value, (int, float)))


def _rows(value: ast.expr) -> str | None:
    """``n`` of ``new[:n]``."""
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
        bounds = value.slice
        plain = bounds.step is None and (bounds.lower is None or ast.unparse(bounds.lower) == "0")
        if bounds.upper is not None and plain:
            return ast.unparse(bounds.upper)
    return None
