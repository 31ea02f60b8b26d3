"""``with`` statements: what a context manager yields, and which ones change how the body is read."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from capturelint.values import dunder, hierarchy, modes
from capturelint.values.domain import (
    NONE,
    UNKNOWN,
    BoundExternal,
    Device,
    DeviceValue,
    External,
    ExternalInstance,
    Function,
    Instance,
    Sequence,
    Value,
    element_of,
    join,
    options,
)
from capturelint.values.frame import Arguments, Frame

if TYPE_CHECKING:
    from capturelint.values.facts import Context


def entered(value: Value, frame: Frame, node: ast.expr | None = None) -> Value:
    """What ``with value as x`` binds to ``x``."""
    found: list[Value] = []
    for option in options(value):
        if isinstance(option, Sequence) and option.kind == "generator":
            found.append(element_of(option))
        elif isinstance(option, Instance):
            method = hierarchy.find_method(frame.engine, option.site.cls, "__enter__")
            if method is None:
                found.append(option)
            elif frame.in_region:
                from capturelint.values.calls import call

                at = ast.copy_location(ast.Pass(), node) if node is not None else _NOWHERE
                found.append(call(Function(method, bound=option), Arguments(), at, frame))
            else:
                found.append(frame.engine.host_call(Function(method, bound=option), Arguments()))
        else:
            found.append(option)
    return join(*found) if found else UNKNOWN


_NOWHERE = ast.copy_location(ast.Pass(), ast.Pass(lineno=1, col_offset=0, end_lineno=1, end_col_offset=0))


def enter_all(node: ast.With | ast.AsyncWith, frame: Frame) -> Callable[[], None] | None:
    """Enters a ``with`` statement's managers; returns what leaves them, or None when the body is not captured."""
    from capturelint.values.assignments import store
    from capturelint.values.expressions import evaluate

    device, anomaly, context = frame.default_device, frame.anomaly, frame.context
    managers: list[tuple[Value, ast.expr]] = []
    for item in node.items:
        value = evaluate(item.context_expr, frame)
        if _suspends(value, item.context_expr, frame):
            _run_uncaptured(node, frame, context)
            return None
        for option in options(value):
            if isinstance(option, DeviceValue) and option.device is not Device.UNKNOWN:
                frame.default_device = option.device
        switched = modes.anomaly(value)
        if switched is not None:
            frame.anomaly = switched
        managers.append((value, item.context_expr))
        bound = entered(value, frame, item.context_expr)
        if item.optional_vars is not None:
            store(item.optional_vars, bound, node, frame)

    def leave() -> None:
        frame.default_device, frame.anomaly = device, anomaly
        for value, expression in reversed(managers):
            dunder.call_method(value, "__exit__", (NONE, NONE, NONE), expression, frame)

    return leave


def _suspends(value: Value, node: ast.expr, frame: Frame) -> bool:
    """A context manager of the project's that allows synchronizing: what it holds is not captured."""
    vocabulary = frame.engine.vocabulary
    if not vocabulary.allows_sync:
        return False
    names = names_of(value)
    if isinstance(node, ast.Call) and frame.context is not None:
        from capturelint.values.facts import span_of

        names += names_of(frame.context.values.get(span_of(node.func), value))
    return any(vocabulary.matches(name, vocabulary.allows_sync) for name in names)


def names_of(value: Value) -> list[str]:
    """Dotted names by which config and presets may speak of a value."""
    found: list[str] = []
    for option in options(value):
        if isinstance(option, Function):
            found.append(f"{option.info.module.name}.{option.info.qualname}")
        elif isinstance(option, Instance):
            found.append(f"{option.site.cls.module.name}.{option.site.cls.qualname}")
        elif isinstance(option, External):
            found.append(option.path)
        elif isinstance(option, (ExternalInstance,)):
            found.append(option.cls)
        elif isinstance(option, BoundExternal):
            found.append(option.path)
    return found


def _run_uncaptured(node: ast.With | ast.AsyncWith, frame: Frame, context: Context | None) -> None:
    from capturelint.values.facts import Context as Facts
    from capturelint.values.statements import execute

    assert context is not None
    frame.context = Facts(context.module, context.name, context.function, context.node)
    try:
        execute(node.body, frame)
    finally:
        frame.context = context
