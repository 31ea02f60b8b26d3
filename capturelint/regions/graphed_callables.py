"""``torch.cuda.make_graphed_callables(f, sample_args)``: the callable is captured, forward and backward."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from capturelint.model import Confidence
from capturelint.project.module import Module
from capturelint.regions.declaration import Declaration
from capturelint.values.domain import Device, External, Sequence, Tensor, Value, options
from capturelint.values.engine import Engine
from capturelint.values.frame import Arguments
from capturelint.values.given import arguments_of

_NAME = "make_graphed_callables"


def find(engine: Engine, module: Module) -> Iterator[Declaration]:
    names = {
        _NAME,
        *(alias for alias, found in module.names.items() if any(getattr(d, "name", "") == _NAME for d in found)),
    }
    for name in sorted(names):
        for holder, call in module.calls_named(name):
            scope = engine.scope_of(holder, module)
            callee = engine.evaluate_in(scope, call.func)
            if not any(isinstance(o, External) and o.path.endswith(f".{_NAME}") for o in options(callee)):
                continue
            given = arguments_of(call, engine.frame_for(scope))
            callables, samples = given.get(0, "callables"), given.get(1, "sample_args")
            holder_name = holder.qualname if holder is not None else "<module>"
            for target, sample in _pairs(callables, samples):
                yield Declaration(_NAME, module, call, holder_name, holder, target=target, arguments=_arguments(sample))


def _pairs(callables: Value | None, samples: Value | None) -> Iterator[tuple[Value, Value | None]]:
    """One callable with its sample arguments, or a tuple of each."""
    for option in options(callables):
        if isinstance(option, Sequence):
            items = option.items if option.items is not None else (option.element,)
            given = samples.items if isinstance(samples, Sequence) and samples.items is not None else None
            for index, item in enumerate(items):
                if item is not None:
                    sample = given[index] if given is not None and index < len(given) else None
                    yield item, sample
        else:
            yield option, samples


def _arguments(sample: Value | None) -> Arguments:
    if isinstance(sample, Sequence) and sample.items is not None:
        return Arguments(tuple(_on_device(item) for item in sample.items))
    if isinstance(sample, Tensor):
        return Arguments((_on_device(sample),))
    return Arguments(rest=Tensor(device=Device.DEVICE, confidence=Confidence.LIKELY))


def _on_device(value: Value) -> Value:
    """Sample arguments must be CUDA tensors, whatever is known of how they were made."""
    if isinstance(value, Tensor):
        return replace(value, device=Device.DEVICE, stored=True)
    return value
