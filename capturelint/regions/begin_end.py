"""``g.capture_begin()`` ... ``g.capture_end()``: the statements between them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import last_name, walk_own
from capturelint.regions.declaration import Declaration
from capturelint.regions.managers import ENDS, begins
from capturelint.regions.needles import BEGIN_END, BEGINS
from capturelint.values.domain import Function, Instance, options
from capturelint.values.engine import Engine

_MAX_FILES = 40


def find(engine: Engine, module: Module) -> Iterator[Declaration]:
    stack: list[tuple[ast.AST, FunctionInfo | None]] = [(module.tree, None)]
    while stack:
        node, holder = stack.pop()
        holder = module.functions.get(id(node), holder)
        for block in ("body", "orelse", "finalbody"):
            statements = getattr(node, block, None)
            if isinstance(statements, list):
                yield from _in_block(engine, module, holder, statements)
        stack.extend((child, holder) for child in ast.iter_child_nodes(node))


def _in_block(
    engine: Engine, module: Module, holder: FunctionInfo | None, statements: list[ast.stmt]
) -> Iterator[Declaration]:
    for index, statement in enumerate(statements):
        if not _calls(statement, BEGINS, directly=True) or not _captures(engine, module, holder, statement):
            continue
        body: list[ast.stmt] = []
        stretch = [statement]
        for following in statements[index + 1 :]:
            stretch.append(following)
            if _calls(following, ENDS, directly=False):
                body.extend(_before_end(following))
                break
            body.append(following)
        else:
            continue  # the end is elsewhere: what is captured is not these statements alone
        if body:
            name = holder.qualname if holder is not None else "<module>"
            yield Declaration("capture_begin", module, statement, name, holder, body, stretch=stretch)


def find_split(engine: Engine) -> Iterator[Declaration]:
    """``x.begin()`` ... ``x.end()`` where two methods of the project's own class begin and end the capture."""
    for file in engine.project.search.holding(BEGIN_END):
        module = engine.project.module_at(file.path)
        for cls in module.all_classes() if module is not None else ():
            first = [m.name for m in cls.all_methods() if _has(m, BEGINS) and not _has(m, ENDS)]
            last = [m.name for m in cls.all_methods() if _has(m, ENDS) and not _has(m, BEGINS)]
            for name in first:
                if last and not name.startswith("__"):
                    yield from _between(engine, cls, name, tuple(last))


def _has(info: FunctionInfo, names: tuple[str, ...]) -> bool:
    return any(isinstance(node, ast.Call) and last_name(node.func) in names for node in walk_own(info.node))


def _between(engine: Engine, cls: ClassInfo, first: str, last: tuple[str, ...]) -> Iterator[Declaration]:
    for module in engine.project.modules(engine.project.search.calling(first), _MAX_FILES):
        for holder, call in module.calls_named(first):
            if holder is None or holder.owner is cls or not isinstance(call.func, ast.Attribute):
                continue
            scope = engine.function_scope(holder, engine.receiver_of(holder))
            owner = engine.evaluate_in(scope, call.func.value)
            if not any(isinstance(o, Instance) and cls in engine.mro(o.site.cls) for o in options(owner)):
                continue
            for statements in _blocks(holder.node):
                index = next((i for i, s in enumerate(statements) if getattr(s, "value", None) is call), None)
                if index is None:
                    continue
                body: list[ast.stmt] = []
                for following in statements[index + 1 :]:
                    if _calls(following, last, directly=False):
                        body.extend(_before_end(following))
                        yield Declaration("capture_begin", module, statements[index], holder.qualname, holder, body)
                        break
                    body.append(following)


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for each in ast.walk(node):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(each, name, None)
            if isinstance(block, list):
                yield block


def _captures(engine: Engine, module: Module, holder: FunctionInfo | None, statement: ast.stmt) -> bool:
    """A method of the project's that happens to be called ``capture_begin`` counts only if it begins a capture."""
    scope = engine.scope_of(holder, module)
    call = next(each for each in ast.walk(statement) if isinstance(each, ast.Call) and last_name(each.func) in BEGINS)
    found = [o for o in options(engine.evaluate_in(scope, call.func)) if isinstance(o, Function)]
    return not found or any(begins(engine, each.info) for each in found)


def _before_end(statement: ast.stmt) -> list[ast.stmt]:
    """``try: work() finally: g.capture_end()`` captures the try's body."""
    if isinstance(statement, ast.Try):
        return [inner for inner in statement.body if not _calls(inner, ENDS, directly=True)]
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        kept: list[ast.stmt] = []
        for inner in statement.body:
            if _calls(inner, ENDS, directly=False):
                break
            kept.append(inner)
        return kept
    return []


def _calls(statement: ast.stmt, names: tuple[str, ...], *, directly: bool) -> bool:
    """Whether a statement calls one of ``names``; ``directly``: as all that it does, perhaps within an error check."""
    if directly and not isinstance(statement, (ast.Expr, ast.Assign)):
        return False
    return any(isinstance(node, ast.Call) and last_name(node.func) in names for node in ast.walk(statement))
