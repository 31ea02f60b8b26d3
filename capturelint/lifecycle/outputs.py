"""Which expressions give a static output, or a view of one: names are followed in the order of their statements."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from capturelint.lifecycle.life import Life, Replay
from capturelint.lifecycle.moments import Moments
from capturelint.lifecycle.stores import returned
from capturelint.model import Confidence
from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import last_name, store_targets, walk_own

#: views that mostly are copies where they are called on what the GPU computed
_COPIES = frozenset(("to", "cpu", "cuda", "type", "type_as", "expand_as"))
_MAX_DEPTH = 12


@dataclass(frozen=True, slots=True)
class Kept:
    """``node`` gives the output; ``by`` is what keeps it, and ``how`` says so in words."""

    function: FunctionInfo | None
    module: Module
    node: ast.expr
    by: ast.AST
    how: str
    confidence: Confidence = Confidence.LIKELY


@dataclass(eq=False, repr=False, slots=True)
class Outputs:
    """Answers for one graph."""

    life: Life
    moments: Moments
    _returning: dict[FunctionInfo, bool] = field(default_factory=dict)

    def gives(self, function: FunctionInfo | None, module: Module, node: ast.expr, depth: int = 0) -> bool:
        """Whether an expression gives a static output or a view of one."""
        if depth > _MAX_DEPTH:
            return False
        node = self.base(node)
        if isinstance(node, ast.Name):
            values = list(self.bound_to(function, module, node))
            if values:
                return any(self.gives(function, module, value, depth + 1) for value in values)
            return self.life.is_output(function, module, node)
        if isinstance(node, ast.IfExp):
            return any(self.gives(function, module, each, depth + 1) for each in (node.body, node.orelse))
        if isinstance(node, ast.NamedExpr):
            return self.gives(function, module, node.value, depth + 1)
        if isinstance(node, ast.Call):
            return self.call_gives(node)
        return isinstance(node, ast.Attribute) and self.life.is_output(function, module, node)

    def call_gives(self, call: ast.Call) -> bool:
        replay = self.replay_of(call)
        if replay is None:
            return False
        if replay.via is None:
            return self.life.is_replayed_by_call
        return self.returns(replay.via)

    def replay_of(self, call: ast.AST) -> Replay | None:
        return next((each for each in self.life.replays if each.call is call), None)

    def returns(self, function: FunctionInfo) -> bool:
        """Whether a function hands out a static output."""
        if function not in self._returning:
            self._returning[function] = False
            self._returning[function] = any(True for _ in self.returned(function))
        return self._returning[function]

    def returned(self, function: FunctionInfo) -> Iterator[ast.expr]:
        """The output expressions that a function returns, alone or in a tuple."""
        for value in returned(function):
            yield from self.held(function, function.module, value)

    def held(self, function: FunctionInfo | None, module: Module, node: ast.AST | None) -> Iterator[ast.expr]:
        """The output expressions that an object holds on to: itself, elements of a display, fields of a record."""
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            for element in node.elts:
                yield from self.held(function, module, element)
        elif isinstance(node, ast.Dict):
            for value in node.values:
                yield from self.held(function, module, value)
        elif isinstance(node, ast.Starred):
            yield from self.held(function, module, node.value)
        elif isinstance(node, ast.Call) and last_name(node.func)[:1].isupper():
            for given in (*node.args, *(keyword.value for keyword in node.keywords)):
                yield from self.held(function, module, given)
        elif isinstance(node, ast.expr) and self.gives(function, module, node):
            yield node

    def base(self, node: ast.expr) -> ast.expr:
        """What an expression is a view of."""
        while True:
            if isinstance(node, ast.Subscript):
                if _selects_by_value(node.slice):
                    return node
                node = node.value
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                spec = self.life.engine.ops.lookup(f"torch.Tensor.{node.func.attr}")
                if spec is None or not spec.view or spec.attribute or node.func.attr in _COPIES:
                    return node
                node = node.func.value
            elif isinstance(node, ast.Attribute):
                spec = self.life.engine.ops.lookup(f"torch.Tensor.{node.attr}")
                if spec is None or not spec.view or not spec.attribute:
                    return node
                node = node.value
            else:
                return node

    def bound_to(self, function: FunctionInfo | None, module: Module, name: ast.Name) -> Iterator[ast.expr]:
        """What the assignments that reach a name bind it to; nothing where it is not a plain local."""
        order = self.moments.order(function, module)
        found: list[tuple[ast.Assign, ast.expr]] = []
        for node in walk_own(function.node if function is not None else module.top):
            if any(isinstance(target, ast.Name) and target.id == name.id for target in store_targets(node)):
                if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                    return  # a loop's target, or unpacked: told without regard to order
                found.append((node, node.value))
        body = self.life.declaration.body or []
        if any(any(each is node for statement in body for each in ast.walk(statement)) for node, _ in found):
            found = [pair for pair in found if not any(pair[0] is e for s in body for e in ast.walk(s))]
            if not found:
                return  # bound by the region itself
            if not any(order.follows_directly(node, name) and order.runs_whenever(node, name) for node, _ in found):
                return
        settled = [n for n, _ in found if order.follows_directly(n, name) and order.runs_whenever(n, name)]
        last = max(settled, key=lambda node: node.lineno, default=None)
        for node, value in found:
            if node is last or (order.may_follow(node, name) and (last is None or _after(last, node, name))):
                yield value


def _after(last: ast.Assign, node: ast.Assign, name: ast.Name) -> bool:
    """Whether a binding may still hold at the name, though ``last`` always runs before it."""
    return last.lineno < node.lineno < name.lineno


def _selects_by_value(index: ast.expr) -> bool:
    """``out[rows > 0]`` copies; ``out[:n]``, ``out[0]``, ``out["logits"]`` and ``out[size]`` don't."""
    if isinstance(index, ast.Tuple):
        return any(_selects_by_value(each) for each in index.elts)
    return isinstance(index, (ast.List, ast.Compare)) or (
        isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.Invert)
    )
