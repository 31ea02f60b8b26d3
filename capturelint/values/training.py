"""Optimizers, learning rate schedules and autocast: which object is meant, and what its constructor got."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from capturelint.model import Confidence
from capturelint.project.definitions import ClassInfo
from capturelint.project.syntax import last_name, walk_own
from capturelint.rulebook.op_spec import EffectKind, OpSpec
from capturelint.values import hierarchy
from capturelint.values.domain import (
    MISSING,
    UNKNOWN,
    ExternalInstance,
    Host,
    Instance,
    MadeAt,
    Mapping,
    Sequence,
    Value,
    options,
)
from capturelint.values.effects import Bound, bind
from capturelint.values.facts import CallFact, Effect, capped
from capturelint.values.frame import Arguments, Frame

if TYPE_CHECKING:
    from capturelint.values.engine import Engine

_SCHEDULER = "torch.optim.lr_scheduler.LRScheduler"
_AUTOCASTS = frozenset({"torch.autocast", "torch.cuda.amp.autocast"})
_BASES = frozenset(
    {
        "torch.optim.Optimizer",
        "torch.optim.optimizer.Optimizer",
        "torch.optim.lr_scheduler.LRScheduler",
        "torch.optim.lr_scheduler._LRScheduler",
    }
)
_BASE_NAMES = frozenset(name.rpartition(".")[2] for name in _BASES)
#: an argument's name that stands for ``**kwargs`` of unknown content
_OPEN = "**"


@dataclass(frozen=True, eq=False, slots=True)
class Made:
    """An object of a third-party class, or of a class of the project's that derives from one.

    ``open``: more was passed to the constructor than is known. ``made``: the call that makes it, None out of view.
    """

    cls: str
    arguments: dict[str, Value]
    open: bool
    made: MadeAt | None

    def flag(self, name: str, default: bool | None = False) -> bool | None:
        """A flag of the constructor's; None where it can't be told."""
        value = self.arguments.get(name)
        if value is None:
            return None if self.open else default
        if isinstance(value, Host) and value.const is not MISSING:
            return default if value.const is None else bool(value.const)
        return None


def placed(result: Value, bound: Bound, node: ast.AST, frame: Frame) -> Value:
    """Notes where an object is made, if it is of a class where that matters."""
    if not isinstance(result, ExternalInstance) or not _matters(frame.engine, result.cls):
        return result
    arguments = (*result.arguments, (_OPEN, UNKNOWN)) if bound.open else result.arguments
    return replace(result, arguments=arguments, made=MadeAt(frame.module, node))


def _matters(engine: Engine, cls: str) -> bool:
    return engine.ops.optimizer(cls) is not None or is_scheduler(engine, cls) or cls in _AUTOCASTS


def is_base(value: Value) -> bool:
    """An object that is only known to be some optimizer, or some schedule."""
    return isinstance(value, ExternalInstance) and value.made is None and value.cls in _BASES


def says_any_optimizer(annotation: ast.expr | None) -> bool:
    """Whether an annotation names the base class of all optimizers, or of all schedules."""
    return annotation is not None and any(
        last_name(node) in _BASE_NAMES for node in ast.walk(annotation) if isinstance(node, (ast.Name, ast.Attribute))
    )


def is_scheduler(engine: Engine, cls: str) -> bool:
    return (cls in _BASES and "scheduler" in cls) or engine.ops.bases.get(cls) == _SCHEDULER


def optimizers(engine: Engine, value: Value | None) -> Iterator[Made]:
    """The optimizers of torch's among a value's alternatives."""
    return _made(engine, value, lambda cls: engine.ops.optimizer(cls) is not None)


def schedulers(engine: Engine, value: Value | None) -> Iterator[Made]:
    return _made(engine, value, lambda cls: is_scheduler(engine, cls))


def autocasts(engine: Engine, value: Value | None) -> Iterator[Made]:
    """The autocast contexts among a value's alternatives, but for the CPU's."""
    return _made(engine, value, lambda cls: cls in _AUTOCASTS or cls == "torch.amp.autocast")


def _made(engine: Engine, value: Value | None, belongs: Callable[[str], bool]) -> Iterator[Made]:
    for option in options(value):
        if isinstance(option, ExternalInstance) and belongs(option.cls):
            given = dict(option.arguments)
            yield Made(option.cls, given, _OPEN in given, option.made)
        elif isinstance(option, Instance):
            bases = [entry for entry in engine.mro(option.site.cls) if isinstance(entry, str) and belongs(entry)]
            if bases:
                arguments, known = _given_to_base(engine, option, bases[0])
                yield Made(bases[0], arguments, not known, option.site.made)


def _given_to_base(engine: Engine, value: Instance, base: str) -> tuple[dict[str, Value], bool]:
    """What the constructors of the project's classes pass on to the third-party base class, and whether that is all."""
    from capturelint.values.given import arguments_of
    from capturelint.values.instances import init_arguments

    given = Arguments(value.site.arguments, tuple(value.site.keywords.items()))
    known = not value.site.generic
    after: ClassInfo | None = None
    while (init := hierarchy.find_method(engine, value.site.cls, "__init__", after=after)) is not None:
        scope = engine.function_scope(init, init_arguments(engine, value, init))
        after = init.owner
        call = next((node for node in walk_own(init.node) if isinstance(node, ast.Call) and _calls_base(node)), None)
        if call is None:
            known = False
            break
        given = arguments_of(call, engine.frame_for(scope))
        if isinstance(call.func, ast.Attribute) and not isinstance(call.func.value, ast.Call):
            given = replace(given, positional=given.positional[1:])  # Base.__init__(self, ...)
    spec = engine.ops.lookup(base) or OpSpec(base)
    bound = bind(spec, None, given)
    return dict(bound.values), known and not bound.open and given.rest is None


def _calls_base(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr == "__init__"


def groups_set(optimizer: Made, name: str) -> bool | None:
    """Whether all parameter groups that the constructor gets have a flag of their own; None where none has."""
    given = optimizer.arguments.get("params")
    if not isinstance(given, Sequence) or not given.items:
        return None
    flags = [group.get(name) for group in given.items if isinstance(group, Mapping)]
    if len(flags) < len(given.items) or not any(flags):
        return None
    return all(isinstance(flag, Host) and flag.truth is True for flag in flags)


# -- gradient scalers ------------------------------------------------------------------------------------------------


def is_scaler_step(fact: CallFact) -> bool:
    return any(callee.endswith("GradScaler.step") for callee in fact.callees)


def stepped_by_scaler(fact: CallFact) -> Value | None:
    return fact.arguments[0] if fact.arguments else dict(fact.keywords).get("optimizer")


def scaler_effects(effects: list[Effect], receiver: Value | None, given: Arguments, engine: Engine) -> list[Effect]:
    """What ``scaler.step(optimizer)`` does: one that is switched off only steps, and so does one of a fused optimizer,
    which looks at the overflow on the device."""
    if not any(effect.kind == EffectKind.GRAD_SCALER.value for effect in effects):
        return effects
    enabled = [_enabled(option) for option in options(receiver)]
    fused = [made.flag("fused") is True for made in optimizers(engine, given.get(0, "optimizer"))]
    sure = Confidence.CERTAIN
    if enabled == [False] or (fused and all(fused)):
        return [replace(effect, kind=EffectKind.OPTIMIZER_STEP.value, detail="") for effect in effects]
    if enabled != [True] or any(fused):
        sure = Confidence.LIKELY
    return [capped(effect, sure) for effect in effects]


def _enabled(scaler: Value) -> bool | None:
    if not isinstance(scaler, ExternalInstance):
        return None
    value = scaler.argument("enabled")
    return True if value is None else (value.truth if isinstance(value, Host) else None)
