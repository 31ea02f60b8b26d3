"""Backward passes outside and inside regions, and whether the autograd graph of one is still alive later."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from capturelint.lifecycle.setup.before import callees, calls_in, earlier, in_another_capture, on_side_stream
from capturelint.lifecycle.setup.captures import GRAPHED_CALLABLES, Capture
from capturelint.lifecycle.setup.points import Path, Point, ancestors, value_at
from capturelint.lifecycle.setup.sizes import names_in
from capturelint.project.definitions import FunctionInfo, calls_within
from capturelint.project.syntax import dotted_name, last_name, store_targets, walk_own
from capturelint.values.domain import Function, options
from capturelint.values.engine import Engine

_MAX_DEPTH = 4
#: what gives a value without the autograd graph behind it
_DETACHES = ("detach", "item", "float", "tolist", "cpu_item", "numpy", "data")
_ADDS = ("append", "add", "appendleft", "extend", "put")


@dataclass(frozen=True, slots=True)
class Backward:
    """A backward pass before a capture: ``path`` begins with the call on the way there, ``inside`` with the pass."""

    path: Path
    inside: Path
    side_stream: bool
    #: what keeps its autograd graph alive until the capture: a name or a container, empty where nothing is seen to
    kept_by: str

    @property
    def point(self) -> Point:
        return self.path[0]


def captured(capture: Capture) -> bool:
    """Whether the region runs a backward pass."""
    if capture.declaration.kind == GRAPHED_CALLABLES:
        return True
    for context in capture.reach.steps:
        if any(callee.endswith(".backward") for fact in context.calls.values() for callee in fact.callees):
            return True
        nodes = context.node.body if isinstance(context.node, (ast.With, ast.AsyncWith)) else [context.node]
        if context is capture.reach.entered.context:
            nodes = capture.declaration.body or []
        if any(is_backward(call) for node in nodes for call in calls_in(node) if _plain(node)):
            return True
    return False


def _plain(node: ast.AST) -> bool:
    return not isinstance(node, ast.ClassDef)


def is_backward(call: ast.Call) -> bool:
    """``loss.backward()``, ``scaler.scale(loss).backward()``, ``torch.autograd.backward(loss)``."""
    return isinstance(call.func, ast.Attribute) and call.func.attr == "backward"


@dataclass(eq=False, repr=False, slots=True)
class Backwards:
    """Finds backward passes in what runs before a capture."""

    engine: Engine
    _in_function: dict[FunctionInfo, list[Path]] = field(default_factory=dict)

    def before(self, path: Path) -> Iterator[Backward]:
        for each in earlier(path):
            for call in calls_in(each.statement):
                outer = (each.point.at(call), *each.path[1:])
                if is_backward(call) and not self._own(outer[0], call):
                    kept = kept_by(outer[0], call, path)
                    yield Backward(outer, (outer[0],), self._elsewhere(outer), kept)
                    continue
                for info in callees(self.engine, outer[0], call):
                    for inside in self._within(info):
                        kept = _kept_within(inside) or _kept_result(inside, outer[0], path)
                        yield Backward(outer, inside, self._elsewhere((*inside, *outer)), kept)

    def _elsewhere(self, path: Path) -> bool:
        return on_side_stream(self.engine, path) or in_another_capture(path)

    def _own(self, point: Point, call: ast.Call) -> bool:
        """A method of the project's own that is called ``backward`` is entered instead."""
        return any(isinstance(option, Function) for option in options(value_at(self.engine, point, call.func)))

    def _within(self, info: FunctionInfo, depth: int = 0) -> list[Path]:
        """The backward passes that a function runs, each with the calls that lead there, innermost first."""
        if info in self._in_function:
            return self._in_function[info]
        if depth >= _MAX_DEPTH:
            return []
        self._in_function[info] = []
        found: list[Path] = []
        for call in calls_in(info.node) if isinstance(info.node, ast.Lambda) else calls_within(info):
            point = Point(info.module, info, call)
            if is_backward(call) and not self._own(point, call):
                found.append((point,))
                continue
            for callee in callees(self.engine, point, call):
                found.extend((*inner, point) for inner in self._within(callee, depth + 1))
        self._in_function[info] = found[:4]
        return self._in_function[info]


# -- what keeps the graph alive --------------------------------------------------------------------------------------


def kept_by(point: Point, call: ast.Call, path: Path) -> str:
    """The name that holds what ``call`` runs backward from, if it still does when the capture begins."""
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    if receiver is None:
        return ""
    names = _holders(point, receiver)
    if last_name(receiver) == "autograd":
        names = [name for argument in call.args for name in _holders(point, argument)]
    lasting = _attribute_behind(receiver)
    if lasting:
        return lasting
    capture_line = next((each.line for each in path if each.function is point.function), 0)
    for name in names:
        if not _dropped(point, name, capture_line):
            return name
    return _stored(point, set(names))


def _holders(point: Point, node: ast.expr) -> list[str]:
    """Local names whose value's autograd graph is behind an expression: ``loss``, and ``out`` of ``out.sum()``."""
    if isinstance(node, ast.Name):
        return [node.id] if _computed_near(point, node.id) else []
    if isinstance(node, ast.Attribute):
        return []
    found: list[str] = []
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            found += _holders(point, node.func.value)
        for argument in node.args:
            found += _holders(point, argument)
    elif isinstance(node, ast.BinOp):
        found += [*_holders(point, node.left), *_holders(point, node.right)]
    return found


def _attribute_behind(node: ast.expr) -> str:
    """``self.loss`` of ``self.loss.backward()`` and ``scaler.scale(self.loss).backward()``."""
    if isinstance(node, ast.Attribute):
        name = dotted_name(node) or ""
        return name if name.startswith(("self.", "cls.")) else ""
    if isinstance(node, ast.Call):
        if last_name(node.func) == "scale" and node.args:
            return _attribute_behind(node.args[0])
        return _attribute_behind(node.func.value) if isinstance(node.func, ast.Attribute) and not node.args else ""
    return ""


def _computed_near(point: Point, name: str) -> bool:
    """Whether a name is bound, in the block of the place, to something that a call or an operator gives."""
    way = ancestors(point.root, point.node)
    for outer, inner in pairwise(way):
        for block_name in ("body", "orelse", "finalbody"):
            block = getattr(outer, block_name, None)
            if not isinstance(block, list) or inner not in block:
                continue
            near = isinstance(outer, (ast.For, ast.While, ast.With, ast.FunctionDef, ast.AsyncFunctionDef, ast.Module))
            for statement in block[: block.index(inner)] if near else ():
                for node in (statement, *walk_own(statement)):
                    if not isinstance(node, (ast.Assign, ast.AugAssign)) or not _computes(node.value):
                        continue
                    if any(isinstance(target, ast.Name) and target.id == name for target in store_targets(node)):
                        return True
    return False


def _computes(value: ast.expr) -> bool:
    """Not a constructor of data: ``torch.randn(...)`` has no graph behind it."""
    if isinstance(value, ast.Call):
        head = (dotted_name(value.func) or "").partition(".")[0]
        made = last_name(value.func)
        if head in ("torch", "np") and made in ("randn", "rand", "zeros", "ones", "empty", "randint", "tensor", "full"):
            return False
        constructor = made[:1].isupper() and not made.isupper()
        return not constructor and made not in _DETACHES
    return isinstance(value, (ast.BinOp, ast.UnaryOp))


def _dropped(point: Point, name: str, before_line: int) -> bool:
    """``del loss``, ``loss = None`` or ``loss = loss.item()`` between the pass and the capture."""
    for node in walk_own(point.root):
        line = getattr(node, "lineno", 0)
        if not point.line <= line or (before_line and line >= before_line):
            continue
        if isinstance(node, ast.Delete) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            return True
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            if isinstance(node.value, ast.Constant) or last_name(node.value) in _DETACHES:
                return True
    return False


def _stored(point: Point, names: set[str]) -> str:
    """``self.loss = loss`` and ``losses.append(loss)``, with the graph behind it."""
    for node in walk_own(point.root):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in names:
            for target in node.targets:
                if isinstance(target, (ast.Attribute, ast.Subscript)):
                    return last_name(target)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDS:
            if any(isinstance(argument, ast.Name) and argument.id in names for argument in node.args):
                return last_name(node.func.value)
    return ""


def _kept_within(inside: Path) -> str:
    """What a helper stores of its loss, somewhere that outlives its call."""
    point = inside[0]
    call = point.node
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return ""
    return _attribute_behind(call.func.value) or _stored(point, names_in(call.func.value))


def _kept_result(inside: Path, outer: Point, path: Path) -> str:
    """What the caller does with the loss that a helper returns."""
    call = inside[0].node
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return ""
    names = names_in(call.func.value)
    returned = [
        node.value for node in walk_own(inside[0].root) if isinstance(node, ast.Return) and node.value is not None
    ]
    if not any(_gives(value, names) for value in returned):
        return ""
    for point in inside[1:]:
        if not _handed_on(point):
            return _receives(point, (), lasting=True)
    return _receives(outer, path)


def _gives(value: ast.expr, names: set[str]) -> bool:
    if isinstance(value, ast.Name):
        return value.id in names
    if isinstance(value, (ast.Tuple, ast.List)):
        return any(_gives(each, names) for each in value.elts)
    return False


def _handed_on(point: Point) -> bool:
    """``return helper(...)``."""
    way = ancestors(point.root, point.node)
    return len(way) > 1 and isinstance(way[-2], ast.Return)


def _receives(outer: Point, path: Path, *, lasting: bool = False) -> str:
    """What gets a call's result; with ``lasting`` only what outlives the function that the call stands in."""
    way = ancestors(outer.root, outer.node)
    parent = way[-2] if len(way) > 1 else None
    if isinstance(parent, ast.Assign):
        capture_line = next((each.line for each in path if each.function is outer.function), 0)
        for target in store_targets(parent):
            if isinstance(target, (ast.Attribute, ast.Subscript)):
                return last_name(target)
            if isinstance(target, ast.Name) and not lasting and not _dropped(outer, target.id, capture_line):
                return target.id
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.attr in _ADDS:
        return last_name(parent.func.value)
    if isinstance(parent, (ast.ListComp, ast.SetComp)):
        holder = way[-3] if len(way) > 2 else None
        return next((last_name(t) for t in store_targets(holder)), "") if holder is not None else ""
    return ""
