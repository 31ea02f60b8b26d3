"""Shields: calls that answer with what was recorded, so that one hazard at a time meets the device."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map


@dataclass(frozen=True, slots=True)
class Key:
    """A call as a shield knows it: which function or operator, on which line of the user's code."""

    name: str
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call gave: its result, and what the things that it changes in place held afterwards."""

    result: Any
    target: tuple[Any, ...]


@dataclass(frozen=True)
class Shields:
    """The calls to answer from a recording, with their answers in the order of the calls."""

    answers: dict[Key, list[Answer]] = field(default_factory=dict)

    def covers(self, key: Key) -> bool:
        return key in self.answers

    def names(self, name: str) -> bool:
        return any(key.name == name for key in self.answers)

    def answer(self, key: Key, index: int, target: Any) -> Any:
        """The ``index``-th recorded answer, its effect on ``target`` applied. Past the end, the last one serves."""
        answers = self.answers[key]
        recorded = answers[min(index, len(answers) - 1)]
        targets = tensor_leaves(target)
        with torch.no_grad():
            for tensor, value in zip(targets, recorded.target, strict=False):
                tensor.copy_(value)
            if recorded.target and isinstance(recorded.result, torch.Tensor) and len(targets) == 1:
                return targets[0]
            return tree_map(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, recorded.result)

    @staticmethod
    def copy(result: Any, target: Any) -> Answer:
        with torch.no_grad():
            kept = tree_map(
                lambda leaf: leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf,
                result,
            )
            return Answer(kept, tuple(tensor.detach().clone() for tensor in tensor_leaves(target)))

    def with_answers(self, results: dict[Key, list[Answer]]) -> Shields:
        return Shields({**self.answers, **results})


def tensor_leaves(value: Any) -> list[torch.Tensor]:
    """The tensors in nested containers, in order."""
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]
