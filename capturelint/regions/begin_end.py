"""``g.capture_begin()`` ... ``g.capture_end()``: the statements between them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.regions.declaration import Declaration
from capturelint.values.domain import Function, options
from capturelint.values.engine import Engine

NEEDLES = (b"capture_begin",)


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
        if not _calls(statement, "capture_begin", directly=True) or not _captures(engine, module, holder, statement):
            continue
        body: list[ast.stmt] = []
        for following in statements[index + 1 :]:
            if _calls(following, "capture_end", directly=False):
                body.extend(_before_end(following))
                break
            body.append(following)
        else:
            continue  # the end is elsewhere: what is captured is not these statements alone
        if body:
            name = holder.qualname if holder is not None else "<module>"
            yield Declaration("capture_begin", module, statement, name, holder, body)


def _captures(engine: Engine, module: Module, holder: FunctionInfo | None, statement: ast.stmt) -> bool:
    """A method of the project's that happens to be called ``capture_begin`` counts only if it begins a capture."""
    scope = engine.function_scope(holder, engine.receiver_of(holder)) if holder else engine.module_scope(module)
    call = getattr(statement, "value", None)
    assert isinstance(call, ast.Call)
    found = [o for o in options(engine.evaluate_in(scope, call.func)) if isinstance(o, Function)]
    return not found or any(
        isinstance(node, ast.Attribute) and node.attr == "capture_begin"
        for each in found
        for node in ast.walk(each.info.node)
    )


def _before_end(statement: ast.stmt) -> list[ast.stmt]:
    """``try: work() finally: g.capture_end()`` captures the try's body."""
    if isinstance(statement, ast.Try):
        return [inner for inner in statement.body if not _calls(inner, "capture_end", directly=True)]
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        kept: list[ast.stmt] = []
        for inner in statement.body:
            if _calls(inner, "capture_end", directly=False):
                break
            kept.append(inner)
        return kept
    return []


def _calls(statement: ast.stmt, name: str, *, directly: bool) -> bool:
    if directly:
        value = getattr(statement, "value", None)
        return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == name
    return any(isinstance(node, ast.Attribute) and node.attr == name for node in ast.walk(statement))
