"""Arguments of operators and host values as short text, equal exactly where the values are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

_LONGEST = 120


def scalars_of(args: Any, kwargs: dict[str, Any], on_device: Callable[[torch.Tensor], bool]) -> tuple[str, ...]:
    """What an operator gets by value: numbers, sizes, strings, and CPU tensors of one element."""
    found = []
    for leaf in (*tree_leaves(args), *(leaf for key in sorted(kwargs) for leaf in tree_leaves(kwargs[key]))):
        if isinstance(leaf, torch.Tensor):
            if not on_device(leaf) and leaf.device.type == "cpu" and leaf.numel() == 1 and not _is_fake(leaf):
                found.append(_untraced(leaf))
        elif isinstance(leaf, (bool, int, float, complex, str, torch.dtype)):
            found.append(repr(leaf))
    return tuple(found)


def describe(value: Any) -> str:
    """A host value, short."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _untraced(tensor: torch.Tensor) -> str:
    from torch.utils._python_dispatch import _disable_current_modes

    with _disable_current_modes():
        return f"tensor({tensor.detach().item()!r})"


def _is_fake(tensor: torch.Tensor) -> bool:
    return type(tensor) is not torch.Tensor and type(tensor) is not torch.nn.Parameter
