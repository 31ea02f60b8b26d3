"""Which memory pool a capture uses: one that it shares with others, or one of its own."""

from __future__ import annotations

import ast
import enum

from capturelint.lifecycle.setup.captures import Capture
from capturelint.lifecycle.setup.parameters import default_of, passed_to
from capturelint.lifecycle.setup.points import Loop, Path, Point, ancestors, value_at
from capturelint.project.definitions import FunctionInfo
from capturelint.project.syntax import last_name, store_targets, walk_own
from capturelint.values.domain import Host, options

_NEW_POOL = ("graph_pool_handle", "MemPool")


class Pool(enum.Enum):
    OWN = "own"
    SHARED = "shared"
    UNKNOWN = "unknown"


def pool_in_loop(capture: Capture, path: Path, index: int, loop: Loop) -> Pool:
    """Which pool the captures of a loop at ``path[index]`` use: one for all, or one for each."""
    if capture.opaque:
        return Pool.UNKNOWN
    given = capture.argument("pool")
    if given is None:
        return Pool.OWN
    return _judged(capture, path, 0, given, index, loop)


def _judged(capture: Capture, path: Path, level: int, node: ast.expr, outermost: int, loop: Loop) -> Pool:
    """What ``node`` at ``path[level]`` is, for the rounds of a loop that stands at ``path[outermost]``."""
    if isinstance(node, ast.Constant) and node.value is None:
        return Pool.OWN
    if isinstance(node, ast.Call) and last_name(node.func) in _NEW_POOL:
        return Pool.OWN  # evaluated anew in each round
    if isinstance(node, ast.Attribute):
        return Pool.SHARED if _kept(capture, path[level].at(node), node) else Pool.UNKNOWN
    if not isinstance(node, ast.Name):
        return Pool.UNKNOWN
    function = path[level].function
    if function is not None and node.id in {each.arg for each in function.parameters()}:
        return _passed(capture, path, level, node.id, outermost, loop)
    stores = _stores(path[level], node.id)
    if not stores:
        return Pool.SHARED  # of the module or of an enclosing function
    inside = [each for each in stores if level < outermost or _within(path[level], each, loop)]
    if not inside:
        return Pool.SHARED
    fresh = [each for each in inside if isinstance(each, ast.Call) and last_name(each.func) in _NEW_POOL]
    if len(fresh) == len(stores):
        return Pool.OWN
    return Pool.SHARED if any(_asks_graph(each) for each in inside) else Pool.UNKNOWN


def _passed(capture: Capture, path: Path, level: int, name: str, outermost: int, loop: Loop) -> Pool:
    function = path[level].function
    assert function is not None
    if level + 1 >= len(path) or level >= outermost:
        return Pool.SHARED  # it comes from outside the loop
    call = path[level + 1].node
    given = passed_to(call, function, name) if isinstance(call, ast.Call) else None
    if given is not None:
        return _judged(capture, path, level + 1, given, outermost, loop)
    default = default_of(function, name)
    return Pool.OWN if isinstance(default, ast.Constant) and default.value is None else Pool.UNKNOWN


def _kept(capture: Capture, point: Point, node: ast.Attribute) -> bool:
    """Whether an attribute may hold a pool: something that is not None is bound to it somewhere."""
    value = value_at(capture.engine, point, node)
    return not all(isinstance(option, Host) and option.is_none for option in options(value)) or bool(
        [each for module in (point.module,) for each in module.uses.attribute_stores(node.attr) if _fills(each)]
    )


def _fills(store: tuple[FunctionInfo | None, ast.AST, ast.expr]) -> bool:
    value = getattr(store[1], "value", None)
    return not (isinstance(value, ast.Constant) and value.value is None)


def _stores(point: Point, name: str) -> list[ast.expr]:
    return [
        node.value
        for node in walk_own(point.root)
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        and node.value is not None
        and any(isinstance(target, ast.Name) and target.id == name for target in store_targets(node))
    ]


def _within(point: Point, node: ast.AST, loop: Loop) -> bool:
    return loop in ancestors(point.root, node)


def _asks_graph(node: ast.expr) -> bool:
    """``pool = graph.pool()`` after the first capture: the others share it."""
    return isinstance(node, ast.Call) and last_name(node.func) == "pool"
