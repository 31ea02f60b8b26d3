"""Shapes that are written out: of factories with literal sizes, and of names that are bound to one."""

from __future__ import annotations

import ast

from capturelint.lifecycle.setup.points import Point
from capturelint.project.syntax import last_name

_FACTORIES = ("zeros", "ones", "empty", "rand", "randn")
#: methods that keep the shape
_KEEPS = ("cuda", "to", "half", "float", "bfloat16", "double", "requires_grad_", "contiguous", "clone", "detach")
_LIKE = ("zeros_like", "ones_like", "empty_like", "rand_like", "randn_like")


def shape_of(point: Point, node: ast.expr, depth: int = 0) -> tuple[int, ...] | None:
    if depth > 4:
        return None
    if isinstance(node, ast.Name) and point.function is not None:
        bound = point.function.assigned.get(node.id, [])
        return shape_of(point, bound[0], depth + 1) if len(bound) == 1 else None
    if not isinstance(node, ast.Call):
        return None
    name = last_name(node.func)
    if isinstance(node.func, ast.Attribute) and name in _KEEPS:
        return shape_of(point, node.func.value, depth + 1)
    if name in _LIKE and node.args:
        return shape_of(point, node.args[0], depth + 1)
    if name not in _FACTORIES or not node.args:
        return None
    sizes = node.args[0].elts if isinstance(node.args[0], (ast.Tuple, ast.List)) else node.args
    numbers = [each.value for each in sizes if isinstance(each, ast.Constant) and isinstance(each.value, int)]
    return tuple(numbers) if len(numbers) == len(sizes) else None
