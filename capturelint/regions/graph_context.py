"""``with torch.cuda.graph(g):``, under whatever name the context manager goes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.project.definitions import FunctionInfo, last_name
from capturelint.project.module import ImportedName, Module
from capturelint.regions.declaration import Declaration
from capturelint.values.domain import ExternalInstance, Value, options
from capturelint.values.engine import Engine

NEEDLES = (b".graph", b"import graph")
#: context managers that begin a capture on entry and end it on exit
GRAPH_CONTEXTS = frozenset({"torch.cuda.graph", "torch.xpu.graph", "torch.npu.graph", "torch_npu.npu.graph"})


def find(engine: Engine, module: Module) -> Iterator[Declaration]:
    for holder, node in module.uses.withs:
        for item in node.items:
            if _worth_asking(module, item.context_expr) and is_graph(_value(engine, module, holder, item)):
                name = holder.qualname if holder is not None else "<module>"
                yield Declaration("torch.cuda.graph", module, node, name, holder, node.body)
                break


def _worth_asking(module: Module, node: ast.expr) -> bool:
    """A cheap test before evaluation: the name has to do with graphs or captures, or is an alias of ``graph``."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        return True
    name = last_name(node)
    if any(word in name.lower() for word in ("graph", "capture", "record")):
        return True
    return any(
        isinstance(definition, ImportedName) and definition.name == "graph" for definition in module.names.get(name, ())
    )


def _value(engine: Engine, module: Module, holder: FunctionInfo | None, item: ast.withitem) -> Value:
    scope = engine.function_scope(holder, engine.receiver_of(holder)) if holder else engine.module_scope(module)
    return engine.evaluate_in(scope, item.context_expr)


def is_graph(value: Value) -> bool:
    return any(isinstance(option, ExternalInstance) and option.cls in GRAPH_CONTEXTS for option in options(value))
