"""The kinds of values that a configuration holds. Each reads a value and describes what it reads as JSON Schema.

The two stand together, so that a schema that editors use and the check of a run do not drift apart.
"""

from __future__ import annotations

import enum
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from capturelint.errors import ConfigError
from capturelint.suggest import did_you_mean

Schema = dict[str, Any]

_DOTTED = r"[^\W\d]\w*(\.[^\W\d]\w*)*"
_REGION = r"[\w.*]+:[\w.*]+"
_VERSION = r"[0-9]+(\.[0-9]+)*"
_URL = r"https?://\S*\{(code|name)\}\S*"


@dataclass(frozen=True)
class Where:
    """A place in a file, for errors: the file as reports show it, and the dotted key."""

    source: str
    path: tuple[str, ...] = ()

    def below(self, key: str) -> Where:
        return replace(self, path=(*self.path, key))

    def item(self, index: int) -> Where:
        return replace(self, path=(*self.path[:-1], f"{self.path[-1]}[{index}]"))

    def error(self, message: str) -> ConfigError:
        return ConfigError(self.source, ".".join(self.path), message)


class Kind(ABC):
    """One kind of value."""

    @abstractmethod
    def read(self, where: Where, value: Any) -> Any:
        """The value as the configuration holds it. Raises ConfigError."""

    @abstractmethod
    def schema(self) -> Schema:
        """What ``read`` takes."""


@dataclass(frozen=True)
class Flag(Kind):
    def read(self, where: Where, value: Any) -> bool:
        if not isinstance(value, bool):
            raise where.error(f"should be true or false, not {kind_of(value)}")
        return value

    def schema(self) -> Schema:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Number(Kind):
    """A whole number from 1."""

    def read(self, where: Where, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise where.error(f"should be a number, not {kind_of(value)}")
        if value < 1:
            raise where.error("should be at least 1")
        return value

    def schema(self) -> Schema:
        return {"type": "integer", "minimum": 1}


@dataclass(frozen=True)
class Text(Kind):
    """A string of one form. ``wanted`` says of any other value what it should be."""

    pattern: str
    wanted: str

    def read(self, where: Where, value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(self.pattern, value):
            raise where.error(self.wanted)
        return value

    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^{self.pattern}$"}


@dataclass(frozen=True)
class FileName(Kind):
    """Any string with something in it."""

    def read(self, where: Where, value: Any) -> str:
        if not isinstance(value, str):
            raise where.error(f"should be a string, not {kind_of(value)}")
        if not value.strip():
            raise where.error("should not be empty")
        return value

    def schema(self) -> Schema:
        return {"type": "string", "pattern": r"\S"}


VERSION = Text(_VERSION, "should be a string with a version, such as '2.11'")
RULE_URL = Text(_URL, "should be a URL with {code} or {name} in it, which stands for the rule")


@dataclass(frozen=True)
class Choice(Kind):
    """The value of a member of an enum."""

    members: type[enum.Enum]

    def read(self, where: Where, value: Any) -> enum.Enum:
        values = {member.value: member for member in self.members}
        if not isinstance(value, str):
            raise where.error(f"should be a string, not {kind_of(value)}")
        if value not in values:
            raise where.error(f"{value!r} is none of {', '.join(values)}{did_you_mean(value, values)}")
        return values[value]

    def schema(self) -> Schema:
        return {"enum": [member.value for member in self.members]}


@dataclass(frozen=True)
class Names(Kind):
    """A list of strings; white space around them does not count. ``empty`` says why the list may not be empty."""

    pattern: str = r"\S([\s\S]*\S)?"
    #: what is wrong with a name of another form; ``{name}`` is the name
    wanted: str = "should not be empty"
    empty: str | None = None

    def read(self, where: Where, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise where.error(f"should be a list of strings, not {kind_of(value)}")
        for index, item in enumerate(value):
            if not isinstance(item, str):
                raise where.item(index).error(f"should be a string, not {kind_of(item)}")
            if not item.strip():
                raise where.item(index).error("should not be empty")
            if not re.fullmatch(self.pattern, item.strip()):
                raise where.item(index).error(self.wanted.replace("{name}", repr(item.strip())))
        if self.empty is not None and not value:
            raise where.error(self.empty)
        return tuple(item.strip() for item in value)

    def schema(self) -> Schema:
        schema: Schema = {"type": "array", "items": {"type": "string", "pattern": rf"^\s*{self.pattern}\s*$"}}
        return schema if self.empty is None else {**schema, "minItems": 1}


_NOT_DOTTED = "{name} is not a dotted name, such as 'pkg.module.function'"
DOTTED_NAMES = Names(_DOTTED, _NOT_DOTTED)
REGION_PATTERNS = Names(_REGION, "{name} is not a pattern such as 'pkg.module:Class.method' or '**:forward'")


@dataclass(frozen=True)
class Mapped(Kind):
    """A table whose keys are the user's own, of values of one kind."""

    values: Kind
    keys: str | None = None
    #: what is wrong with a key of another form
    wanted: str = ""

    def read(self, where: Where, value: Any) -> dict[str, Any]:
        table = as_table(where, value)
        found = {name: self.values.read(where.below(f'"{name}"'), item) for name, item in table.items()}
        for name in found:
            if self.keys is not None and not re.fullmatch(self.keys, name):
                raise where.below(f'"{name}"').error(self.wanted.replace("{name}", repr(name)))
        return found

    def schema(self) -> Schema:
        schema: Schema = {"type": "object", "additionalProperties": self.values.schema()}
        return schema if self.keys is None else {**schema, "propertyNames": {"pattern": f"^{self.keys}$"}}


FLAGS_BY_DOTTED_NAME = Mapped(Flag(), _DOTTED, _NOT_DOTTED)


@dataclass(frozen=True)
class Key:
    """One key of a table: what it holds, and what editors say about it."""

    kind: Kind
    about: str
    default: Any = None

    def schema(self) -> Schema:
        described = {"description": self.about, **self.kind.schema()}
        return described if self.default is None else {**described, "default": self.default}


@dataclass(frozen=True)
class Table(Kind):
    """A table of known keys, read into ``build`` with ``_`` for ``-``."""

    build: Callable[..., Any]
    keys: Mapping[str, Key]
    required: tuple[str, ...] = ()
    #: what is wrong with a table that holds the required keys alone
    bare: str | None = None

    MISSING: ClassVar[str] = "is missing"

    def read(self, where: Where, value: Any) -> Any:
        return self.build(**self.fields(where, as_table(where, value)))

    def fields(self, where: Where, table: Mapping[str, Any]) -> dict[str, Any]:
        for key in table:
            if key not in self.keys:
                raise where.below(key).error(f"unknown key{did_you_mean(key, self.keys)}")
        for key in self.required:
            if key not in table:
                raise where.below(key).error(self.MISSING)
        if self.bare is not None and len(table) == len(self.required):
            raise where.error(self.bare)
        return {key.replace("-", "_"): self.keys[key].kind.read(where.below(key), item) for key, item in table.items()}

    def schema(self) -> Schema:
        schema: Schema = {
            "type": "object",
            "properties": {name: key.schema() for name, key in self.keys.items()},
            "additionalProperties": False,
        }
        if self.required:
            schema["required"] = list(self.required)
        return schema if self.bare is None else {**schema, "minProperties": len(self.required) + 1}


@dataclass(frozen=True)
class Tables(Kind):
    """An array of tables."""

    each: Kind

    def read(self, where: Where, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise where.error(f"should be an array of tables, not {kind_of(value)}")
        return tuple(self.each.read(where.item(index), item) for index, item in enumerate(value))

    def schema(self) -> Schema:
        return {"type": "array", "items": self.each.schema()}


def as_table(where: Where, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise where.error(f"should be a table, not {kind_of(value)}")
    return value


def kind_of(value: Any) -> str:
    """What a TOML author would call the value's type."""
    names: tuple[tuple[type, str], ...] = (
        (bool, "a boolean"),
        (str, "a string"),
        (int, "an integer"),
        (float, "a float"),
        (list, "a list"),
        (dict, "a table"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), "a date or time")
