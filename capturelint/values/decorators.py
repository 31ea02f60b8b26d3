"""Decorators: what the name of a decorated function means."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from capturelint.values.domain import (
    BoundExternal,
    ClassValue,
    External,
    Function,
    Instance,
    Partial,
    Value,
    join,
    options,
)
from capturelint.values.frame import Arguments, Frame

_KERNELS = ("triton.jit", "triton.autotune", "triton.heuristics", "triton.experimental.gluon.jit")


def decorated(function: Function, frame: Frame) -> Value:
    """What the name of a decorated function means: a kernel, a compiled function, or the function itself."""
    value: Value = function
    for decorator in reversed(function.info.decorators):
        value = _decorate(value, decorator, frame)
    return value


def _decorate(value: Value, decorator: ast.expr, frame: Frame) -> Value:
    if not isinstance(value, Function):
        return value
    head = decorator.func if isinstance(decorator, ast.Call) else decorator
    for name in _external_names(evaluate_outside(head, frame)):
        if name in _KERNELS or name.startswith(("cutlass.", "cute.", "tilelang.", "numba.cuda.", "warp.")):
            return replace(value, role="triton")
    return _wrapped(value, decorator, frame)


def _wrapped(value: Function, decorator: ast.expr, frame: Frame) -> Value:
    """What a decorator of the project's makes of a function: the closure that is called in its place."""
    found: list[Value] = []
    for option in _applied(evaluate_outside(decorator, frame)):
        if isinstance(option, ClassValue):
            made: Value = frame.engine.construct(option.info, Arguments((value,)), decorator, frame.module)
        elif isinstance(option, Function):
            made = frame.engine.host_call(option, Arguments((value,)))
        elif isinstance(option, Partial) and isinstance(option.function, Function):
            made = frame.engine.host_call(option.function, Arguments((*option.arguments, value), option.keywords))
        else:
            return value
        # `if function is None: return partial(decorator, ...)`: not where there is a function
        kept = [each for each in options(made) if not isinstance(each, Partial)]
        if not kept or not all(isinstance(each, (Function, Instance)) for each in kept):
            return value
        found.extend(kept)
    return join(*found) if found else value


def _applied(value: Value) -> list[Value]:
    """What is called with the function; a decorator that gives itself anew, with options, does nothing else then."""
    partials: list[Value] = [option for option in options(value) if isinstance(option, Partial)]
    return partials or list(options(value))


def evaluate_outside(node: ast.expr, frame: Frame) -> Value:
    """Evaluates an expression that does not run in the region (a decorator)."""
    engine = frame.engine
    return engine.evaluate_in(engine.module_scope(frame.module), node)


def _external_names(value: Value) -> Iterable[str]:
    for option in options(value):
        if isinstance(option, (External, BoundExternal)):
            yield option.path
