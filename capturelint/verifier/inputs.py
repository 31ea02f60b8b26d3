"""Arguments for a region: made from tensor specs or by a function of the user's, fresh for every seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from capturelint.errors import UsageError
from capturelint.verifier.specs import TensorSpec, parse_value

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class Inputs:
    """Makes the arguments for a seed. ``device`` replaces ``cuda`` in specs."""

    source: Any
    device: str = "cuda"

    def make(self, seed: int) -> Arguments:
        """Positional and keyword arguments. Raises UsageError for a bad spec, and whatever the user's function does."""
        source = self.source
        if source is None:
            return (), {}
        if isinstance(source, Mapping):
            return (), {str(name): self._value(item, seed, index) for index, (name, item) in enumerate(source.items())}
        if isinstance(source, str):
            return (self._value(source, seed, 0),), {}
        if isinstance(source, Sequence):
            return tuple(self._value(item, seed, index) for index, item in enumerate(source)), {}
        if callable(source):
            return _as_arguments(source(seed))
        raise UsageError(f"inputs should be tensor specs or a function of a seed, not {type(source).__name__}")

    def _value(self, item: Any, seed: int, index: int) -> Any:
        if not isinstance(item, str):
            return item
        value = parse_value(item)
        return make_tensor(value, 1009 * seed + index, self.device) if isinstance(value, TensorSpec) else value


def make_tensor(spec: TensorSpec, seed: int, device: str = "cuda") -> torch.Tensor:
    """A random tensor of ``spec``: normal floats, or uniform ones and integers within the bounds."""
    generator = torch.Generator().manual_seed(seed)
    dtype = getattr(torch, spec.dtype)
    if dtype is torch.bool:
        made = torch.rand(spec.shape, generator=generator) > 0.5
    elif dtype.is_floating_point or dtype.is_complex:
        made = _floats(spec, generator).to(dtype)
    else:
        low, high = int(spec.low or 0), int(spec.high if spec.high is not None else max(int(spec.low or 0) + 8, 8))
        made = torch.randint(low, high + 1, spec.shape, generator=generator, dtype=torch.int64).to(dtype)
    if spec.device == "cpu":
        return made
    return made.pin_memory() if spec.device == "pinned" else made.to(device)


def _floats(spec: TensorSpec, generator: torch.Generator) -> torch.Tensor:
    if spec.low is None and spec.high is None:
        return torch.randn(spec.shape, generator=generator)
    low, high = spec.low or 0.0, spec.high if spec.high is not None else (spec.low or 0.0) + 1.0
    return torch.rand(spec.shape, generator=generator) * (high - low) + low


def _as_arguments(made: Any) -> Arguments:
    if isinstance(made, dict):
        return (), made
    if isinstance(made, tuple):
        if len(made) == 2 and isinstance(made[0], tuple) and isinstance(made[1], dict):
            return made[0], made[1]
        return made, {}
    if isinstance(made, list):
        return tuple(made), {}
    return (made,), {}


def refill(static: Arguments, fresh: Arguments, only_floats: bool = False) -> str | None:
    """Copies fresh tensors into the static ones; returns why that is not possible, or None.

    ``only_floats`` leaves indices, counts and masks as they are.
    """
    ours, theirs = tree_leaves(static), tree_leaves(fresh)
    if len(ours) != len(theirs):
        return "inputs of another seed have another structure"
    with torch.no_grad():
        for one, other in zip(ours, theirs, strict=True):
            if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
                if one.shape != other.shape:
                    return f"inputs of another seed have another shape: {tuple(one.shape)}, then {tuple(other.shape)}"
                if not only_floats or one.is_floating_point() or one.is_complex():
                    one.copy_(other)
    return None


def call_maybe(function: Callable[..., Any] | None, *arguments: Any) -> Any:
    """Calls ``function`` where there is one, without the arguments where it takes none."""
    import inspect

    if function is None:
        return None
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return function()
    except ValueError:
        pass
    return function(*arguments)
