"""Reads what a loop goes through: literals, ranges, names followed to where they are bound, defaults."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from capturelint.lifecycle.setup.points import Path, Point, value_at
from capturelint.lifecycle.setup.series import (
    DOWN,
    UP,
    Series,
    agreed,
    backwards,
    grows,
    joined,
    series_of,
    size_of,
    sorted_order,
    then_sorted,
)
from capturelint.lifecycle.setup.sources import Sources
from capturelint.project.syntax import keyword_value, last_name, walk_own
from capturelint.values.domain import Function, Host, Sequence, options

_MAX_DEPTH = 10
_SAME_ORDER = ("list", "tuple", "iter", "tqdm", "trange", "enumerate", "track", "copy", "deepcopy", "zip", "tolist")
_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


@dataclass(frozen=True, slots=True)
class SeriesReader:
    """``path[0]`` is always the place where the expression stands."""

    sources: Sources
    #: answers by expression, way out and depth: the same callers are asked about from many sides
    _known: dict[tuple[object, ...], Any] = field(default_factory=dict, repr=False, compare=False)

    def read(self, path: Path, node: ast.expr, depth: int = 0) -> Series | None:
        """What ``node`` lists, as far as literals and defaults tell."""
        if depth > _MAX_DEPTH:
            return None
        key = ("read", id(node), depth, *(id(point.node) for point in path[1:]))
        if key not in self._known:
            found = self._form(path, node, depth)
            self._known[key] = found if found is not None else self._from_value(path[0].at(node), node)
        series: Series | None = self._known[key]
        return series

    def number(self, path: Path, node: ast.expr, depth: int = 0) -> int | None:
        """A number that is a literal or a default; where several may be meant, the largest."""
        if isinstance(node, ast.Constant):
            return node.value if type(node.value) is int else None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.number(path, node.operand, depth)
            return -inner if inner is not None else None
        if isinstance(node, ast.BinOp):
            left, right = self.number(path, node.left, depth), self.number(path, node.right, depth)
            operation = _OPERATIONS.get(type(node.op))
            if left is None or right is None or operation is None or (operation is operator.floordiv and not right):
                return None
            return operation(left, right)
        if isinstance(node, ast.Call) and last_name(node.func) == "len" and node.args and depth < _MAX_DEPTH:
            listed = self.read(path, node.args[0], depth + 1)
            return listed.count if listed is not None else None
        if isinstance(node, (ast.Name, ast.Attribute)) and depth < _MAX_DEPTH:
            key = ("number", id(node), depth, *(id(point.node) for point in path[1:]))
            if key not in self._known:
                found = [self.number(source.path, source.node, depth + 1) for source in self.sources.of(path, node)]
                known = [each for each in found if each is not None]
                self._known[key] = max(known) if known and len(known) == len(found) else None
            number: int | None = self._known[key]
            return number
        return None

    def _form(self, path: Path, node: ast.expr, depth: int) -> Series | None:
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return self._literal(path, node, depth)
        if isinstance(node, ast.Call):
            return self._call(path, node, depth)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            inner = self.read(path, node.value, depth + 1)
            if inner is None:
                return None
            inner = replace(inner, count=inner.count if backwards(node.slice) else None)
            return inner.turned() if backwards(node.slice) else inner
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return joined(self.read(path, node.left, depth + 1), self.read(path, node.right, depth + 1))
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self._comprehension(path, node, depth)
        if isinstance(node, ast.IfExp):
            return agreed([self.read(path, node.body, depth + 1), self.read(path, node.orelse, depth + 1)])
        if isinstance(node, ast.BoolOp):  # given sizes, or else these
            known = [each for part in node.values if (each := self.read(path, part, depth + 1)) is not None]
            return agreed(list(known))
        if isinstance(node, ast.NamedExpr):
            return self.read(path, node.value, depth + 1)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._named(path, node, depth)
        if isinstance(node, ast.Dict) and None not in node.keys:
            keys = ast.List([each for each in node.keys if each is not None], ast.Load())
            return self._literal(path, ast.copy_location(keys, node), depth)
        return None

    def _named(self, path: Path, node: ast.Name | ast.Attribute, depth: int) -> Series | None:
        found: list[Series | None] = []
        name = last_name(node)
        for source in self.sources.of(path, node):
            series = self.read(source.path, source.node, depth + 1)
            if series is None or series.count != 0:  # an empty list is filled later, or left out
                found.append(then_sorted(source.path[0].root, name, series, source.path[0]))
        series = agreed(found)
        local = isinstance(node, ast.Name) and path[0].function is not None
        return then_sorted(path[0].root, name, series, path[0]) if local and not found else series

    def _literal(self, path: Path, node: ast.List | ast.Tuple | ast.Set, depth: int) -> Series | None:
        """``[1, 2, *range(4, 65, 4)]``: runs of elements, and what is unpacked between them."""
        point = path[0].at(node)
        unpacks = any(isinstance(each, ast.Starred) for each in node.elts)
        if isinstance(node, ast.Set):
            return Series(None, None if unpacks else len(node.elts), point)
        if not node.elts:
            return Series(None, 0, point)
        parts: list[Series | None] = []
        run: list[float | None] = []
        for each in node.elts:
            if not isinstance(each, ast.Starred):
                run.append(size_of(each))
                continue
            parts += [series_of(run, point)] if run else []
            parts.append(self.read(path, each.value, depth + 1))
            run = []
        parts += [series_of(run, point)] if run else []
        whole = parts[0]
        for part in parts[1:]:
            whole = joined(whole, part)
        return whole

    def _comprehension(self, path: Path, node: ast.ListComp | ast.GeneratorExp, depth: int) -> Series | None:
        generator = node.generators[0]
        if len(node.generators) > 1:
            if any(each.ifs for each in node.generators):
                return None
            parts = [(path, each.iter) for each in node.generators]
            return Series(None, self._together(parts, depth), path[0].at(node))
        inner = self.read(path, generator.iter, depth + 1)
        if inner is None:
            return None
        order = inner.order if grows(node.elt, generator.target) else None
        return Series(order, None if generator.ifs else inner.count, inner.made)

    def _call(self, path: Path, node: ast.Call, depth: int) -> Series | None:
        name, point = last_name(node.func), path[0].at(node)
        if name == "range" and isinstance(node.func, ast.Name) and node.args:
            return self._range(path, node)
        if name == "arange":
            return Series(UP, None, point)
        if name in ("keys", "values", "items") and isinstance(node.func, ast.Attribute) and not node.args:
            return self.read(path, node.func.value, depth + 1)
        if not node.args:
            return self._returned(path, node, depth)
        if name == "product" and not any(isinstance(each, ast.Starred) for each in node.args):
            return self._product(path, node, depth)
        if name == "chain":
            whole = self.read(path, node.args[0], depth + 1)
            for each in node.args[1:]:
                whole = joined(whole, self.read(path, each, depth + 1))
            return whole
        if name in ("sorted", "reversed", "set", *_SAME_ORDER):
            inner = self.read(path, node.args[0], depth + 1)
            if name in _SAME_ORDER:
                return inner
            if name == "reversed":
                return inner.turned() if inner is not None else Series(None, None, point)
            count = inner.count if inner is not None else None
            return Series(sorted_order(node) if name == "sorted" else None, count, point)
        return self._returned(path, node, depth)

    def _product(self, path: Path, node: ast.Call, depth: int) -> Series:
        """``itertools.product(sizes, modes)``: each of one with each of the others."""
        times = keyword_value(node, "repeat")
        repeat = 1 if times is None else self.number(path, times) or 1
        return Series(None, self._together([(path, each) for each in node.args], depth, repeat), path[0].at(node))

    def _together(self, parts: list[tuple[Path, ast.expr]], depth: int, repeat: int = 1) -> int | None:
        """How many combinations there are of one element of each part, where all their lengths are known."""
        found = [self.read(way, part, depth + 1) for way, part in parts]
        counts = [each.count for each in found if each is not None and each.count is not None]
        return math.prod(counts) ** repeat if len(counts) == len(parts) and repeat < 5 else None

    def _range(self, path: Path, node: ast.Call) -> Series:
        point = path[0].at(node)
        step = node.args[2] if len(node.args) == 3 else None
        stride = 1 if step is None else self.number(path, step)
        first = 0 if len(node.args) == 1 else self.number(path, node.args[0])
        end = self.number(path, node.args[0] if len(node.args) == 1 else node.args[1])
        falls = isinstance(step, ast.UnaryOp) and isinstance(step.op, ast.USub)
        order = DOWN if falls or (stride is not None and stride < 0) else UP
        if first is None or end is None or not stride:
            return Series(order, None, point, first)
        count = len(range(first, end, stride))
        return Series(order, count, point, first, first + (count - 1) * stride if count else None)

    def _returned(self, path: Path, node: ast.Call, depth: int) -> Series | None:
        """What a function of the project returns."""
        found: list[Series | None] = []
        for option in options(value_at(self.sources.engine, path[0], node.func)):
            if not isinstance(option, Function):
                return None
            for each in walk_own(option.info.node):
                if isinstance(each, ast.Return) and each.value is not None:
                    inside = (Point(option.info.module, option.info, each),)
                    found.append(self.read(inside, each.value, depth + 2))
        return agreed(found)

    def _from_value(self, point: Point, node: ast.expr) -> Series | None:
        """What the evaluator knows of a list."""
        for option in options(value_at(self.sources.engine, point, node)):
            if isinstance(option, Sequence) and option.items:
                numbers = [item.const for item in option.items if isinstance(item, Host)]
                known: list[float | None] = [each for each in numbers if isinstance(each, (int, float))]
                if len(known) == len(option.items):
                    return series_of(known, point)
        return None
