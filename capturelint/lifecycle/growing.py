"""CG805 for compiled functions: a loop calls one with an argument that is larger in each round.

``torch.compile`` with CUDA graphs records one for each size that comes in. Where the loop itself makes the argument
grow (``torch.cat`` onto it, a list that is stacked, a slice up to the loop's number), each round records.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from capturelint.findings import Around
from capturelint.lifecycle import story
from capturelint.lifecycle.around import loops_around
from capturelint.lifecycle.life import Life
from capturelint.lifecycle.moments import Moments
from capturelint.model import Confidence, Related
from capturelint.project.definitions import FunctionInfo
from capturelint.project.forms import FIRST
from capturelint.project.module import Module
from capturelint.project.syntax import dotted_name, last_name, store_targets, walk_own

_JOINS = frozenset(("cat", "concat", "concatenate", "hstack", "vstack"))
_OF_LISTS = _JOINS | {"stack"}
#: methods that leave the sizes as they are
_KEEPS = frozenset(
    ("to", "cuda", "clone", "contiguous", "detach", "long", "int", "float", "half", "bfloat16", "type", "type_as")
)
#: the sizes are dealt with: marked, or recorded for some or none
_DEALT_WITH = ("mark_dynamic", "cudagraph_skip_dynamic_graphs", "cudagraph_capture_sizes")
_REMOVES = frozenset(("pop", "popleft", "clear", "remove"))
#: torch warns from more graphs on than these
_FEW = 8

Loop = ast.For | ast.AsyncFor | ast.While


@dataclass(frozen=True, slots=True)
class _Growth:
    """``node`` is what makes the argument larger; ``conditional`` where not every round does it."""

    text: str
    node: ast.AST
    conditional: bool = False


def find(life: Life, moments: Moments) -> Iterator[Around]:
    if not life.declaration.compiled:
        return
    for function, module, call in _calls(life):
        root = function.node if function is not None else module.top
        if any(module.holds(word) for word in _DEALT_WITH):
            continue
        for loop in loops_around(root, call):
            growth = _grown_argument(module, loop, call)
            if growth is not None and life.declaration.node not in ast.walk(loop):
                yield _report(life, function, module, call, loop, growth)
                break


def _calls(life: Life) -> Iterator[tuple[FunctionInfo | None, Module, ast.Call]]:
    """Calls of the compiled function, also by names that it was passed on by."""
    known = {id(replay.call) for replay in life.replays if replay.depth == 0}
    for module in life.modules_around:
        for function in (None, *module.all_functions("for", "while", form=FIRST)):
            root = function.node if function is not None else module.top
            loops = [node for node in walk_own(root) if isinstance(node, (ast.For, ast.AsyncFor, ast.While))]
            seen: set[int] = set()
            for loop in loops:
                for call in walk_own(loop):
                    if (
                        not isinstance(call, ast.Call)
                        or id(call) in seen
                        or _grown_argument(module, loop, call) is None
                    ):
                        continue
                    seen.add(id(call))
                    if id(call) in known or _is_compiled(life, function, module, call):
                        yield function, module, call


def _is_compiled(life: Life, function: FunctionInfo | None, module: Module, call: ast.Call) -> bool:
    if not isinstance(call.func, (ast.Name, ast.Attribute)):
        return False
    return id(life.declaration.node) in life.origins.same(function, module, call.func).nodes


def _report(
    life: Life, function: FunctionInfo | None, module: Module, call: ast.Call, loop: Loop, growth: _Growth
) -> Around:
    called = module.segment(call.func, 30)
    unsure = growth.conditional or _few_rounds(loop)
    return story.finding(
        life,
        "CG805",
        function,
        module,
        call,
        f"`{growth.text}` has another size in each round, and `{called}`, compiled with CUDA graphs, records a graph "
        "for each",
        "a graph for each size",
        Confidence.POSSIBLE if unsure else Confidence.LIKELY,
        help="pad to a few sizes and mask the rest, or pass only what is new and keep the rest in a buffer of one size",
        related=(
            Related(module.display, getattr(growth.node, "lineno", loop.lineno), "grows here"),
            story.captured_at(life, "compiled here"),
        ),
    )


def _few_rounds(loop: Loop) -> bool:
    if isinstance(loop, ast.While):
        return False
    if isinstance(loop.iter, (ast.Tuple, ast.List)):
        return len(loop.iter.elts) <= _FEW
    given = _range_bounds(loop.iter)
    bounds = [each.value for each in given if isinstance(each, ast.Constant) and type(each.value) is int]
    return 0 < len(bounds) == len(given) and len(range(*bounds)) <= _FEW


def _range_bounds(node: ast.expr) -> list[ast.expr]:
    """The arguments of ``range(...)``; none for anything else."""
    is_range = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"
    return node.args if is_range else []  # type: ignore[attr-defined]


# -- what grows ------------------------------------------------------------------------------------------------------


def _grown_argument(module: Module, loop: Loop, call: ast.Call) -> _Growth | None:
    for given in (*call.args, *(keyword.value for keyword in call.keywords)):
        found = _grows(loop, given, 0)
        if found is not None:
            node, conditional = found
            return _Growth(module.segment(given, 30), node, conditional)
    return None


def _grows(loop: Loop, node: ast.expr, depth: int) -> tuple[ast.AST, bool] | None:
    """What makes an expression larger in each round of the loop, and whether it does so on a condition."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPS:
        node = node.func.value
    if isinstance(node, ast.Call) and last_name(node.func) in _OF_LISTS and node.args:
        return _list_grows(loop, node.args[0])
    if isinstance(node, ast.Subscript):
        return (node, False) if _up_to_round(loop, node) else None
    if not isinstance(node, (ast.Name, ast.Attribute)) or dotted_name(node) is None:
        return None
    stores = [each for each in walk_own(loop) if any(_same(target, node) for target in store_targets(each))]
    if not stores:
        return None
    if all(isinstance(each, ast.Assign) and _enlarges(each.value, node) for each in stores):
        return stores[0], _conditional(loop, stores[0])
    only = stores[0]
    if len(stores) == 1 and isinstance(only, ast.Assign) and depth < 2 and only.targets[0] is not only.value:
        return _grows(loop, only.value, depth + 1)
    return None


def _enlarges(value: ast.expr, node: ast.expr) -> bool:
    """``torch.cat([x, new])``, ``F.pad(x, (0, 1))``."""
    if not isinstance(value, ast.Call) or not value.args:
        return False
    name, first = last_name(value.func), value.args[0]
    if name in _JOINS and isinstance(first, (ast.List, ast.Tuple)) and len(first.elts) > 1:
        return any(_same(each, node) for each in first.elts)
    if (
        name == "pad"
        and len(value.args) > 1
        and _same(first, node)
        and isinstance(value.args[1], (ast.Tuple, ast.List))
    ):
        sizes = [each.value for each in value.args[1].elts if isinstance(each, ast.Constant)]
        whole = [each for each in sizes if type(each) is int and each >= 0]
        return len(whole) == len(value.args[1].elts) and any(whole)
    return False


def _list_grows(loop: Loop, node: ast.expr) -> tuple[ast.AST, bool] | None:
    """A list that the loop appends to and takes nothing from."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    added = None
    for each in walk_own(loop):
        if any(_same(target, node) for target in store_targets(each)):
            return None
        if isinstance(each, ast.Delete) and any(
            isinstance(target, ast.Subscript) and _same(target.value, node) for target in each.targets
        ):
            return None
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and _same(each.func.value, node):
            if each.func.attr in _REMOVES:
                return None
            if each.func.attr in ("append", "extend", "insert"):
                added = each
    return (added, _conditional(loop, added)) if added is not None else None


def _up_to_round(loop: Loop, node: ast.Subscript) -> bool:
    """``x[:, :i]`` with the number of the round."""
    if isinstance(loop, ast.While) or not _range_bounds(loop.iter) or not isinstance(loop.target, ast.Name):
        return False
    number = loop.target.id
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(
        isinstance(each, ast.Slice) and each.step is None and each.upper is not None
        and _mentions(each.upper, number) and (each.lower is None or not _mentions(each.lower, number))
        for each in parts
    )  # fmt: skip


def _mentions(node: ast.expr, name: str) -> bool:
    """A sum with the number in it: a minimum or a rounding of it may be one of few."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
        return _mentions(node.left, name) or _mentions(node.right, name)
    return isinstance(node, ast.Name) and node.id == name


def _same(one: ast.expr, other: ast.expr) -> bool:
    name = dotted_name(one)
    return name is not None and name == dotted_name(other)


def _conditional(loop: Loop, node: ast.AST) -> bool:
    return any(isinstance(each, ast.If) and node in ast.walk(each) for each in walk_own(loop))
