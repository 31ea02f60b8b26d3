"""Reads one file of ``rules/ops/``. Every error is a RulebookError that names the file and the key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capturelint.errors import RulebookError
from capturelint.model import Confidence
from capturelint.rulebook.op_spec import (
    ALWAYS,
    LAYOUTS,
    MODES,
    PARAMETER_KINDS,
    Condition,
    Constant,
    EffectKind,
    Known,
    OpEffect,
    OptimizerSpec,
    Predicate,
    Returns,
)
from capturelint.rulebook.versions import is_range

SECTIONS = ("version", "source", "ops", "signatures", "classes", "modules", "aliases", "predicates", "optimizers")
_OP_KEYS = ("names", "params", "returns", "effects", "mutates", "attribute", "view", "random", "layout")
_GROUP_KEYS = ("owner", "returns", "mutates", "view", "random", "lines")
_EFFECT_KEYS = ("kind", "of", "when", "detail", "confidence", "versions", "help", "mode")
_WHEN_KEYS = ("given", "not-given", "const", "not-const", "is", "is-not")
_KINDS = {kind.value: kind for kind in EffectKind}
_CONFIDENCES = {confidence.value: confidence for confidence in Confidence}


@dataclass(frozen=True, slots=True)
class Entry:
    """What one hand-written entry says; None where it leaves the generated signature as it is."""

    params: tuple[str, ...] | None
    returns: Returns | None
    effects: tuple[OpEffect, ...]
    mutates: tuple[str, ...] | None
    attribute: bool
    view: bool | None
    random: bool | None
    layout: str | None
    path: Path


@dataclass(frozen=True, slots=True)
class Group:
    """Generated signatures that share a kind of result."""

    returns: Returns
    mutates: tuple[str, ...]
    view: bool
    random: bool


def parse_ops(path: Path) -> dict[str, Any]:
    """What the YAML of one file holds."""
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, UnicodeDecodeError) as error:
        raise RulebookError(f"{path}: cannot be read: {error}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise RulebookError(f"{path}: {where}not valid YAML") from None
    if not isinstance(data, dict):
        raise RulebookError(f"{path}: must be a mapping")
    return data


class Reader:
    """Typed access to one file, with the position for messages."""

    def __init__(self, path: Path, data: Mapping[str, Any]) -> None:
        self.path = path
        self.data = data
        self._known("", self.data, SECTIONS)
        if self.data.get("version") != 1:
            raise self.error("version", "must be 1")
        self.text("source", self.data.get("source"))

    def error(self, key: str, message: str) -> RulebookError:
        return RulebookError(f"{self.path}: {key}: {message}")

    def text(self, key: str, value: object) -> str:
        if not isinstance(value, str) or not value.strip():
            raise self.error(key, "must be text that is not empty")
        return value

    def flag(self, key: str, value: object) -> bool:
        if not isinstance(value, bool):
            raise self.error(key, "must be true or false")
        return value

    def words(self, key: str, value: object) -> tuple[str, ...]:
        """A list of words, or one text with words between spaces."""
        if isinstance(value, str):
            return tuple(value.split())
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise self.error(key, "must be a list of words")
        return tuple(value)

    def mapping(self, key: str, value: object) -> Mapping[str, Any]:
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
            raise self.error(key, "must be a mapping")
        return value

    def rows(self, section: str) -> list[tuple[str, Mapping[str, Any]]]:
        value = self.data.get(section, [])
        if not isinstance(value, list):
            raise self.error(section, "must be a list")
        return [(f"{section}[{i}]", self.mapping(f"{section}[{i}]", row)) for i, row in enumerate(value)]

    def _known(self, key: str, value: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
        for name in value:
            if name not in allowed:
                raise self.error(f"{key}.{name}".lstrip("."), f"unknown key; known are {', '.join(allowed)}")

    def returns(self, key: str, value: object) -> Returns:
        found = Returns.parse(value) if isinstance(value, str) else None
        if found is None:
            raise self.error(key, f"{value!r} is no kind of result")
        return found

    def op(self, key: str, row: Mapping[str, Any]) -> tuple[tuple[str, ...], Entry]:
        self._known(key, row, _OP_KEYS)
        names = self.words(f"{key}.names", row.get("names"))
        if not names:
            raise self.error(f"{key}.names", "must name at least one")
        effects = row.get("effects", [])
        if not isinstance(effects, list):
            raise self.error(f"{key}.effects", "must be a list")
        return names, Entry(
            self.params(f"{key}.params", row["params"]) if "params" in row else None,
            self.returns(f"{key}.returns", row["returns"]) if "returns" in row else None,
            tuple(self.effect(f"{key}.effects[{i}]", effect) for i, effect in enumerate(effects)),
            self.words(f"{key}.mutates", row["mutates"]) if "mutates" in row else None,
            self.flag(f"{key}.attribute", row.get("attribute", False)),
            self.flag(f"{key}.view", row["view"]) if "view" in row else None,
            self.flag(f"{key}.random", row["random"]) if "random" in row else None,
            self.layout(f"{key}.layout", row.get("layout")),
            self.path,
        )

    def layout(self, key: str, value: object) -> str | None:
        if value not in (None, *LAYOUTS):
            raise self.error(key, f"must be one of {', '.join(LAYOUTS)}")
        return value if isinstance(value, str) else None

    def params(self, key: str, value: object) -> tuple[str, ...]:
        """Parameter names; ``:int`` and ``:number`` mark those that take host numbers only."""
        found = self.words(key, value)
        for word in found:
            if word.partition(":")[2] not in ("", "int", "number"):
                raise self.error(key, f"{word!r} must end in :int or :number, or have no mark")
        return found

    def effect(self, key: str, value: object) -> OpEffect:
        row = self.mapping(key, value)
        self._known(key, row, _EFFECT_KEYS)
        if row.get("kind") not in _KINDS:
            raise self.error(f"{key}.kind", f"must be one of {', '.join(_KINDS)}")
        if "confidence" in row and row["confidence"] not in _CONFIDENCES:
            raise self.error(f"{key}.confidence", f"must be one of {', '.join(_CONFIDENCES)}")
        if row.get("mode", "") not in ("", *MODES):
            raise self.error(f"{key}.mode", f"must be one of {', '.join(MODES)}")
        if "versions" in row and not is_range(str(row["versions"])):
            raise self.error(f"{key}.versions", "must be a version range such as >=2.3,<2.11")
        return OpEffect(
            _KINDS[row["kind"]],
            self.words(f"{key}.of", row["of"]) if "of" in row else None,
            self.condition(f"{key}.when", row["when"]) if "when" in row else ALWAYS,
            self.text(f"{key}.detail", row["detail"]) if "detail" in row else "",
            _CONFIDENCES[row["confidence"]] if "confidence" in row else None,
            self.text(f"{key}.versions", row["versions"]) if "versions" in row else "",
            self.text(f"{key}.help", row["help"]) if "help" in row else "",
            row.get("mode", ""),
        )

    def condition(self, key: str, value: object) -> Condition:
        row = self.mapping(key, value)
        self._known(key, row, _WHEN_KEYS)
        return Condition(
            self.words(f"{key}.given", row.get("given", [])),
            self.words(f"{key}.not-given", row.get("not-given", [])),
            self.constants(f"{key}.const", row.get("const", {})),
            self.constants(f"{key}.not-const", row.get("not-const", {})),
            self.kinds(f"{key}.is", row.get("is", {})),
            self.kinds(f"{key}.is-not", row.get("is-not", {})),
        )

    def kinds(self, key: str, value: object) -> tuple[tuple[str, str], ...]:
        kinds = self.mapping(key, value)
        for name, kind in kinds.items():
            if kind not in PARAMETER_KINDS:
                raise self.error(f"{key}.{name}", f"must be one of {', '.join(PARAMETER_KINDS)}")
        return tuple(kinds.items())

    def constants(self, key: str, value: object) -> tuple[tuple[str, tuple[Constant, ...]], ...]:
        found = []
        for name, constant in self.mapping(key, value).items():
            options = constant if isinstance(constant, list) else [constant]
            found.append((name, tuple(self.constant(f"{key}.{name}", option) for option in options)))
        return tuple(found)

    def constant(self, key: str, value: object) -> Constant:
        if value is not None and not isinstance(value, (bool, int, float, str)):
            raise self.error(key, "must be a number, text, true, false or null")
        return value

    def group(self, key: str, row: Mapping[str, Any]) -> tuple[Group, dict[str, str]]:
        """A block of generated lines: what they share, and each name with its parameters as text."""
        self._known(key, row, _GROUP_KEYS)
        owner = self.text(f"{key}.owner", row.get("owner"))
        group = Group(
            self.returns(f"{key}.returns", row.get("returns")),
            self.words(f"{key}.mutates", row.get("mutates", [])),
            self.flag(f"{key}.view", row.get("view", False)),
            self.flag(f"{key}.random", row.get("random", False)),
        )
        split = (line.partition(" ") for line in self.text(f"{key}.lines", row.get("lines")).splitlines())
        return group, {f"{owner}.{name}": params for name, _, params in split}

    def module(self, key: str, row: Mapping[str, Any]) -> tuple[Returns, tuple[str, ...]]:
        """What the modules' forward returns, and their classes."""
        self._known(key, row, ("forward", "names"))
        return self.returns(f"{key}.forward", row.get("forward")), self.words(f"{key}.names", row.get("names"))

    def predicate(self, name: str, value: object) -> Predicate:
        key = f"predicates.{name}"
        row = self.mapping(key, value)
        self._known(key, row, ("attribute", "in-region", "in-compile", "outside"))
        places = ("in-region", "in-compile", "outside")
        known = [Known(self.constant(f"{key}.{p}", row[p])) if p in row else None for p in places]
        return Predicate(name, self.flag(f"{key}.attribute", row.get("attribute", False)), *known)

    def optimizer(self, name: str, value: object) -> OptimizerSpec:
        key = f"optimizers.{name}"
        flags = self.words(key, value)
        allowed = ("capturable", "fused", "tensor_lr", "refuses", "reads", "reads_lr")
        for flag in flags:
            if flag not in allowed:
                raise self.error(key, f"{flag!r} is not among {', '.join(allowed)}")
        return OptimizerSpec(name, **dict.fromkeys(flags, True))
