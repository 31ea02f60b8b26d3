"""CG902: a capture inside ``torch.autocast``, whose cache of cast weights outlives the captured code.

The cache lives from the outermost ``with torch.autocast(...)`` to its end. What runs there before the capture leaves
casts that the graph reads and never makes; what runs there after it reads casts that only a replay makes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from capturelint.findings import Around
from capturelint.lifecycle import around
from capturelint.lifecycle.callers import callers
from capturelint.model import Applicability, Confidence, Fix, Related
from capturelint.passes.hazard import Hazard
from capturelint.passes.unit import Support
from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import contains, last_name, walk_own
from capturelint.reach import Reach
from capturelint.regions.declaration import Declaration
from capturelint.values import training
from capturelint.values.domain import (
    BoundExternal,
    External,
    ExternalInstance,
    Function,
    Instance,
    Unknown,
    Value,
    options,
)
from capturelint.values.engine import Engine
from capturelint.values.facts import NodeSpan
from capturelint.values.lazy import LazyScope
from capturelint.values.training import Made

_MAX_CALLERS = 4
_GRAPHED = "make_graphed_callables"


@dataclass(frozen=True, eq=False, slots=True)
class _Level:
    """A function on the way to the capture: ``anchor`` is the region, or the call that leads to it."""

    module: Module
    function: FunctionInfo | None
    anchor: ast.AST

    @property
    def node(self) -> ast.AST:
        return self.function.node if self.function is not None else self.module.tree

    def scope(self, engine: Engine) -> LazyScope:
        return engine.scope_of(self.function, self.module)


@dataclass(frozen=True, eq=False, slots=True)
class _Entered:
    """An autocast that is on around an anchor; ``extent`` is the code that runs under it in the same function."""

    expression: ast.expr
    made: Made
    extent: list[ast.stmt]


def find(engine: Engine, reaches: list[Reach]) -> Iterator[Around]:
    found: dict[tuple[str, NodeSpan], tuple[Around, list[Reach]]] = {}
    for reach in reaches:
        declaration = reach.entered.declaration
        if declaration.compiled or (declaration.body is None and declaration.kind != _GRAPHED):
            continue  # a function that is merely marked says nothing about where it is captured
        if _enters_its_own(engine, declaration):
            continue
        for about in _around(engine, reach):
            key = (about.module.display, (*_start(about), 0, 0))
            known = found.get(key)
            if known is None or about.hazard.support.confidence > known[0].hazard.support.confidence:
                found[key] = (about, known[1] if known is not None else [])
            found[key][1].append(reach)
    for about, regions in found.values():
        yield Around(about.module, about.scope, about.hazard, tuple(dict.fromkeys(regions)))


def _start(about: Around) -> tuple[int, int]:
    return about.hazard.span.line, about.hazard.span.column


def _around(engine: Engine, reach: Reach) -> Iterator[Around]:
    declaration = reach.entered.declaration
    start = _Level(declaration.module, declaration.holder, declaration.node)
    queue: list[tuple[_Level, ...]] = [(start,)]
    while queue:
        way = queue.pop()
        level = way[0]
        entered = next(_entered(engine, level), None)
        if entered is not None:
            if about := _hazard(engine, reach, way, entered):
                yield about
        elif level.function is not None and len(way) <= _MAX_CALLERS:
            for site in callers(engine, level.function):
                if all(each.function is not site.holder for each in way):
                    queue.append((_Level(site.module, site.holder, site.call), *way))


# -- what is entered -------------------------------------------------------------------------------------------------


def _entered(engine: Engine, level: _Level) -> Iterator[_Entered]:
    """The autocasts around a level's anchor, innermost first."""
    scope = level.scope(engine)
    blocks = [
        node
        for node in walk_own(level.node)
        if isinstance(node, (ast.With, ast.AsyncWith)) and contains(node, level.anchor)
    ]
    for block in sorted(blocks, key=lambda node: node.lineno, reverse=True):
        items = block.items
        if block is level.anchor:  # what stands before the graph in one `with` is entered before it
            index = next((i for i, each in enumerate(items) if "graph" in last_name(each.context_expr).lower()), 0)
            items = items[:index]
        for item in reversed(items):
            for made in _autocasts(engine, scope, item.context_expr):
                yield _Entered(item.context_expr, made, [block])
    yield from _entered_by_hand(engine, level, scope)
    if level.function is not None:
        for decorator in level.function.decorators:
            for made in _autocasts(engine, engine.module_scope(level.module), decorator):
                yield _Entered(decorator, made, level.function.body)


def _entered_by_hand(engine: Engine, level: _Level, scope: LazyScope) -> Iterator[_Entered]:
    """``stack.enter_context(torch.autocast(...))`` and ``context.__enter__()`` in front of the anchor."""
    line = around.function_line(level.anchor)
    for node in walk_own(level.node):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.lineno >= line:
            continue
        expression: ast.expr | None = None
        if node.func.attr == "enter_context" and node.args:
            expression = node.args[0]
        elif node.func.attr == "__enter__":
            expression = node.func.value
        if expression is None or _left_before(level.node, node, line):
            continue
        for made in _autocasts(engine, scope, expression):
            body = getattr(level.node, "body", [])
            after = [each for each in body if (each.end_lineno or 0) >= node.lineno] if isinstance(body, list) else []
            yield _Entered(expression, made, after)


def _left_before(function: ast.AST, entering: ast.Call, line: int) -> bool:
    """``context.__exit__(...)``, or the end of the stack's own block, before the capture."""
    assert isinstance(entering.func, ast.Attribute)
    owner = ast.dump(entering.func.value)
    for node in walk_own(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("__exit__", "close") and entering.lineno < node.lineno < line:
                if ast.dump(node.func.value) == owner:
                    return True
        if isinstance(node, (ast.With, ast.AsyncWith)) and contains(node, entering):
            if (node.end_lineno or 0) < line:
                return True
    return False


def _autocasts(engine: Engine, scope: LazyScope, node: ast.expr) -> Iterator[Made]:
    """The autocasts that an expression may be, also inside a context manager of the project's own."""
    value = engine.evaluate_in(scope, node)
    found = list(training.autocasts(engine, value))
    if not found and isinstance(node, ast.Call):
        for option in options(engine.evaluate_in(scope, node.func)):
            if isinstance(option, Function) and option.info.has_decorator("contextmanager"):
                found.extend(_yields_inside(engine, option.info))
    yield from found


def _yields_inside(engine: Engine, info: FunctionInfo) -> Iterator[Made]:
    scope = engine.function_scope(info, engine.receiver_of(info))
    for node in walk_own(info.node):
        if isinstance(node, (ast.With, ast.AsyncWith)) and any(isinstance(each, ast.Yield) for each in ast.walk(node)):
            for item in node.items:
                yield from training.autocasts(engine, engine.evaluate_in(scope, item.context_expr))


def _enters_its_own(engine: Engine, declaration: Declaration) -> bool:
    """The whole region stands in an autocast without a cache, entered inside it."""
    if not declaration.body:
        return False
    holder = _Level(declaration.module, declaration.holder, declaration.node)
    return all(
        isinstance(statement, (ast.With, ast.AsyncWith))
        and any(
            made.flag("cache_enabled", True) is False
            for item in statement.items
            for made in _autocasts(engine, holder.scope(engine), item.context_expr)
        )
        for statement in declaration.body
    )


# -- what runs there besides -----------------------------------------------------------------------------------------


def _hazard(engine: Engine, reach: Reach, way: tuple[_Level, ...], entered: _Entered) -> Around | None:
    made = entered.made
    enabled, cached = made.flag("enabled", True), made.flag("cache_enabled", True)
    if enabled is False or cached is False or _is_cpu(made):
        return None
    graphed = reach.kind == _GRAPHED
    sure = Confidence.CERTAIN if graphed else _other_work(engine, way, entered)
    if enabled is None:
        sure = min(sure, Confidence.LIKELY)
    if cached is None:
        sure = Confidence.POSSIBLE
    module = way[0].module
    declaration = reach.entered.declaration
    where = f"{declaration.module.display}:{declaration.line}"
    text = module.segment(entered.expression, 48)
    message = (
        f"`make_graphed_callables` at {where} runs inside `{text}`, whose weight cache is on; torch refuses that"
        if graphed
        else f"the capture at {where} runs inside `{text}`, whose cache of cast weights is on: the graph reads copies "
        "that it does not make, and that are freed when autocast ends"
    )
    fix = None
    if made.made is not None:
        from capturelint.fixes.keywords import with_keyword

        edit = with_keyword(made.made.module, made.made.node, "cache_enabled", "False")
        if edit is not None and made.made.module is module:
            fix = Fix(Applicability.SAFE, "switch the cache off", (edit,))
    hazard = Hazard(
        "CG902",
        around.span(module, entered.expression),
        message,
        "casts weights once, outside the graph",
        Support(sure, ()),
        help="pass `cache_enabled=False`, or enter autocast inside the captured code",
        related=(Related(declaration.module.display, declaration.line, "captured here"),),
        fix=fix,
    )
    function = way[0].function
    return Around(module, function.qualname if function is not None else "", hazard, (reach,))


def _is_cpu(made: Made) -> bool:
    from capturelint.values.domain import Host

    device = made.arguments.get("device_type")
    return isinstance(device, Host) and device.const == "cpu"


def _other_work(engine: Engine, way: tuple[_Level, ...], entered: _Entered) -> Confidence:
    """How sure it is that something besides the capture casts weights under the same autocast."""
    best = Confidence.POSSIBLE
    for index, level in enumerate(way):
        statements = entered.extent if index == 0 else getattr(level.node, "body", [])
        for loop in around.loops_around(level.node, level.anchor):
            if index or any(contains(statement, loop) for statement in statements):
                best = max(best, Confidence.LIKELY, key=lambda each: each.rank)  # several captures share the cache
        scope = level.scope(engine)
        for statement in statements if isinstance(statements, list) else []:
            for call in _calls_outside(statement, level.anchor):
                best = max(best, _casts(engine.evaluate_in(scope, call.func)), key=lambda each: each.rank)
    return best


def _calls_outside(statement: ast.AST, anchor: ast.AST) -> Iterator[ast.Call]:
    """The calls below a statement, but for the region's and the one that leads there."""
    if statement is anchor or isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
        return
    if isinstance(statement, ast.Call):
        yield statement
    for child in ast.iter_child_nodes(statement):
        yield from _calls_outside(child, anchor)


def _casts(callee: Value) -> Confidence:
    """How sure it is that a call runs operators that cast weights."""
    for option in options(callee):
        if isinstance(option, (Instance, Function)):
            return Confidence.CERTAIN
        if isinstance(option, ExternalInstance) and option.cls.startswith("torch.nn."):
            return Confidence.CERTAIN
        if isinstance(option, (External, BoundExternal)):
            if option.path.startswith("torch.nn.functional.") or option.path in ("torch.matmul", "torch.mm"):
                return Confidence.CERTAIN
            if not option.path.startswith(("torch.", "builtins.", "contextlib.", "time.", "?.")):
                return Confidence.LIKELY
        elif isinstance(option, Unknown):
            return Confidence.LIKELY
    return Confidence.POSSIBLE
