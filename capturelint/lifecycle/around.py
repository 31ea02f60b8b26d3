"""The code around a region: what prepares its capture, what replays it, and in which order."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from capturelint.model import Confidence, Span
from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import contains, dotted_name, last_name, store_targets, walk_own
from capturelint.reach import Reach
from capturelint.regions.declaration import Declaration
from capturelint.values.changing import constructs
from capturelint.values.domain import Function, options
from capturelint.values.engine import Engine
from capturelint.values.facts import NodeSpan, span_of

_MAX_CALLERS = 4
#: how far the helpers of a function are asked whether they throw the graph away
_MAX_HELPERS = 2


@dataclass(eq=False, repr=False, slots=True)
class Surroundings:
    """``capturing``: functions by which the region is captured, from its holder up to what calls that."""

    engine: Engine
    declaration: Declaration
    capturing: dict[FunctionInfo, None] = field(default_factory=dict)

    @property
    def owner(self) -> ClassInfo | None:
        return owner_of(self.declaration.holder)

    def prepares(self, function: FunctionInfo, statement: ast.AST) -> bool:
        """Whether a statement only runs before the capture, or is followed by a new one."""
        if constructs(function, set()):
            return True
        if function is self.declaration.holder and function_line(statement) <= last_line(self.declaration):
            return not _in_common_loop(function.node, self.declaration, statement) or not self._replays(function)
        if self.captured_after(function, statement) or self.drops_graph(function):
            return True
        if function is not self.declaration.holder and _records(function) and not self._replays(function):
            return True  # the forward's graph is recorded before the backward's, which reads what it leaves
        if self._called_while_preparing(function) or self._handed_over(function):
            return True
        return function in self.capturing and not self._replays(function)

    def drops_graph(self, function: FunctionInfo, depth: int = 0) -> bool:
        """``self.graph = None``, ``self.captured = False``: who throws the graph away has it captured anew.

        A helper may do so: ``self.invalidate()``.
        """
        if self._replays(function):
            return False
        nodes = list(walk_own(function.node))
        return any(_drops_graph(node) for node in nodes) or (
            depth < _MAX_HELPERS and any(self.drops_graph(each, depth + 1) for each in self._helpers(function, nodes))
        )

    def _helpers(self, function: FunctionInfo, nodes: list[ast.AST]) -> Iterator[FunctionInfo]:
        """The methods that a function calls as statements of their own, which need no conditions to run."""
        always = {id(each) for each in function.node.body} if not isinstance(function.node, ast.Lambda) else set()
        scope = self.engine.scope_of(function, function.module)
        for node in nodes:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and id(node) in always:
                if isinstance(node.value.func, (ast.Name, ast.Attribute)):
                    for option in options(self.engine.evaluate_in(scope, node.value.func)):
                        if isinstance(option, Function) and option.info is not function:
                            yield option.info

    def read_by_replay(self, name: str) -> bool:
        """Whether code that replays reads ``something.name``."""
        modules = {info.module: None for info in (*self.capturing,) if info is not None}
        modules[self.declaration.module] = None
        return any(name in _read_to_replay(self.engine, info) for module in modules for info in module.all_functions())

    def _called_while_preparing(self, function: FunctionInfo) -> bool:
        """A helper that only capturing functions call, and that does not replay."""
        if self._replays(function):
            return False
        callers = [holder for holder, _ in function.module.calls_named(function.name) if holder is not None]
        return bool(callers) and all(
            (caller in self.capturing and not self._replays(caller)) or constructs(caller, set()) for caller in callers
        )

    def _handed_over(self, function: FunctionInfo) -> bool:
        """A method that is passed on as a callback, in code that captures after it."""
        if function.owner is None or self._replays(function) or list(function.module.calls_named(function.name)):
            return False
        uses = [
            (method, statement)
            for method in function.owner.all_methods()
            for statement in walk_own(method.node)
            if isinstance(statement, ast.Assign)
            and isinstance(statement.value, ast.Attribute)
            and statement.value.attr == function.name
        ]
        return bool(uses) and all(self.captured_after(method, statement) for method, statement in uses)

    def captured_after(self, function: FunctionInfo, statement: ast.AST) -> bool:
        """A capture (or a call that makes one) follows the statement in its block, or its block's own blocks."""
        names = {each.name for each in self.capturing}
        for block in blocks_around(function.node, statement):
            index = next(i for i, each in enumerate(block) if contains(each, statement))
            for later in block[index:]:
                for node in ast.walk(later):
                    if node is self.declaration.node and later is not statement:
                        return True
                    if (
                        isinstance(node, ast.Call)
                        and last_name(node.func) in names
                        and node.lineno >= function_line(statement)
                    ) and not contains(statement, node):
                        return True
            if block is not blocks_around(function.node, statement)[0] and _replays_in(block[index:]):
                break
        return False

    def replayed_after(self, function: FunctionInfo | None, statement: ast.AST, body: ast.AST | None) -> bool:
        """Whether a replay follows the statement: later in its function, or in a loop that holds both."""
        node = function.node if function is not None else body
        if node is None:
            return False
        line = function_line(statement)
        calls = [call for call in walk_own(node, into_nested=True) if is_replay(call)]
        region_lines = (self.declaration.line, last_line(self.declaration))
        for call in calls:
            if call.lineno > line or contains(statement, call):  # type: ignore[attr-defined]
                recaptured = line < region_lines[0] < call.lineno  # type: ignore[attr-defined]
                if not recaptured:
                    return True
            for loop in loops_around(node, statement):
                holds_region = loop.lineno <= region_lines[0] <= (loop.end_lineno or 0) and (
                    function is self.declaration.holder
                )
                if contains(loop, call) and not holds_region:
                    return True
        return False

    def confidence(self, function: FunctionInfo | None) -> Confidence:
        """How sure it is that the function's statements run between capture and replay."""
        if function is None:
            return Confidence.LIKELY
        if self._replays(function):
            return Confidence.CERTAIN
        if self._called_by_replay(function) or self._calls_replay(function):
            return Confidence.CERTAIN if owner_of(function) is self.owner else Confidence.LIKELY
        if self.owner is not None and owner_of(function) is self.owner:
            return Confidence.LIKELY
        if self.owner is not None and function.module is not self.declaration.module and owner_of(function) is None:
            return Confidence.LIKELY
        return Confidence.POSSIBLE

    def _replays(self, function: FunctionInfo) -> bool:
        return self.engine.remembered(("replays", function), lambda: replays(function))

    def _called_by_replay(self, function: FunctionInfo) -> bool:
        callers = [holder for holder, _ in function.module.calls_named(function.name) if holder is not None]
        return any(self._replays(caller) for caller in callers)

    def _calls_replay(self, function: FunctionInfo) -> bool:
        names = {last_name(node.func) for node in walk_own(function.node) if isinstance(node, ast.Call)}
        return any(
            info.name in names and self._replays(info)
            for info in (*self.declaration.module.all_functions(), *function.module.all_functions())
        )


def of(engine: Engine, declaration: Declaration) -> Surroundings:
    surroundings = Surroundings(engine, declaration)
    queue = [(declaration.holder, 0)]
    while queue:
        info, depth = queue.pop()
        while info is not None and info.parent is not None:
            surroundings.capturing[info] = None
            info = info.parent
        if info is None or info in surroundings.capturing:
            continue
        surroundings.capturing[info] = None
        if depth < _MAX_CALLERS:
            for holder, call in info.module.calls_named(info.name):
                if holder is not None and _speaks_of_own(call, info, holder):
                    queue.append((holder, depth + 1))
    return surroundings


def _speaks_of_own(call: ast.Call, info: FunctionInfo, holder: FunctionInfo) -> bool:
    """A call by the function's own name: ``self.capture()`` in the class, ``capture()`` for a plain function."""
    if info.owner is None:
        return isinstance(call.func, ast.Name)
    if info.name == "__init__":
        derived = owner_of(holder)  # ``super().__init__()`` of any other class is none of this one's
        return derived is not None and info.owner.name in {last_name(base) for base in derived.node.bases}
    return isinstance(call.func, ast.Attribute) and (owner_of(holder) is info.owner or owner_of(holder) is not None)


def _speaks_of_graphs(node: ast.expr) -> bool:
    name = last_name(node).lower().strip("_")
    return name == "g" or "graph" in name or "captur" in name


def restores(function: FunctionInfo, target: ast.expr) -> bool:
    """``saved, self.x = self.x, y`` and later ``self.x = saved``: what the graph reads is bound again in the end."""
    name = dotted_name(target)
    saved: set[str] = set()
    stores: list[tuple[ast.AST, ast.expr]] = []
    for node in walk_own(function.node, into_nested=True):
        if not isinstance(node, ast.Assign):
            continue
        for each in node.targets:
            for part, source in _paired(each, node.value):
                if isinstance(part, ast.Name) and dotted_name(source) == name:
                    saved.add(part.id)
                elif dotted_name(part) == name:
                    stores.append((node, source))
    back = [node for node, source in stores if isinstance(source, ast.Name) and source.id in saved]
    return bool(back)


def _paired(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


def owner_of(info: FunctionInfo | None) -> ClassInfo | None:
    while info is not None and info.owner is None:
        info = info.parent
    return info.owner if info is not None else None


def is_replay(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "replay"


def _records(function: FunctionInfo) -> bool:
    """Whether a function holds a ``with torch.cuda.graph(...)`` block."""
    return any(
        isinstance(node, (ast.With, ast.AsyncWith))
        and any(last_name(item.context_expr) == "graph" for item in node.items)
        for node in walk_own(function.node)
    )


def _drops_graph(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("clear", "reset"):
        return _speaks_of_graphs(node.func.value)
    if isinstance(node, ast.Delete):
        return any(_speaks_of_graphs(target) for target in node.targets)
    value = getattr(node, "value", None)
    empty = isinstance(value, ast.Constant) and not value.value
    if empty or (isinstance(value, (ast.Dict, ast.List)) and not ast.dump(value).count("Constant")):
        return any(_speaks_of_graphs(target) for target in store_targets(node))
    return False


def replays(function: FunctionInfo) -> bool:
    return any(is_replay(node) for node in walk_own(function.node, into_nested=True))


def _read_to_replay(engine: Engine, info: FunctionInfo) -> frozenset[str]:
    """The attributes that a function reads, where it replays."""
    return engine.remembered(
        ("read to replay", info),
        lambda: frozenset(
            node.attr
            for node in (walk_own(info.node, into_nested=True) if replays(info) else ())
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
        ),
    )


def _replays_in(statements: list[ast.stmt]) -> bool:
    return any(is_replay(node) for statement in statements for node in ast.walk(statement))


def function_line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def last_line(declaration: Declaration) -> int:
    ends = [getattr(node, "end_lineno", None) or 0 for node in (*(declaration.body or ()), declaration.node)]
    return max(ends, default=declaration.line)


def blocks_around(function: ast.AST, statement: ast.AST) -> list[list[ast.stmt]]:
    """The statement lists that hold a statement, innermost first."""
    found: list[list[ast.stmt]] = []

    def search(node: ast.AST) -> bool:
        for name in ("body", "orelse", "finalbody", "handlers"):
            block = getattr(node, name, None)
            if not isinstance(block, list):
                continue
            for child in block:
                if child is statement or search(child):
                    if name != "handlers":
                        found.append(block)
                    return True
        return False

    search(function)
    return found


def loops_around(function: ast.AST, statement: ast.AST) -> Iterator[ast.For | ast.AsyncFor | ast.While]:
    for node in walk_own(function, into_nested=True):
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)) and contains(node, statement):
            yield node


def _in_common_loop(function: ast.AST, declaration: Declaration, statement: ast.AST) -> bool:
    return any(contains(loop, declaration.node) for loop in loops_around(function, statement))


def span(module: Module, node: ast.AST) -> Span:
    """A node's span with columns in characters."""
    return characters_of(module, span_of(node))


def characters_of(module: Module, found: NodeSpan) -> Span:
    line, column, end_line, end_column = found
    return Span(
        line,
        _characters(module.line_text(line), column) + 1,
        end_line,
        _characters(module.line_text(end_line), end_column) + 1,
    )


def characters(module: Module, span: NodeSpan) -> Span:
    """The span that facts are kept by, with columns in characters."""
    start = _characters(module.line_text(span[0]), span[1])
    return Span(span[0], start + 1, span[2], _characters(module.line_text(span[2]), span[3]) + 1)


def _characters(text: str, column: int) -> int:
    return column if text.isascii() else len(text.encode()[:column].decode(errors="replace"))


def captured_lines(reaches: list[Reach]) -> dict[str, list[tuple[int, int]]]:
    """The lines of every region's block, by path."""
    found: dict[str, list[tuple[int, int]]] = {}
    for reach in reaches:
        declaration = reach.entered.declaration
        if declaration.body is not None:
            lines = (declaration.line, last_line(declaration))
            found.setdefault(declaration.module.display, []).append(lines)
    return found
