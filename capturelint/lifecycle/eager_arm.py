"""The arm of a branch that an object takes for as long as it has no graph, or for good.

``if self.graph is None: self.y = self.model(self.x)``, ``else: self.graph.replay()``: what the eager arm binds is never
read by a replay, since no replay comes before the graph is captured.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.lifecycle import around
from capturelint.lifecycle.life import Life
from capturelint.lifecycle.order import always_leaves
from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import contains, dotted_name, walk_own
from capturelint.values.domain import Host, changing_reason, options
from capturelint.values.memo import unset


def without_graph(life: Life, module: Module, function: FunctionInfo | None, statement: ast.AST) -> bool:
    """Whether a statement only runs where its object replays no graph."""
    if function is None:
        return False
    graphs = {place.name for place in life.graph}
    for node, side in _arms(function.node, statement):
        if any(name.rpartition(".")[2] in graphs for name in unset(node.test, side)):
            return True
        if _chosen_for_good(life, module, function, node.test) and _replays_on_the_other_side(function, node, side):
            return True
    return False


def _arms(root: ast.AST, statement: ast.AST) -> Iterator[tuple[ast.If, bool]]:
    """The branches around a statement, and those before it that leave, each with the side that the statement is on."""
    for node in (root, *walk_own(root)):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if not isinstance(block, list):
                continue
            place = next((at for at, each in enumerate(block) if contains(each, statement)), None)
            if place is None:
                continue
            if isinstance(node, ast.If):
                yield node, name == "body"
            for before in block[:place]:
                if isinstance(before, ast.If) and always_leaves(before.body) != always_leaves(before.orelse):
                    yield before, always_leaves(before.orelse)


def _chosen_for_good(life: Life, module: Module, function: FunctionInfo, test: ast.expr) -> bool:
    """``if self.eager:``, where nothing but the constructor sets the attribute."""
    asked = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    if not isinstance(asked, ast.Attribute) or not (dotted_name(asked) or "").startswith("self."):
        return False
    found = life.engine.evaluate_in(life.engine.scope_of(function, module), asked)
    return changing_reason(found) is None and all(isinstance(option, Host) for option in options(found))


def _replays_on_the_other_side(function: FunctionInfo, node: ast.If, side: bool) -> bool:
    """The other arm replays; or this one leaves the function, and a replay follows."""
    mine, other = (node.body, node.orelse) if side else (node.orelse, node.body)
    if _replays(mine):
        return False
    if _replays(other):
        return True
    last = mine[-1] if mine else None
    return isinstance(last, (ast.Return, ast.Raise)) and any(
        around.is_replay(each) and around.function_line(each) > (node.end_lineno or 0)
        for each in walk_own(function.node)
    )


def _replays(statements: list[ast.stmt]) -> bool:
    return any(around.is_replay(node) for statement in statements for node in ast.walk(statement))
