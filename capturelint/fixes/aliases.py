"""Whether a tensor is known by one name alone: what nobody else holds can be written to, or moved, unseen."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from capturelint.project.syntax import children, last_name, walk_all
from capturelint.rulebook.ops import load_ops

#: methods that write a tensor's elements and nothing else of it
_FILLING = frozenset(("copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "add_", "sub_", "mul_", "div_"))
_FACTS = frozenset(("shape", "dtype", "device", "ndim", "size", "dim", "numel", "stride", "element_size", "layout"))
_LOOKING = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.FormattedValue, ast.Expr, ast.Assert)


def held_by_name_alone(scope: ast.AST, name: str, torch: str | None) -> bool:
    """Whether all that is done in ``scope`` with the tensor called ``name`` is to compute with it, or to fill it.

    False where it, or a view of it, gets another name, is handed to code that may keep it or changes its layout.
    What a graph is recorded of may see it: that is meant to hold it.
    """
    parents = {child: node for node in walk_all(scope) for child in children(node)}
    recorded = [node for node in walk_all(scope) if isinstance(node, ast.With) and _records(node)]
    found = _Uses(parents, recorded, torch)
    return all(found.is_harmless(node) for node in _uses(scope, name))


def uses(scope: ast.AST, name: str) -> int:
    """How often a name is read."""
    return sum(1 for _ in _uses(scope, name))


def _uses(scope: ast.AST, name: str) -> Iterator[ast.Name]:
    """Every use but those that bind the name; ``del`` counts."""
    for node in walk_all(scope):
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Store):
            yield node


def _records(node: ast.With) -> bool:
    return any(
        isinstance(each.context_expr, ast.Call) and last_name(each.context_expr.func) == "graph" for each in node.items
    )


class _Uses:
    def __init__(self, parents: Mapping[ast.AST, ast.AST], recorded: list[ast.With], torch: str | None) -> None:
        self.parents, self.recorded, self.torch = parents, recorded, torch

    def is_harmless(self, node: ast.expr) -> bool:
        """Whether a use of the tensor, or of a view of it, ends here."""
        parent = self.parents[node]
        if isinstance(parent, _LOOKING):
            return True
        if isinstance(parent, ast.Attribute):
            return self._member(parent)
        if isinstance(parent, ast.Subscript):
            if parent.value is not node:
                return True
            return not isinstance(parent.ctx, ast.Load) or self.is_harmless(parent)
        if isinstance(parent, ast.keyword):
            parent = self.parents[parent]
            return isinstance(parent, ast.Call) and self._given(parent, by_keyword=True)
        return isinstance(parent, ast.Call) and self._given(parent, by_keyword=False)

    def _member(self, member: ast.Attribute) -> bool:
        """``t.shape``, ``t.add_(1)`` or ``t.view(-1)``."""
        if not isinstance(member.ctx, ast.Load):
            return False
        if member.attr in _FACTS:
            return True
        call = self.parents[member]
        called = isinstance(call, ast.Call) and call.func is member
        if member.attr.endswith("_"):
            return called and member.attr in _FILLING and isinstance(self.parents[call], ast.Expr)
        spec = load_ops().lookup(f"torch.Tensor.{member.attr}")
        if spec is None or spec.mutates:
            return False
        result = call if called else member
        return not spec.view or (isinstance(result, ast.expr) and self.is_harmless(result))

    def _given(self, call: ast.Call, *, by_keyword: bool) -> bool:
        """An argument of one of torch's functions, or of code that computes what the graph records."""
        function = call.func
        if (
            isinstance(function, ast.Attribute)
            and isinstance(function.value, ast.Name)
            and function.value.id == self.torch
        ):
            spec = load_ops().lookup(f"torch.{function.attr}")
            if spec is None or spec.mutates or by_keyword:
                return False
            return not spec.view or self.is_harmless(call)
        if isinstance(function, ast.Attribute) and function.attr in _FILLING:
            return True  # it is what another tensor is filled with
        if last_name(function)[:1].isupper():
            return False
        return any(each.lineno <= call.lineno <= (each.end_lineno or 0) for each in self.recorded)
