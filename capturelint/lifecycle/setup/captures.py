"""The captures of a project with what their declaring call was given, and the ways that lead to them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from capturelint.findings import Around
from capturelint.lifecycle import around
from capturelint.lifecycle.setup.points import Callers, Path, Point, value_at
from capturelint.model import Confidence, Related
from capturelint.passes.hazard import Hazard
from capturelint.passes.unit import Support
from capturelint.project.syntax import last_name
from capturelint.reach import Reach
from capturelint.regions.declaration import Declaration
from capturelint.regions.managers import BEGINS, is_graph
from capturelint.values.domain import ExternalInstance, Value, options
from capturelint.values.engine import Engine

GRAPHED_CALLABLES = "make_graphed_callables"
#: where ``torch.cuda.graph`` and ``capture_begin`` take their arguments
_POSITIONS = {
    "graph": ("cuda_graph", "pool", "stream", "capture_error_mode"),
    "capture_begin": ("pool", "capture_error_mode"),
    GRAPHED_CALLABLES: ("callables", "sample_args", "num_warmup_iters", "allow_unused_input", "pool"),
}


@dataclass(eq=False, repr=False, slots=True)
class Capture:
    """A capture whose code is in view. ``call`` is what begins it, where it is written out as a call."""

    engine: Engine
    reach: Reach
    point: Point
    #: the expression that begins the capture: the context manager, or the call of ``capture_begin``
    begins: ast.expr
    call: ast.Call | None
    paths: list[Path] = field(default_factory=list)

    @property
    def declaration(self) -> Declaration:
        return self.reach.entered.declaration

    @property
    def where(self) -> str:
        return f"{self.point.module.display}:{self.declaration.line}"

    @property
    def kind(self) -> str:
        return self.declaration.kind if self.declaration.kind in _POSITIONS else "graph"

    @property
    def opaque(self) -> bool:
        """Whether arguments may have been given that are not seen."""
        call = self.call
        return call is None or any(isinstance(each, ast.Starred) for each in call.args) or any(
            keyword.arg is None for keyword in call.keywords
        )  # fmt: skip

    def argument(self, name: str) -> ast.expr | None:
        """The expression that was given for a parameter."""
        call = self.call
        if call is None:
            return None
        for keyword in call.keywords:
            if keyword.arg == name:
                return keyword.value
        index = _POSITIONS[self.kind].index(name)
        return call.args[index] if index < len(call.args) and not self.opaque else None

    def value(self, node: ast.expr) -> Value:
        return value_at(self.engine, self.point, node)

    def related(self, message: str = "captured here") -> Related:
        return Related(self.point.module.display, self.declaration.line, message)


def captures_of(engine: Engine, reaches: Iterable[Reach], callers: Callers) -> list[Capture]:
    """Every capture that torch begins in the project's own code; compiled and merely marked regions are none."""
    found = []
    for reach in reaches:
        declaration = reach.entered.declaration
        if declaration.compiled:
            continue
        point = Point(declaration.module, declaration.holder, declaration.node)
        begins = _begins(engine, declaration, point)
        if begins is None:
            continue
        capture = Capture(engine, reach, point, begins, begins if isinstance(begins, ast.Call) else None)
        capture.paths = callers.paths(point)
        found.append(capture)
    return found


def _begins(engine: Engine, declaration: Declaration, point: Point) -> ast.expr | None:
    node = declaration.node
    if isinstance(node, (ast.With, ast.AsyncWith)):
        for item in node.items:
            if is_graph(value_at(engine, point, item.context_expr)):
                return _made_by(declaration, item.context_expr)
        return None
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    if declaration.kind == GRAPHED_CALLABLES:
        return calls[0] if calls else None
    return next((each for each in calls if last_name(each.func) in BEGINS), None)


def _made_by(declaration: Declaration, node: ast.expr) -> ast.expr:
    """``context = torch.cuda.graph(g)`` before ``with context:`` is what says how to capture."""
    if isinstance(node, ast.Name) and declaration.holder is not None:
        made = declaration.holder.assigned.get(node.id, [])
        if len(made) == 1 and isinstance(made[0], ast.Call):
            return made[0]
    return node


def is_torch_graph(value: Value) -> bool:
    """Whether a value is a ``torch.cuda.CUDAGraph``."""
    return any(
        isinstance(option, ExternalInstance) and option.cls.endswith("CUDAGraph") for option in options(value)
    )  # fmt: skip


def report(
    rule: str,
    point: Point,
    message: str,
    label: str,
    confidence: Confidence,
    captures: Iterable[Capture],
    *,
    help: str | None = None,
    related: Iterable[Related] = (),
    why: str = "",
) -> Around:
    """A finding at a place, about captures."""
    hazard = Hazard(
        rule,
        around.span(point.module, point.node),
        message,
        label,
        Support(confidence, (), why),
        help=help,
        related=tuple(dict.fromkeys(related)),
    )
    return Around(point.module, point.scope_name, hazard, tuple(dict.fromkeys(each.reach for each in captures)))


def story(path: Path, captured: Capture) -> Iterator[Related]:
    """Where the capture stands and by which calls it is reached, outermost first."""
    for point in reversed(path[1:]):
        yield Related(point.module.display, point.line, "reached from here")
    yield captured.related()
