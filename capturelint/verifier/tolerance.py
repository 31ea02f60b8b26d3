"""When two tensors count as equal, by dtype."""

from __future__ import annotations

from typing import Any

import torch

_BY_DTYPE = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 1e-5, torch.float64: 1e-8}


def difference(one: Any, other: Any, dtype: torch.dtype | None = None) -> str | None:
    """What differs, in words; None where the tensors agree. ``dtype``: read two byte tensors as this type."""
    if tuple(one.shape) != tuple(other.shape):
        return f"shape {tuple(one.shape)} at replay, {tuple(other.shape)} eagerly"
    if one.numel() == 0:
        return None
    if one.layout is not torch.strided or other.layout is not torch.strided:
        return None
    one, other = one.detach(), other.detach().to(one.device)
    if dtype is not None and one.dtype is torch.uint8:
        size = torch.empty(0, dtype=dtype).element_size()
        if one.numel() % size == 0:
            one, other = one.view(dtype), other.view(dtype)
    if one.dtype is not other.dtype:
        return f"{one.dtype} at replay, {other.dtype} eagerly"
    if not (one.is_floating_point() or one.is_complex()):
        different = (one != other).sum().item()
        return f"{different} of {one.numel()} values differ" if different else None
    limit = _BY_DTYPE.get(one.dtype, 1e-5)
    close = torch.isclose(one, other, rtol=limit, atol=limit, equal_nan=True)
    if bool(close.all()):
        return None
    largest = (
        (one.double() - other.double()).abs().nan_to_num(0.0).max().item() if not one.is_complex() else float("nan")
    )
    return f"largest difference {largest:.3g}, {int((~close).sum())} of {one.numel()} values"
