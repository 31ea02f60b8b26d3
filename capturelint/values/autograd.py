"""``torch.autograd.Function``: ``apply`` runs ``forward``, and a backward in the same region runs ``backward``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from capturelint.model import Confidence
from capturelint.values import hierarchy
from capturelint.values.domain import (
    BoundExternal,
    Device,
    External,
    Function,
    Sequence,
    Tensor,
    Unknown,
    Value,
    options,
)
from capturelint.values.frame import Arguments, Frame

if TYPE_CHECKING:
    from capturelint.project.definitions import ClassInfo
    from capturelint.values.engine import Engine
    from capturelint.values.facts import Context

APPLY = "torch.autograd.Function.apply"
_BACKWARDS = ("torch.Tensor.backward", "torch.autograd.backward", "torch.autograd.grad")


def applied(cls: ClassInfo, given: Arguments, frame: Frame) -> tuple[Function, Arguments] | None:
    """What ``cls.apply(...)`` calls: ``forward``, with a context first unless ``setup_context`` gets that."""
    if frame.context is not None:
        frame.context.applies.add(cls)
    forward = hierarchy.find_method(frame.engine, cls, "forward")
    if forward is None:
        return None
    own_context = hierarchy.find_method(frame.engine, cls, "setup_context") is None
    return Function(forward), given.after(Unknown()) if own_context else given


def setup(cls: ClassInfo, given: Arguments, output: Value, frame: Frame) -> tuple[Function, Arguments] | None:
    """``setup_context(ctx, inputs, output)``, which runs after a ``forward`` that takes no context."""
    found = hierarchy.find_method(frame.engine, cls, "setup_context")
    if found is None:
        return None
    inputs = Sequence("tuple", given.positional) if given.rest is None else Sequence("tuple", None, given.rest)
    return Function(found), Arguments((Unknown(), inputs, output))


def runs_backward(callee: Value) -> bool:
    return any(
        isinstance(option, (External, BoundExternal)) and (option.path in _BACKWARDS or option.path == "?.backward")
        for option in options(callee)
    )


def backwards(engine: Engine, context: Context) -> Iterator[tuple[Value, Arguments]]:
    """What a backward runs, with gradients on the device: the ``backward`` of each function that the same region has
    applied, and the backward hooks of the modules that it has called.
    """
    gradient = Tensor(device=Device.DEVICE, confidence=Confidence.LIKELY, why="a gradient")
    above = _above(context)
    found: dict[ClassInfo, None] = {}
    hooks: dict[Value, None] = {}
    for other in [*above, *engine.contexts.values()]:
        if (other.applies or other.backward_hooks) and not above.isdisjoint(_above(other)):
            found.update(dict.fromkeys(other.applies))
            hooks.update(other.backward_hooks)
    gradients = Sequence("tuple", None, gradient)
    for hook in hooks:
        for option in options(hook):
            yield option, Arguments((Unknown(), gradients, gradients))
    for cls in sorted(found, key=lambda each: (each.module.display, each.node.lineno)):
        backward = hierarchy.find_method(engine, cls, "backward")
        if backward is not None:
            yield Function(backward), Arguments((Unknown(),), rest=gradient)


def _above(context: Context) -> set[Context]:
    """A context and all that lead to it."""
    found: set[Context] = set()
    waiting = [context]
    while waiting:
        current = waiting.pop()
        if current not in found:
            found.add(current)
            waiting.extend(caller for caller, _, _ in current.callers)
    return found
