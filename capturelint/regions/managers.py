"""Context managers of the project's own that begin a capture: which they are, told from their code."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.model import Frame
from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import last_name, walk_own
from capturelint.regions.needles import BEGINS as BEGINS
from capturelint.values.contexts import names_of
from capturelint.values.domain import ExternalInstance, Function, Instance, Value, options
from capturelint.values.engine import Engine
from capturelint.values.hierarchy import find_method

#: context managers that begin a capture on entry and end it on exit
GRAPH_CONTEXTS = frozenset({"torch.cuda.graph", "torch.xpu.graph", "torch.npu.graph", "torch_npu.npu.graph"})
#: calls that end a capture
ENDS = ("capture_end", "cudaStreamEndCapture", "end_da_body_capture")
_MAX_HELPERS = 3


def is_graph(value: Value) -> bool:
    """Whether a context manager is torch's own."""
    return any(isinstance(option, ExternalInstance) and option.cls in GRAPH_CONTEXTS for option in options(value))


def captures(engine: Engine, item: ast.expr, callee: Value | None, value: Value) -> bool:
    """Whether ``with item:`` records its body. ``callee`` is what ``item`` calls, ``value`` what that gives."""
    words = engine.vocabulary.starts_capture
    if words:
        names = [*names_of(value), *(names_of(callee) if callee is not None else ()), last_name(item)]
        if any(engine.vocabulary.matches(name, words) for name in names):
            return True
    if is_graph(value):
        return True
    for option in options(value):
        if isinstance(option, Instance):
            enter = find_method(engine, option.site.cls, "__enter__")
            if enter is not None and begins(engine, enter):
                return True
            if any(entry in GRAPH_CONTEXTS for entry in engine.mro(option.site.cls)):
                return True
    return any(
        isinstance(option, Function) and _yields_inside(engine, option.info)
        for option in options(callee)
        if option is not None
    )


#: what a factory of contexts returns a call of
_RETURNED = ("graph", "partial")


def names(engine: Engine, module: Module) -> Iterator[str]:
    """The names of a module's own context managers and factories whose ``with`` block is captured."""
    for cls in module.all_classes():
        enter = cls.methods.get("__enter__")
        if (enter is not None and begins(engine, enter)) or any(e in GRAPH_CONTEXTS for e in engine.mro(cls)):
            yield cls.name
    for info in module.all_functions(*_RETURNED, "yield"):
        if info.is_lambda:
            continue
        if _yields_inside(engine, info) or _returns_graph(engine, info):
            yield info.name


def _returns_graph(engine: Engine, info: FunctionInfo) -> bool:
    scope = engine.function_scope(info, engine.receiver_of(info))
    return any(
        isinstance(node, ast.Return)
        and isinstance(node.value, ast.Call)
        and last_name(node.value.func) in _RETURNED
        and is_graph(engine.evaluate_in(scope, node.value))
        for node in walk_own(info.node)
    )


def begins(engine: Engine, info: FunctionInfo) -> bool:
    """Whether a function begins a capture, itself or through a helper of its class."""
    return next(begin_calls(engine, info), None) is not None


def begin_calls(engine: Engine, info: FunctionInfo, depth: int = 0) -> Iterator[Frame]:
    """The calls that begin a capture in a function, or in a helper of its class that it calls."""
    for node in walk_own(info.node):
        if not isinstance(node, ast.Call):
            continue
        name = last_name(node.func)
        if name in BEGINS or (name == "__enter__" and _enters_graph(engine, info, node)):
            yield Frame(info.module.display, node.lineno, info.qualname)
        if info.owner is None or depth >= _MAX_HELPERS or not isinstance(node.func, ast.Attribute):
            continue
        if isinstance(node.func.value, ast.Name) and node.func.value.id == info.parameters()[0].arg:
            helper = find_method(engine, info.owner, name)
            if helper is not None and helper is not info:
                yield from begin_calls(engine, helper, depth + 1)


def _enters_graph(engine: Engine, info: FunctionInfo, call: ast.Call) -> bool:
    """``self.ctx.__enter__()`` where the context is torch's."""
    scope = engine.function_scope(info, engine.receiver_of(info))
    return isinstance(call.func, ast.Attribute) and is_graph(engine.evaluate_in(scope, call.func.value))


def managers_begin(engine: Engine, callee: Value | None, value: Value) -> tuple[Frame, ...]:
    """Where the capture of a context manager of the project's begins."""
    found: dict[Frame, None] = {}
    for option in options(value):
        if isinstance(option, Instance):
            enter = find_method(engine, option.site.cls, "__enter__")
            found.update(dict.fromkeys(begin_calls(engine, enter) if enter is not None else ()))
    for option in options(callee):
        if isinstance(option, Function):
            found.update(dict.fromkeys(begin_calls(engine, option.info)))
    return tuple(found)


def _yields_inside(engine: Engine, info: FunctionInfo) -> bool:
    """A generator context manager that yields while a capture is on."""
    if not info.has_decorator("contextmanager", "asynccontextmanager"):
        return False
    began = False
    for node in walk_own(info.node):
        if isinstance(node, ast.Call) and last_name(node.func) in BEGINS:
            began = True
        if isinstance(node, (ast.With, ast.AsyncWith)) and any(isinstance(each, ast.Yield) for each in ast.walk(node)):
            scope = engine.function_scope(info, engine.receiver_of(info))
            if any(is_graph(engine.evaluate_in(scope, item.context_expr)) for item in node.items):
                return True
    return began and any(isinstance(node, ast.Yield) for node in walk_own(info.node))
