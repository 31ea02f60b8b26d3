"""Whether two captures, or two rounds of one, put their graphs into one pool."""

from __future__ import annotations

import ast

from capturelint.lifecycle.setup.captures import Capture
from capturelint.lifecycle.setup.parameters import passed_to
from capturelint.lifecycle.setup.points import loops_at
from capturelint.lifecycle.setup.pools import Pool, pool_in_loop
from capturelint.project.syntax import dotted_name, last_name


def share_memory(one: Capture, other: Capture) -> bool:
    if one is other:
        return _shares_with_itself(one)
    mine, theirs = one.argument("pool"), other.argument("pool")
    if theirs is not None and _is_pool_of(theirs, one):
        return True
    if mine is not None and _is_pool_of(mine, other):
        return True
    if mine is None or theirs is None or dotted_name(mine) is None:
        return False
    return dotted_name(mine) == dotted_name(theirs) and one.point.module is other.point.module


def _is_pool_of(node: ast.expr, capture: Capture) -> bool:
    """``pool=first.pool()``."""
    if not isinstance(node, ast.Call) or last_name(node.func) != "pool" or not isinstance(node.func, ast.Attribute):
        return False
    graph = capture.argument("cuda_graph") if capture.kind == "graph" else None
    return graph is not None and dotted_name(graph) is not None and dotted_name(graph) == dotted_name(node.func.value)


def _shares_with_itself(capture: Capture) -> bool:
    """A capture that runs several times: in a loop, or in a function that is called at several places."""
    for path in capture.paths:
        for index, point in enumerate(path):
            for loop in loops_at(point):
                if pool_in_loop(capture, path, index, loop) is Pool.SHARED:
                    return True
    given = capture.argument("pool")
    if len(capture.paths) < 2 or given is None:
        return False
    if isinstance(given, ast.Attribute):
        return True
    function = capture.point.function
    if isinstance(given, ast.Name) and function is not None:
        calls = [path[1].node for path in capture.paths if len(path) > 1]
        passed = [passed_to(call, function, given.id) for call in calls if isinstance(call, ast.Call)]
        names = {dotted_name(each) if each is not None else None for each in passed}
        return len(passed) > 1 and len(names) == 1 and None not in names
    return False
