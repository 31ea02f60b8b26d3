"""What a region does with gradients: it computes them, it reads them, or both."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.lifecycle.life import Life
from capturelint.project.syntax import walk_own

_OPTIMIZERS = ("opt", "optim", "optimizer", "optimiser")


def computes(life: Life) -> bool:
    """Whether the region runs a backward pass: its gradients are tensors of the graph's."""
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "backward"
        for node in _code(life)
    )


def uses(life: Life) -> bool:
    """Whether the region reads gradients: it steps an optimizer, or speaks of ``.grad``."""
    return any(_steps(node) or _reads_grad(node) for node in _code(life))


def outside(life: Life) -> bool:
    """Whether the region computes gradients that other code reads, or reads those that other code computes."""
    return life.is_block and computes(life) != uses(life)


def _steps(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "step"):
        return False
    receiver = node.func.value
    name = (
        receiver.attr if isinstance(receiver, ast.Attribute) else receiver.id if isinstance(receiver, ast.Name) else ""
    )
    return any(part in _OPTIMIZERS for part in name.lower().split("_"))


def _reads_grad(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Load)


def _code(life: Life) -> Iterator[ast.AST]:
    """The nodes of everything that the region runs."""
    for statement in life.declaration.body or ():
        yield statement
        yield from walk_own(statement)
    for context in life.reach.steps:
        if context.function is not None and context.function is not life.holder:
            yield from walk_own(context.function.node)
