"""CG901: optimizers that step inside a region, though they were not made for it.

Whether a step captures is decided where the optimizer is made, so that is where the finding stands if it is in view.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from capturelint.findings import Around
from capturelint.lifecycle import around, parameter_groups
from capturelint.model import Applicability, Confidence, Fix, Related
from capturelint.passes.hazard import Hazard
from capturelint.passes.unit import Support
from capturelint.project.module import Module
from capturelint.reach import Reach
from capturelint.rulebook.op_spec import EffectKind, OptimizerSpec
from capturelint.values import training
from capturelint.values.domain import Device, ExternalInstance, Host, Unknown, Value, options, tensors
from capturelint.values.engine import Engine
from capturelint.values.facts import CallFact, Context, NodeSpan
from capturelint.values.training import Made

#: ``apex.optimizers.FusedAdam.step``
_FOREIGN_STEP = re.compile(r"^(?!torch\.)\w+\.(.*\.)?(\w*optim\w*\.\w+|\w*(Adam\w*|SGD|Lamb|Lion|Shampoo))\.step$")


@dataclass(frozen=True, eq=False, slots=True)
class CapturedStep:
    """An optimizer's ``step()`` that a region captures."""

    reach: Reach
    context: Context
    span: NodeSpan
    optimizer: Made
    spec: OptimizerSpec
    confidence: Confidence
    detail: str = ""

    @property
    def place(self) -> str:
        return f"{self.context.module.display}:{self.span[0]}"

    @property
    def device_lr(self) -> bool:
        """Whether the learning rate is a tensor on the device, which graphs read anew at every replay."""
        return any(tensor.device is not Device.HOST for tensor in tensors(self.optimizer.arguments.get("lr")))


def captured_steps(engine: Engine, reaches: list[Reach]) -> list[CapturedStep]:
    """Every step of an optimizer of torch's, in every region that is not compiled: a compiler sees to it by itself."""
    found: list[CapturedStep] = []
    for reach in reaches:
        for context in reach.steps:
            if context.compiled:
                continue
            for span, fact in context.calls.items():
                found.extend(_steps(engine, reach, context, span, fact))
    return found


def _steps(engine: Engine, reach: Reach, context: Context, span: NodeSpan, fact: CallFact) -> Iterator[CapturedStep]:
    for effect in fact.effects:
        if effect.kind == EffectKind.OPTIMIZER_STEP.value:
            sure = min(effect.confidence, reach.steps[context].confidence, context.cap_at(span[0]))
            stepped = training.stepped_by_scaler(fact) if training.is_scaler_step(fact) else fact.receiver
            for made, spec, confidence in _stepped(engine, stepped, sure):
                yield CapturedStep(reach, context, span, made, spec, confidence, effect.detail)


def _stepped(engine: Engine, value: Value | None, sure: Confidence) -> Iterator[tuple[Made, OptimizerSpec, Confidence]]:
    found = list(training.optimizers(engine, value))
    several = len(found) > 1 and len({id(each.made) for each in found}) > 1
    if several or any(isinstance(option, Unknown) for option in options(value)):
        sure = min(sure, Confidence.LIKELY)
    for made in found:
        spec = engine.ops.optimizer(made.cls)
        if spec is not None:
            yield made, spec, sure


def find(engine: Engine, steps: list[CapturedStep]) -> Iterator[Around]:
    """One finding for each optimizer that doesn't capture, and one for each call that does what can't be captured."""
    found: dict[tuple[str, NodeSpan | int], list[tuple[CapturedStep, Around]]] = {}
    for step in steps:
        for hazard in (_refused(engine, step), _reading(step)):
            if hazard is not None:
                key = (hazard.hazard.rule, step.span if hazard.contexts else id(step.optimizer.made))
                found.setdefault(key, []).append((step, hazard))
    for each in found.values():
        yield _merged([hazard for _, hazard in each])


def _merged(found: list[Around]) -> Around:
    best = max(found, key=lambda each: each.hazard.support.confidence.rank)
    regions: dict[int, tuple[Reach, Context | None]] = {}
    for each in found:
        for index, reach in enumerate(each.regions):
            regions.setdefault(id(reach), (reach, each.contexts[index] if each.contexts else None))
    contexts = tuple(context for _, context in regions.values() if context is not None)
    return replace(best, regions=tuple(reach for reach, _ in regions.values()), contexts=contexts)


def _refused(engine: Engine, step: CapturedStep) -> Around | None:
    """``step()`` raises while capturing unless the optimizer was made with ``capturable=True``."""
    if not step.spec.refuses or step.spec.reads or not step.spec.capturable:
        return None
    flag = training.groups_set(step.optimizer, "capturable")
    flag = step.optimizer.flag("capturable") if flag is None else flag
    if flag is True:
        return None
    sure = step.confidence if flag is False else Confidence.POSSIBLE
    if parameter_groups.switched_on(engine, step.optimizer, "capturable"):
        sure = Confidence.POSSIBLE
    name = step.optimizer.cls.rpartition(".")[2]
    made = step.optimizer.made
    if made is None:
        return _at_step(step, sure, f"`{name}` steps in the region, and was not made with `capturable=True`")
    text = made.module.segment(made.node, 48)
    message = (
        f"`{text}` is made without `capturable=True`, and its `step()` is captured at {step.place}; capture fails there"
    )
    related = (Related(step.context.module.display, step.span[0], "stepped here, in the region"),)
    hazard = Hazard(
        "CG901",
        around.span(made.module, made.node),
        message,
        "its step() refuses to be captured",
        Support(sure, ()),
        help=f"make it capturable: `{name}(..., capturable=True)`",
        related=related,
        fix=_fix(made.module, made.node) if training.groups_set(step.optimizer, "capturable") is None else None,
    )
    return Around(made.module, "", hazard, (step.reach,))


def _fix(module: Module, node: ast.AST) -> Fix | None:
    from capturelint.fixes.keywords import with_keyword

    edit = with_keyword(module, node, "capturable", "True")
    return Fix(Applicability.SAFE, "make the optimizer capturable", (edit,)) if edit is not None else None


def _reading(step: CapturedStep) -> Around | None:
    """``step()`` itself makes the CPU wait, and no argument helps."""
    name = step.optimizer.cls.rpartition(".")[2]
    if step.spec.reads:
        detail = step.detail or "reads values of the device on the host"
        return _at_step(
            step,
            step.confidence,
            f"`{name}.step()` {detail}; capture fails on this line",
            f"`{name}` has no capturable form: capture forward and backward, and step after `replay()`",
        )
    if step.spec.reads_lr and step.device_lr and step.optimizer.flag("fused") is not True:
        fused = "make it with `fused=True`, which takes the tensor as it is" if step.spec.fused else "step outside"
        return _at_step(
            step,
            step.confidence,
            f"`{name}.step()` reads a learning rate that is a device tensor; capture fails on this line",
            fused,
        )
    return None


def _at_step(step: CapturedStep, sure: Confidence, message: str, help: str | None = None) -> Around:
    span = around.characters_of(step.context.module, step.span)
    hazard = Hazard("CG901", span, message, "captured here", Support(sure, ()), help=help)
    return Around(step.context.module, step.context.name, hazard, (step.reach,), (step.context,))


# -- optimizers of other packages ------------------------------------------------------------------------------------


def find_foreign(reaches: list[Reach]) -> Iterator[Around]:
    """Steps of optimizers that come from elsewhere: whether they capture is for their packages to say."""
    found: dict[tuple[str, NodeSpan], list[Around]] = {}
    for reach in reaches:
        for context in reach.steps:
            for span, fact in context.calls.items():
                name = next((callee for callee in fact.callees if _FOREIGN_STEP.search(callee)), None)
                if name is None or context.compiled or _asked_for(fact.receiver):
                    continue
                message = f"nothing is known of what `{name}` does while a graph captures; many optimizers refuse it"
                span_here = around.characters_of(context.module, span)
                hazard = Hazard("CG901", span_here, message, "captured here", Support(Confidence.POSSIBLE, ()))
                about = Around(context.module, context.name, hazard, (reach,), (context,))
                found.setdefault((context.module.display, span), []).append(about)
    for each in found.values():
        yield _merged(each)


def _asked_for(optimizer: Value | None) -> bool:
    """Whether an optimizer was made with ``capturable=True``."""
    return any(
        isinstance(option, ExternalInstance) and isinstance(flag := option.argument("capturable"), Host) and flag.truth
        for option in options(optimizer)
    )
