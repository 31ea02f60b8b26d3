"""CG807, one graph object: captured a second time, or replayed before its capture or after its reset.

A graph object takes one capture. Told here within one function, where the order of its statements is known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.findings import Around
from capturelint.lifecycle.order import Order, order_of
from capturelint.lifecycle.setup.captures import Capture, is_torch_graph, report
from capturelint.lifecycle.setup.points import Point, ancestors, loops_at, withs_at
from capturelint.model import Confidence, Related
from capturelint.project.syntax import dotted_name, last_name, store_targets, walk_own

_ANEW = "make a graph for each capture: `torch.cuda.CUDAGraph()` right before it"


def find(captures: list[Capture]) -> Iterator[Around]:
    by_graph: dict[tuple[ast.AST, str], list[Capture]] = {}
    for capture in captures:
        name = dotted_name(graph_of(capture)) if graph_of(capture) is not None else None  # type: ignore[arg-type]
        if name is not None and capture.point.function is not None and not _renewed_elsewhere(capture, name):
            by_graph.setdefault((capture.point.root, name), []).append(capture)
    for (root, name), group in by_graph.items():
        order = order_of(group[0].engine, root)
        for capture in group:
            yield from _in_loop(capture, name)
            yield from _too_early(order, capture, name, group)
        for first in group:
            for second in group:
                if order.follows_directly(first.declaration.node, second.declaration.node):
                    if not _renewed(order, first, second, name):
                        yield _twice(
                            second, name, Related(second.point.module.display, first.declaration.line, "first")
                        )


def graph_of(capture: Capture) -> ast.expr | None:
    """The expression for the graph that is captured into."""
    if capture.kind == "graph":
        return capture.argument("cuda_graph")
    if capture.kind == "capture_begin" and capture.call is not None and isinstance(capture.call.func, ast.Attribute):
        graph = capture.call.func.value
        return graph if is_torch_graph(capture.value(graph)) else None
    return None


def _renewed_elsewhere(capture: Capture, name: str) -> bool:
    """Another method may bind the attribute anew, or what is raised is expected."""
    if any(last_name(item.context_expr) in ("raises", "assertRaises") for item in withs_at(capture.point)):
        return True
    stores = capture.point.module.uses.attribute_stores(name.rpartition(".")[2]) if "." in name else ()
    return any(
        function is not None and function is not capture.point.function and function.name != "__init__"
        for function, _, _ in stores
    )


# -- captured twice --------------------------------------------------------------------------------------------------


def _in_loop(capture: Capture, name: str) -> Iterator[Around]:
    """A loop around the capture that neither makes the graph anew nor leaves after the first capture."""
    for loop in reversed(loops_at(capture.point)):
        if isinstance(loop, ast.comprehension):
            return
        nodes = [node for statement in loop.body for node in (statement, *walk_own(statement))]
        leaves = any(isinstance(node, (ast.Break, ast.Return, ast.Continue, ast.Try)) for node in nodes)
        inside = ancestors(loop, capture.declaration.node)
        if leaves or any(isinstance(node, (ast.If, ast.Try)) for node in inside):
            return
        if any(_renews(node, name) for node in (loop, *nodes)):
            return
        yield _twice(capture, name, Related(capture.point.module.display, loop.lineno, "in each round of this loop"))
        return


def _renewed(order: Order, first: Capture, second: Capture, name: str) -> bool:
    return any(
        _renews(node, name)
        and order.may_follow(first.declaration.node, node)
        and order.may_follow(node, second.declaration.node)
        for node in walk_own(first.point.root)
    )


def _renews(node: ast.AST, name: str) -> bool:
    """``graph = ...`` (or what it is an attribute of), ``graph.reset()``, or a call that is handed the graph."""
    if any(name == dotted_name(each) or name.startswith(f"{dotted_name(each)}.") for each in store_targets(node)):
        return True
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr == "reset" and dotted_name(node.func.value) == name:
        return True
    root = name.partition(".")[0]
    return last_name(node.func) in ("reset", "setattr", "del_graph") and root in {
        each.id for each in ast.walk(node) if isinstance(each, ast.Name)
    }


def _twice(capture: Capture, name: str, related: Related) -> Around:
    return report(
        "CG807",
        capture.point.at(capture.begins),
        f"`{name}` holds a captured graph by then, and takes no second capture",
        "captured again",
        Confidence.LIKELY,
        [capture],
        help=_ANEW,
        related=[related],
    )


# -- replayed before its capture, or after its reset -----------------------------------------------------------------


def _too_early(order: Order, capture: Capture, name: str, group: list[Capture]) -> Iterator[Around]:
    """Only for a graph that the function itself makes: others may have been captured before."""
    function = capture.point.function
    if capture is not group[0] or function is None or name not in function.assigned or len(function.assigned[name]) > 1:
        return
    for node in function.acts:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "replay"):
            continue
        if dotted_name(node.func.value) != name:
            continue
        early = not any(order.may_follow(each.declaration.node, node) for each in group)
        if early or _reset_before(order, node, name, group):
            yield report(
                "CG807",
                capture.point.at(node),
                f"`{name}` holds no captured graph here, and replays nothing: torch raises",
                "replayed before its capture" if early else "replayed after its reset",
                Confidence.LIKELY,
                [capture],
                help="capture first, and replay what was captured before it is reset",
                related=[capture.related()],
            )


def _reset_before(order: Order, replay: ast.Call, name: str, group: list[Capture]) -> bool:
    function = group[0].point.function
    for node in function.acts if function is not None else ():
        resets = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "reset"
        if resets and dotted_name(node.func.value) == name and order.follows_directly(node, replay):  # type: ignore[attr-defined]
            return not any(
                order.may_follow(node, each.declaration.node) and order.may_follow(each.declaration.node, replay)
                for each in group
            ) and _same_block(group[0].point, node, replay)
    return False


def _same_block(point: Point, first: ast.AST, second: ast.AST) -> bool:
    """Neither stands in a branch that the other may be without."""
    return not any(
        isinstance(node, (ast.If, ast.Try, ast.For, ast.While))
        for each in (first, second)
        for node in ancestors(point.root, each)
    )
