"""CG903: a learning rate that changes between replays, while the captured ``step()`` keeps the one of capture time."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from capturelint.findings import Around
from capturelint.lifecycle import around, parameter_groups
from capturelint.lifecycle.around import Surroundings
from capturelint.lifecycle.optimizers import CapturedStep
from capturelint.model import Confidence, Related
from capturelint.passes.hazard import Hazard
from capturelint.passes.unit import Support
from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import dotted_name
from capturelint.reach import Reach
from capturelint.values import training
from capturelint.values.domain import Device, Host, Unknown, Value, options, tensors
from capturelint.values.engine import Engine
from capturelint.values.facts import NodeSpan, span_of

_KEYS = ("lr", "weight_decay", "momentum", "betas", "eps")
_SCHEDULE_NAME = re.compile(r"(?i)sched|^lr_?s$")
_MAX_FILES = 20
_HELP = (
    "give the optimizer a learning rate in device memory, which schedules fill in place: "
    '`lr=torch.tensor(1e-3, device="cuda")`'
)


@dataclass(frozen=True, eq=False, slots=True)
class _Change:
    """Code that changes a hyperparameter. ``exact``: of the optimizer that is captured, as far as is known."""

    module: Module
    function: FunctionInfo | None
    node: ast.AST
    message: str
    help: str
    exact: bool


def find(engine: Engine, steps: list[CapturedStep]) -> Iterator[Around]:
    """Every schedule step and every store of a hyperparameter that a captured ``step()`` does not see."""
    found: dict[tuple[str, NodeSpan], tuple[_Change, list[Reach], Confidence, CapturedStep]] = {}
    surroundings: dict[int, Surroundings] = {}
    captured = around.captured_lines([step.reach for step in steps])
    for step in steps:
        about = surroundings.setdefault(id(step.reach), around.of(engine, step.reach.entered.declaration))
        entered = {context.function for context in step.reach.steps} - {step.reach.entered.declaration.holder}
        for change in _changes(engine, step):
            key = (change.module.display, span_of(change.node))
            sure = _confidence(change, step, about, entered, captured)
            if sure is None:
                continue
            known = found.get(key)
            if known is None or sure > known[2]:
                regions = known[1] if known is not None else []
                found[key] = known = (change, regions, sure, step)
            if step.reach not in known[1]:
                known[1].append(step.reach)
    for change, regions, sure, step in found.values():
        yield _report(change, regions, sure, step)


def _confidence(
    change: _Change,
    step: CapturedStep,
    about: Surroundings,
    entered: set[FunctionInfo | None],
    captured: dict[str, list[tuple[int, int]]],
) -> Confidence | None:
    line = getattr(change.node, "lineno", 0)
    inside = change.function in entered or any(
        first <= line <= last for first, last in captured.get(change.module.display, ())
    )
    if inside:
        sure = Confidence.LIKELY  # it runs at capture, and never again
    elif _before_capture(change, about):
        return None
    else:
        sure = about.confidence(change.function)
        sure = sure if change.exact else min(sure, Confidence.LIKELY)
    return min(sure, step.confidence)


def _before_capture(change: _Change, about: Surroundings) -> bool:
    if change.function is None:
        return not about.replayed_after(None, change.node, change.module.tree)
    return about.prepares(change.function, change.node)


def _report(change: _Change, regions: list[Reach], sure: Confidence, step: CapturedStep) -> Around:
    related = [Related(step.context.module.display, step.span[0], "stepped here, in the region")]
    made = step.optimizer.made
    if made is not None:
        related.append(Related(made.module.display, made.node.lineno, "the optimizer is made here"))  # type: ignore[attr-defined]
    hazard = Hazard(
        "CG903",
        around.span(change.module, change.node),
        f"{change.message}, but the `step()` captured at {step.place} keeps the value of capture time",
        "the graph does not see it",
        Support(sure, ()),
        help=change.help,
        related=tuple(related),
    )
    scope = change.function.qualname if change.function is not None else ""
    return Around(change.module, scope, hazard, tuple(regions))


def _changes(engine: Engine, step: CapturedStep) -> Iterator[_Change]:
    rate = step.optimizer.arguments.get("lr")
    if not _is_device_tensor(rate):
        yield from _schedule_steps(engine, step)
    for store in parameter_groups.stores(engine, *_KEYS):
        same = parameter_groups.concerns(engine, store.module, store.function, store.optimizer, step.optimizer)
        if same is False or (store.augmented and _is_device_tensor(rate)):
            continue
        text = store.module.segment(store.target, 40)
        if _is_device_tensor(rate):
            message = f"`{text}` is bound to another object than the tensor that the graph reads"
            help = f"write into the tensor: `{text}.fill_(...)`"
        else:
            message, help = f"`{text}` is changed between replays", _help(step)
        yield _Change(store.module, store.function, store.target, message, help, same is True)


def _help(step: CapturedStep) -> str:
    if step.spec.reads_lr:
        if not step.spec.fused:
            return "step outside the region: this optimizer reads a learning rate that is a tensor"
        return f"{_HELP} (with `fused=True`: the other forms read it on the host)"
    return f"{_HELP} (and `capturable=True`)" if step.spec.capturable else _HELP


def _is_device_tensor(value: Value | None) -> bool:
    """A rate in device memory is read anew at every replay; a number, or a CPU tensor, travels as an argument."""
    return any(tensor.device is not Device.HOST for tensor in tensors(value))


def _schedule_steps(engine: Engine, step: CapturedStep) -> Iterator[_Change]:
    """``scheduler.step()``, where the schedule is of the optimizer that is captured, or may be."""
    for module in engine.project.modules(engine.project.search.calling("step"), _MAX_FILES):
        for function, call in module.calls_named("step"):
            if not isinstance(call.func, ast.Attribute):
                continue
            scope = engine.scope_of(function, module)
            value = engine.evaluate_in(scope, call.func.value)
            same = _schedules(engine, value, call.func.value, step)
            if same is not False:
                text = module.segment(call.func, 40)
                yield _Change(module, function, call, f"`{text}()` changes the learning rate", _help(step), bool(same))


def _schedules(engine: Engine, value: Value, node: ast.expr, step: CapturedStep) -> bool | None:
    """Whether a value is a schedule of the step's optimizer; None where it may be one."""
    found = list(training.schedulers(engine, value))
    verdicts = [_of_optimizer(engine, made, step) for made in found]
    if True in verdicts:
        return True
    if None in verdicts:
        return None
    if not found and _SCHEDULE_NAME.search((dotted_name(node) or "").rpartition(".")[2]):
        if all(
            isinstance(option, Unknown) or (isinstance(option, Host) and option.is_none) for option in options(value)
        ):
            return None  # nothing is known of it but its name
    return False


def _of_optimizer(engine: Engine, schedule: training.Made, step: CapturedStep) -> bool | None:
    given = schedule.arguments.get("optimizer")  # a chain of schedules is given those first
    return parameter_groups.same_object(engine, given, step.optimizer) if given is not None else None
