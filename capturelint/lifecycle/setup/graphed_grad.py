"""CG905, gradients: a callable that was graphed without them is trained, or one whose samples take none is given some.

torch captures the backward for those samples and parameters that require grad while it captures. Without any, backward
replays a graph that was never captured; for a sample that doesn't require grad, no gradient reaches what came before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.findings import Around
from capturelint.lifecycle.setup.captures import Capture, report
from capturelint.lifecycle.setup.points import Point, ancestors, value_at
from capturelint.model import Confidence
from capturelint.project.definitions import FunctionInfo
from capturelint.project.syntax import contains, last_name, store_targets, walk_own
from capturelint.values import hierarchy
from capturelint.values.engine import Engine

_SWITCHED_OFF = ("no_grad", "inference_mode")


def graphed_without(capture: Capture) -> Iterator[Around]:
    """``with torch.no_grad(): fast = make_graphed_callables(...)``, and a backward later in the function."""
    point = capture.point
    last = getattr(capture.begins, "end_lineno", 0) or 0
    if not _switched_off(point.function, ancestors(point.root, capture.begins)):
        return
    if any(_backward(node) and node.lineno > last for node in walk_own(point.root)):  # type: ignore[attr-defined]
        yield report(
            "CG905", point.at(capture.begins),
            "graphed while gradients are switched off, so no backward is captured, and the one that follows replays "
            "an empty graph",
            "no backward is captured", Confidence.LIKELY, [capture],
            help="graph the callable with gradients on, as it is trained", related=[],
        )  # fmt: skip


def untracked(engine: Engine, capture: Capture, point: Point, given: ast.expr, sample: ast.expr) -> Iterator[Around]:
    """An argument that another module computed, in the place of a sample that does not require grad."""
    if not any(_backward(node) for node in walk_own(point.root)) or _switched_off(
        point.function, ancestors(point.root, point.node)
    ):
        return
    if _computed(engine, point, given) and _takes_no_gradient(engine, capture, sample):
        text, taken = point.module.segment(given, 30), capture.point.module.segment(sample, 30)
        yield report(
            "CG905", point.at(given),
            f"`{text}` carries a gradient, and the sample `{taken}` required none: the captured backward gives none "
            "for it, so what computed it is not trained",
            "not as it was graphed", Confidence.LIKELY, [capture],
            help="make the sample as the argument is in training: `requires_grad=True`",
            related=[capture.related("graphed here")],
        )  # fmt: skip


def _switched_off(function: FunctionInfo | None, around: list[ast.AST]) -> bool:
    withs = [node for node in around if isinstance(node, (ast.With, ast.AsyncWith))]
    managers = [item.context_expr for node in withs for item in node.items]
    return any(last_name(each) in _SWITCHED_OFF for each in managers) or (
        function is not None and function.has_decorator(*_SWITCHED_OFF)
    )


def _backward(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "backward"


def _computed(engine: Engine, point: Point, given: ast.expr) -> bool:
    """Whether a name is bound to what a module gives, right before."""
    values = _assigned(point, given)
    return bool(values) and all(
        isinstance(each, ast.Call) and hierarchy.is_module_object(engine, value_at(engine, point, each.func))
        for each in values
    )


def _takes_no_gradient(engine: Engine, capture: Capture, sample: ast.expr) -> bool:
    """A tensor that a factory makes, where nothing says that it requires grad."""
    point = capture.point
    made = _assigned(point, sample) if isinstance(sample, ast.Name) else [sample]
    if not made or not all(isinstance(each, ast.Call) and _is_factory(engine, point, each) for each in made):
        return False
    return not isinstance(sample, ast.Name) or not any(
        _asks_for_gradient(node, sample.id) for node in walk_own(point.root)
    )


def _is_factory(engine: Engine, point: Point, call: ast.Call) -> bool:
    if any(_says(each).startswith("requires_grad") for each in ast.walk(call)):
        return False
    while isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call):
        call = call.func.value  # ``torch.randn(...).cuda()``
    path = getattr(value_at(engine, point, call.func), "path", "")
    spec = engine.ops.lookup(path)
    return spec is not None and spec.returns.kind == "factory"


def _says(node: ast.AST) -> str:
    name = node.arg if isinstance(node, ast.keyword) else node.attr if isinstance(node, ast.Attribute) else None
    return name or ""


def _asks_for_gradient(node: ast.AST, name: str) -> bool:
    """``x.requires_grad_()``, ``x.requires_grad = True``."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr.startswith("requires_grad")
        and isinstance(node.value, ast.Name)
        and node.value.id == name
    )


def _assigned(point: Point, node: ast.expr) -> list[ast.expr]:
    """What the function binds a name to; a view of the sample, or a copy, says nothing more."""
    if not isinstance(node, ast.Name):
        return []
    return [
        each.value
        for each in walk_own(point.root)
        if isinstance(each, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == node.id for target in store_targets(each))
        and not contains(each, point.node)
    ]
