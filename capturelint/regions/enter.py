"""Evaluates a declared region: from here everything that is captured is entered."""

from __future__ import annotations

from dataclasses import dataclass, field

from capturelint.regions import eager_twin, hooks
from capturelint.regions.declaration import Declaration
from capturelint.values import annotated, modes, specs
from capturelint.values.call_sites import parameter
from capturelint.values.calls import call
from capturelint.values.domain import (
    Device,
    Function,
    Host,
    Tensor,
    Unknown,
    Value,
    options,
)
from capturelint.values.engine import Engine
from capturelint.values.facts import Context
from capturelint.values.frame import Arguments, Frame
from capturelint.values.lazy import LazyScope
from capturelint.values.scope import Scope
from capturelint.values.statements import execute
from capturelint.values.sure import CERTAIN


@dataclass(eq=False, repr=False, slots=True)
class Entered:
    """A region that was evaluated. ``scope`` holds the names of a block's own code, ``outer`` those around it."""

    declaration: Declaration
    context: Context
    outer: LazyScope
    scope: Scope | None = None
    contexts: list[Context] = field(default_factory=list)


def enter(engine: Engine, declaration: Declaration) -> Entered:
    holder = declaration.holder
    outer = engine.scope_of(holder, declaration.module)
    context = Context(declaration.module, declaration.name, holder, declaration.code)
    context.compiled = declaration.compiled
    if declaration.body is not None:
        scope = Scope(declaration.module, outer)
        frame = Frame(engine, declaration.module, scope, holder, context)
        if holder is not None and holder.owner is not None and holder.parameters() and not holder.is_static:
            frame.receiver = outer.lookup(holder.parameters()[0].arg)
        if engine.default_device_at(outer, declaration.node) is Device.DEVICE:
            frame.default_device = Device.DEVICE
        frame.anomaly = modes.anomaly_around(engine, declaration.module, holder, declaration.node)
        eager_twin.bind(engine, declaration, outer, scope)
        execute(declaration.body, frame)
        hooks.enter(engine, declaration, frame)
        return Entered(declaration, context, outer, scope)
    assert declaration.target is not None
    frame = Frame(engine, declaration.module, Scope(declaration.module, outer), holder, context)
    for target in options(declaration.target):
        _enter_callable(engine, declaration, target, frame)
    return Entered(declaration, context, outer)


def _enter_callable(engine: Engine, declaration: Declaration, target: Value, frame: Frame) -> None:
    if isinstance(target, Function):
        given = declaration.arguments or _own_arguments(engine, target, declaration.inputs)
        engine.enter(target, given, declaration.node, frame, CERTAIN)
        return
    method = _forward_of(engine, target)
    own = _own_arguments(engine, method, {}) if method is not None else Arguments(rest=Unknown())
    call(target, declaration.arguments or own, declaration.node, frame)


def _forward_of(engine: Engine, target: Value) -> Function | None:
    from capturelint.values import hierarchy, instances
    from capturelint.values.domain import Instance

    if isinstance(target, Instance):
        for name in ("forward", "__call__"):
            if hierarchy.find_method(engine, target.site.cls, name) is not None:
                found = instances.of_instance(engine, target, name)
                return next((o for o in options(found) if isinstance(o, Function)), None)
    return None


def _own_arguments(engine: Engine, function: Function, inputs: dict[str, str]) -> Arguments:
    """A region's parameters: what the marker states, what annotations say, what callers pass, else a likely tensor."""
    info = function.info
    parameters = info.parameters()
    if info.owner is not None and not info.is_static and function.bound is not None:
        parameters = parameters[1:]
    scope = engine.function_scope(info, engine.receiver_of(info))
    given: list[tuple[str, Value]] = []
    for each in parameters:
        spec = _from_spec(each.arg, inputs.get(each.arg, ""))
        if spec is not None:
            given.append((each.arg, spec))
            continue
        declared = annotated.value_of(
            engine, each.annotation, engine.module_scope(info.module), each.arg, device=Device.DEVICE
        )
        value = declared if declared is not None else parameter(engine, scope, each.arg)
        settled = _as_input(value, each.arg, annotated=declared is not None)
        if settled is not None:
            given.append((each.arg, settled))
    return Arguments((), tuple(given))


def _as_input(value: Value, name: str, *, annotated: bool) -> Value | None:
    if isinstance(value, Unknown):
        return Unknown(parameter=name, tensor_like=True)
    if isinstance(value, Host) and not annotated:
        return None  # the default, or what callers pass: bound as usual
    return value


def _from_spec(name: str, spec: str) -> Tensor | None:
    return specs.described(Tensor(device=Device.DEVICE, stored=True, why=f"`{name}` is a region's input"), spec)
