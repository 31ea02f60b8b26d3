"""A series of numbers, as a loop goes through it: up or down, and how many there are."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from itertools import pairwise

from capturelint.lifecycle.setup.points import Point
from capturelint.project.syntax import last_name, walk_own

UP, DOWN = "up", "down"


@dataclass(frozen=True, slots=True)
class Series:
    """``order`` is UP, DOWN or None where not known; ``made`` where the numbers are listed."""

    order: str | None
    count: int | None
    made: Point
    first: float | None = None
    last: float | None = None

    def turned(self) -> Series:
        order = {UP: DOWN, DOWN: UP}.get(self.order or "")
        return replace(self, order=order, first=self.last, last=self.first)


def size_of(node: ast.expr) -> float | None:
    """An element's number; for a tuple of numbers, that of its first."""
    if isinstance(node, (ast.Tuple, ast.List)) and node.elts:
        node = node.elts[0]
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return node.value
    if isinstance(node, ast.BinOp):
        left, right = size_of(node.left), size_of(node.right)
        if left is None or right is None or not 0 <= right < 64:
            return None
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, (ast.Pow, ast.LShift)):
            return float((left if isinstance(node.op, ast.Pow) else 2) ** right) * (
                1 if isinstance(node.op, ast.Pow) else left
            )
    return None


def series_of(sizes: list[float | None], point: Point) -> Series:
    known = [each for each in sizes if each is not None]
    if len(known) < len(sizes) or len(known) < 2:
        first = known[0] if len(known) == len(sizes) == 1 else None
        return Series(None, len(sizes), point, first, first)
    pairs = list(pairwise(known))
    order = UP if all(a < b for a, b in pairs) else DOWN if all(a > b for a, b in pairs) else None
    return Series(order, len(known), point, known[0], known[-1])


def backwards(node: ast.Slice) -> bool:
    step = node.step
    return isinstance(step, ast.UnaryOp) and isinstance(step.op, ast.USub)


def sorted_order(node: ast.Call) -> str | None:
    """How ``sorted(...)`` or ``.sort(...)`` orders; a key may order by anything, such as the size negated."""
    for keyword in node.keywords:
        if keyword.arg == "reverse":
            if isinstance(keyword.value, ast.Constant):
                return DOWN if keyword.value.value else UP
            return None
        if keyword.arg == "key" or keyword.arg is None:
            return None
    return UP


def joined(left: Series | None, right: Series | None) -> Series | None:
    """Two lists, one after the other."""
    if left is None or right is None:
        return None
    order = left.order if left.count != 1 else right.order
    if right.count not in (0, 1) and right.order != order:
        order = None
    if left.count == right.count == 1 and left.last is not None and right.first is not None:
        order = UP if left.last < right.first else DOWN
    if order is not None and left.last is not None and right.first is not None:
        rises = left.last < right.first
        order = order if rises == (order == UP) else None
    count = left.count + right.count if left.count is not None and right.count is not None else None
    return Series(order, count, left.made, left.first, right.last)


def agreed(found: list[Series | None]) -> Series | None:
    """What all of several lists have in common; the largest count, since each may be the one."""
    known = [each for each in found if each is not None]
    if not known or len(known) < len(found):
        return None
    orders = {each.order for each in known}
    counts = [each.count for each in known]
    count = None if None in counts else max(each for each in counts if each is not None)
    return replace(known[0], order=known[0].order if len(orders) == 1 else None, count=count)


def grows(element: ast.expr, target: ast.expr) -> bool:
    """Whether an element grows with what the comprehension goes through: ``n``, ``2**n``, ``8 * n``, ``(n, mode)``."""
    if isinstance(element, ast.Tuple) and element.elts:
        element = element.elts[0]
    if ast.dump(element) == ast.dump(target).replace("Store()", "Load()"):
        return True
    if isinstance(element, ast.Call) and last_name(element.func) in ("int", "min", "max") and element.args:
        return any(grows(each, target) for each in element.args)
    if isinstance(element, ast.BinOp):
        if isinstance(element.op, (ast.Add, ast.Mult)):
            return grows(element.left, target) or grows(element.right, target)
        if isinstance(element.op, (ast.Pow, ast.LShift)):
            return grows(element.right, target) or grows(element.left, target)
        if isinstance(element.op, (ast.Sub, ast.FloorDiv, ast.Div)):
            return grows(element.left, target)
    return False


def then_sorted(root: ast.AST, name: str, found: Series | None, point: Point) -> Series | None:
    """``sizes.sort()`` and ``sizes.reverse()`` on a name or an attribute, after it was bound."""
    for node in walk_own(root):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr not in ("sort", "reverse") or last_name(node.func.value) != name:
            continue
        if node.func.attr == "sort":
            found = Series(sorted_order(node), found.count if found is not None else None, point.at(node))
        elif found is not None:
            found = found.turned()
    return found
