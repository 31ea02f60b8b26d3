"""``with torch.cuda.graph(g):``, under whatever name the context manager goes, the project's own ones included."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from capturelint.project.bindings import ImportedName
from capturelint.project.module import Module
from capturelint.project.syntax import last_name
from capturelint.regions.declaration import Declaration
from capturelint.regions.managers import captures, is_graph, managers_begin
from capturelint.values.engine import Engine


def find(engine: Engine, module: Module, words: Collection[str] = ()) -> Iterator[Declaration]:
    """The blocks of one module; ``words`` are the names of the project's own capturing context managers."""
    for holder, node in module.uses.withs:
        for item in node.items:
            if not _worth_asking(module, item.context_expr, words):
                continue
            scope = engine.scope_of(holder, module)
            value = engine.evaluate_in(scope, item.context_expr)
            called = item.context_expr.func if isinstance(item.context_expr, ast.Call) else None
            callee = engine.evaluate_in(scope, called) if called is not None else None
            if captures(engine, item.context_expr, callee, value):
                name = holder.qualname if holder is not None else "<module>"
                kind = "torch.cuda.graph" if is_graph(value) else last_name(item.context_expr) or "context manager"
                begins_at = managers_begin(engine, callee, value)
                yield Declaration(kind, module, node, name, holder, node.body, begins_at=begins_at)
                break


def _worth_asking(module: Module, node: ast.expr, words: Collection[str]) -> bool:
    """A cheap test before evaluation: the name has to do with graphs or captures, or is an alias of ``graph``."""
    if isinstance(node, ast.IfExp):
        return _worth_asking(module, node.body, words) or _worth_asking(module, node.orelse, words)
    name = last_name(node)
    if name in words:
        return True
    if isinstance(node, (ast.Name, ast.Attribute)):
        return "stream" not in name.lower() and "lock" not in name.lower()
    if any(word in name.lower() for word in ("graph", "capture")):
        return True
    return any(
        isinstance(definition, ImportedName) and definition.name == "graph" for definition in module.names.get(name, ())
    )
