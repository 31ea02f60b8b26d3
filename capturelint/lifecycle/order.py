"""In which order statements of one function may run: lines, branches that exclude each other, loops, early exits."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from capturelint.project.syntax import children

if TYPE_CHECKING:
    from capturelint.values.engine import Engine

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@dataclass(eq=False, repr=False, slots=True)
class Order:
    """The order of one function's (or module's) own nodes."""

    root: ast.AST
    _parents: dict[int, tuple[ast.AST, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        stack = [self.root]
        while stack:
            node = stack.pop()
            for name, value in ast.iter_fields(node):
                for child in value if isinstance(value, list) else (value,):
                    if isinstance(child, ast.AST):
                        self._parents[id(child)] = (node, name)
            stack.extend(children(node))

    def ancestors(self, node: ast.AST) -> list[tuple[ast.AST, str]]:
        """The nodes around a node, innermost first, each with the field of it that the way to the node goes by."""
        found = []
        while id(node) in self._parents:
            parent, name = self._parents[id(node)]
            found.append((parent, name))
            node = parent
        return found

    def statement(self, node: ast.AST) -> ast.AST:
        """The innermost statement that holds a node."""
        while not isinstance(node, ast.stmt) and id(node) in self._parents:
            node = self._parents[id(node)][0]
        return node

    def loops(self, node: ast.AST) -> list[ast.AST]:
        """The loops and comprehensions whose every turn runs the node, innermost first."""
        return [
            parent
            for parent, name in self.ancestors(node)
            if (isinstance(parent, _LOOPS) and name in ("body", "test"))
            or (isinstance(parent, _COMPREHENSIONS) and name in ("elt", "key", "value"))
        ]

    def common_loop(self, first: ast.AST, second: ast.AST) -> ast.AST | None:
        """The innermost loop that runs both in each turn."""
        others = {id(loop) for loop in self.loops(second)}
        return next((loop for loop in self.loops(first) if id(loop) in others), None)

    def may_follow(self, first: ast.AST, second: ast.AST) -> bool:
        """Whether ``second`` may run after ``first`` in one call of the function."""
        return self.follows_directly(first, second) or self.common_loop(first, second) is not None

    def follows_directly(self, first: ast.AST, second: ast.AST) -> bool:
        """The same without another turn of a loop around both."""
        if _position(second) <= _position(first):
            return False
        theirs = {id(parent): name for parent, name in self.ancestors(second)}
        for parent, name in self.ancestors(first):
            inside = id(parent) in theirs
            if isinstance(parent, ast.If) and inside:
                return theirs[id(parent)] == name or "test" in (name, theirs[id(parent)])
            if isinstance(parent, ast.IfExp) and inside:
                return theirs[id(parent)] == name or "test" in (name, theirs[id(parent)])
            if inside:
                return True
            if isinstance(parent, ast.If) and always_leaves(getattr(parent, name)):
                return False
        return True

    def runs_whenever(self, node: ast.AST, other: ast.AST) -> bool:
        """Whether ``node`` hangs on no condition that ``other`` does not hang on too."""
        theirs = {(id(parent), name) for parent, name in self.ancestors(other)}
        return all(
            (id(parent), name) in theirs
            for parent, name in self.ancestors(node)
            if (isinstance(parent, (ast.If, ast.IfExp)) and name != "test")
            or isinstance(parent, (*_LOOPS, ast.ExceptHandler))
        )


def order_of(engine: Engine, root: ast.AST) -> Order:
    """The order of a function (or module), worked out once for all graphs that ask."""
    return engine.remembered(("order", root), lambda: Order(root))


def always_leaves(block: object) -> bool:
    """Whether statements end in one that leaves, so that what follows them is not reached that way."""
    return isinstance(block, list) and bool(block) and isinstance(block[-1], _LEAVES)


def _position(node: ast.AST) -> tuple[int, int]:
    return (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
