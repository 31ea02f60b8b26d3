"""The operator tables of ``rules/ops/``: what torch's functions, Tensor members and the like do to host and device.

``tensors.yaml`` is generated and gives signatures and kinds of result; the other files are written by hand, one a
theme, and add effects to it or correct it. A hand-written ``params`` replaces the generated signature with the effects
that follow from it; a hand-written effect replaces the generated ones of its kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from capturelint.errors import RulebookError
from capturelint.rulebook.compiled import read_all
from capturelint.rulebook.location import rules_directory
from capturelint.rulebook.op_reader import Entry, Group, Reader, parse_ops
from capturelint.rulebook.op_spec import (
    ALWAYS,
    Condition,
    Constant,
    EffectKind,
    Known,
    OpEffect,
    OpSpec,
    OptimizerSpec,
    Predicate,
    Returns,
)

__all__ = [
    "ALWAYS",
    "Condition",
    "Constant",
    "EffectKind",
    "Known",
    "OpEffect",
    "OpSpec",
    "OpTable",
    "OptimizerSpec",
    "Predicate",
    "Returns",
    "load_ops",
]

#: where ``torch.ops.aten.name`` may be known under another spelling
_ATEN = ("torch", "torch.Tensor", "torch.nn.functional", "torch._C._nn")
#: modules whose operators start with the module's name there: ``torch.ops.aten.linalg_inv``
_ATEN_FAMILIES = frozenset({"linalg", "fft", "special", "sparse", "nested"})


class OpTable:
    """Answers what a dotted name does. Specs are built when first asked for, and kept."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._lines: dict[str, tuple[Group, str]] = {}
        self._wildcards: dict[str, Entry] = {}
        self._bases: dict[str, str] = {}
        self._forwards: dict[str, Returns] = {}
        self._aliases: dict[str, str] = {}
        self._predicates: dict[str, Predicate] = {}
        self._optimizers: dict[str, OptimizerSpec] = {}
        self._found: dict[str, OpSpec | None] = {}
        self._module_classes: frozenset[str] | None = None

    @property
    def predicates(self) -> Mapping[str, Predicate]:
        return MappingProxyType(self._predicates)

    @property
    def optimizers(self) -> Mapping[str, OptimizerSpec]:
        return MappingProxyType(self._optimizers)

    @property
    def module_classes(self) -> frozenset[str]:
        """Dotted names of torch's own ``nn.Module`` classes."""
        if self._module_classes is None:
            self._module_classes = frozenset(self._forwards)
        return self._module_classes

    @property
    def bases(self) -> Mapping[str, str]:
        """Base class by class, dotted names, as far as methods are looked up through it."""
        return MappingProxyType(self._bases)

    def names(self) -> Iterator[str]:
        """Every spelling that is listed as it stands, without those reached through aliases or base classes."""
        yield from {**self._lines, **self._entries}

    def predicate(self, dotted: str) -> Predicate | None:
        return next((self._predicates[name] for name in self._spellings(dotted) if name in self._predicates), None)

    def optimizer(self, dotted: str) -> OptimizerSpec | None:
        return next((self._optimizers[name] for name in self._spellings(dotted) if name in self._optimizers), None)

    def lookup(self, dotted: str) -> OpSpec | None:
        """What is known of ``dotted`` (``torch.add``, ``torch.Tensor.add_``, ``numpy.sum``), or None.

        A class gives its constructor; a method is found on base classes too; ``torch.nn.modules.linear.Linear``,
        ``torch.ops.aten.add.Tensor`` and similar second spellings are understood.
        """
        try:
            return self._found[dotted]
        except KeyError:
            spec = self._found[dotted] = self._resolve(dotted)
            return spec

    def _resolve(self, dotted: str) -> OpSpec | None:
        for name in self._spellings(dotted):
            result = self._implied(name)
            if name in self._entries or name in self._lines:
                return self._build(name, result)
            if result is not None:
                return OpSpec(name, returns=result)
        for name in self._spellings(dotted):
            prefix = name
            while "." in prefix:
                prefix = prefix.rpartition(".")[0]
                if prefix in self._wildcards:
                    return self._merge(name, self._wildcards[prefix], OpSpec(name))
        return None

    def _implied(self, name: str) -> Returns | None:
        """The result of a class's constructor, and of the call of one of torch's modules."""
        if name in self._bases:
            return Returns("instance", target=name)
        owner, _, member = name.rpartition(".")
        return self._forwards.get(owner) if member in ("forward", "__call__") else None

    def _spellings(self, dotted: str) -> Iterator[str]:
        """``dotted`` itself, then what it may be called elsewhere: aliases, and its owner's base classes."""
        for name in (dotted, *self._moved(dotted)):
            yield name
            owner, _, member = name.rpartition(".")
            while (owner := self._bases.get(owner, "")) and member:
                yield f"{owner}.{member}"

    def _moved(self, dotted: str) -> Iterator[str]:
        parts = dotted.split(".")
        if parts[:3] == ["torch", "ops", "aten"] and len(parts) > 3:
            yield from (f"{owner}.{parts[3]}" for owner in _ATEN)
            family, _, member = parts[3].partition("_")
            if family in _ATEN_FAMILIES:
                yield f"torch.{family}.{member}"
        for count in range(len(parts), 0, -1):
            rest = parts[count:]
            if (target := self._aliases.get(".".join(parts[:count]))) is not None:
                yield ".".join((target, *rest))
            # a submodule that its package re-exports: torch.nn.modules.linear.Linear
            if parts[count - 1].islower() and (target := self._aliases.get(".".join(parts[: count - 1]) + ".*")):
                yield ".".join((target, *rest))

    def _build(self, name: str, result: Returns | None) -> OpSpec:
        ground = OpSpec(name, returns=result) if result is not None else OpSpec(name)
        if name in self._lines:
            group, text = self._lines[name]
            params, effects = _signature(text)
            ground = OpSpec(name, params, group.returns, effects, group.mutates, view=group.view, random=group.random)
        entry = self._entries.get(name)
        return ground if entry is None else self._merge(name, entry, ground)

    @staticmethod
    def _merge(name: str, entry: Entry, ground: OpSpec) -> OpSpec:
        params, implied = ground.params, ground.effects
        if entry.params is not None:
            params, implied = _signature(" ".join(entry.params))
        own = {effect.kind for effect in entry.effects}
        return OpSpec(
            name,
            params,
            entry.returns or ground.returns,
            entry.effects + tuple(effect for effect in implied if effect.kind not in own),
            ground.mutates if entry.mutates is None else entry.mutates,
            entry.attribute,
            ground.view if entry.view is None else entry.view,
            ground.random if entry.random is None else entry.random,
            entry.layout,
        )

    def add(self, reader: Reader) -> None:
        """Adds one file. Raises RulebookError where a name is given twice."""
        self._module_classes = None
        for key, row in reader.rows("ops"):
            names, entry = reader.op(key, row)
            for name in names:
                table, short = (self._wildcards, name[:-2]) if name.endswith(".*") else (self._entries, name)
                if short in table:
                    raise reader.error(f"{key}.names", f"{name} is given twice; first in {table[short].path.name}")
                table[short] = entry
        for key, row in reader.rows("signatures"):
            group, lines = reader.group(key, row)
            for name, params in lines.items():
                if name in self._lines:
                    raise reader.error(key, f"{name} is given twice")
                self._lines[name] = (group, params)
        for key, row in reader.rows("modules"):
            result, names = reader.module(key, row)
            for name in names:
                self._forwards[name] = result
                self._bases[name] = "torch.nn.Module"
        for base, classes in reader.mapping("classes", reader.data.get("classes", {})).items():
            self._bases.update(dict.fromkeys(reader.words(f"classes.{base}", classes), base))
        for prefix, target in reader.mapping("aliases", reader.data.get("aliases", {})).items():
            self._aliases[prefix] = reader.text(f"aliases.{prefix}", target)
        for name, value in reader.mapping("predicates", reader.data.get("predicates", {})).items():
            self._predicates[name] = reader.predicate(name, value)
        for name, value in reader.mapping("optimizers", reader.data.get("optimizers", {})).items():
            self._optimizers[name] = reader.optimizer(name, value)
            self._bases[name] = "torch.optim.Optimizer"


def _signature(text: str) -> tuple[tuple[str, ...], tuple[OpEffect, ...]]:
    """Parameter names, and the effects of parameters marked ``:int`` and ``:number``: a tensor there is read."""
    names: list[str] = []
    marked: dict[str, list[str]] = {"int": [], "number": []}
    for word in text.split():
        name, _, mark = word.partition(":")
        names.append(name)
        if mark:
            marked[mark].append(name.lstrip("*"))
    kinds = (EffectKind.SIZE_FROM_TENSOR, EffectKind.HOST_NUMBER)
    pairs = zip(kinds, marked.values(), strict=True)
    return tuple(names), tuple(OpEffect(kind, tuple(found)) for kind, found in pairs if found)


def load_ops(directory: Path | None = None) -> OpTable:
    """Loads every ``*.yaml`` of ``directory`` (the project's ``rules/ops`` when left out).

    Raises RulebookError, naming file and key, when a file is wrong or there is none.
    """
    return _load(directory or rules_directory() / "ops")


@lru_cache(maxsize=4)
def _load(directory: Path) -> OpTable:
    table = OpTable()
    paths = sorted(directory.glob("*.yaml"))
    if not paths:
        raise RulebookError(f"{directory}: no operator tables (*.yaml)")
    for reader in read_all(paths, parse_ops, Reader):
        table.add(reader)
    return table
