"""Regions for the tests of the verifier, written for the emulated device of ``emulated.py``."""

from __future__ import annotations

import random

import torch


class State:
    def __init__(self) -> None:
        self.calls = 0
        self.wide = False
        self.h = torch.zeros(8, 16)
        self.log: list[torch.Tensor] = []


STATE = State()
INPUTS = {"x": "float32[8, 16]", "n": "int64[1] in 2..6", "mask": "bool[8, 16]"}


def widen(value: int) -> None:
    STATE.wide = value > 3


def logged() -> int:
    return len(STATE.log)


def several(x: torch.Tensor, n: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    h = x * n.item()  # read
    if mask.any():  # branch
        h = h + 1
    h = h + x[mask].sum()  # shape
    return h


def counting(x: torch.Tensor, n: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    STATE.calls += 1  # effect
    return x + STATE.calls  # scalar


def drawing(x: torch.Tensor, n: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return x + random.random()  # scalar


def branching(x: torch.Tensor, n: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    if STATE.wide:  # noqa: SIM108 - branch
        y = x * 2
    else:
        y = x - 1
    return y + 1


def recurrent(x: torch.Tensor, n: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    STATE.h = torch.tanh(STATE.h + x)  # address
    return STATE.h * 1


def collecting(x: torch.Tensor, n: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    STATE.log.append(x.mean())  # effect
    return x + 1


def right(x: torch.Tensor, n: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    y = torch.nn.functional.dropout(x, 0.5)
    y.mul_(2)
    return y.masked_fill(mask, 0.0).sum(-1)


def looping(x: torch.Tensor, n: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    while y.sum() > 0:  # loop
        y = y - 1
    assert (y < 1e9).all()  # assertion
    return y


def failing(x: torch.Tensor, n: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    raise ValueError("cannot run at all")
