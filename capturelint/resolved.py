"""The settings of a run as they come out, and where each comes from: what ``capturelint config`` shows."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from capturelint.config.keys import CONFIG, OVERRIDE, VOCABULARY
from capturelint.config.load import toml_document
from capturelint.config.origins import key_lines, line_of
from capturelint.path_settings import PathSettings
from capturelint.rulebook import Rulebook
from capturelint.source.files import display_path

if TYPE_CHECKING:
    from capturelint.check import CheckOptions

DEFAULT, COMMAND_LINE = "default", "command line"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. ``origin`` is ``file:line``, the command line's option, or ``default``."""

    name: str
    value: Any
    origin: str


@dataclass(frozen=True, slots=True)
class Resolved:
    """All settings of a run. ``path`` is the one file that they are for, None for none in particular."""

    root: str
    config_file: str | None
    path: str | None
    settings: tuple[Setting, ...]
    rules: tuple[str, ...]


def resolve(rulebook: Rulebook, options: CheckOptions, given: Mapping[str, str], path: str | None = None) -> Resolved:
    """``given``: the options of the command line that settle something, by the key that they settle."""
    by_path = PathSettings(rulebook, options)
    local = by_path.at(path) if path is not None else by_path.base
    return Resolved(
        root=display_path(options.root) or ".",
        config_file=options.config.source,
        path=path,
        settings=tuple(_Reader(options, given).settings(by_path.matching(path) if path is not None else [])),
        rules=tuple(sorted(local.codes - local.dropped)),
    )


class _Reader:
    def __init__(self, options: CheckOptions, given: Mapping[str, str]) -> None:
        self._options = options
        self._given = given
        file = options.config.file
        text = "" if file is None else file.read_text(encoding="utf-8")
        self._document = toml_document(text)
        self._lines = key_lines(text)

    def settings(self, matching: list[int]) -> Iterator[Setting]:
        for name in CONFIG.keys:
            if name == "vocabulary":
                yield from self._vocabulary()
                continue
            yield self._setting(name, matching)

    def _setting(self, name: str, matching: list[int]) -> Setting:
        if name == "ignore":
            return self._ignored(matching)
        attribute = name.replace("-", "_")
        config = self._options.config
        if name in self._given:
            return Setting(name, plain(getattr(self._options, attribute)), self._option(name))
        for index in reversed(matching):
            value = getattr(config.overrides[index], attribute, None)
            if name in OVERRIDE.keys and value:
                return Setting(name, plain(value), self._origin("overrides", index, name))
        return Setting(name, plain(getattr(config, attribute)), self._origin(name))

    def _ignored(self, matching: list[int]) -> Setting:
        """What all places say counts."""
        config = self._options.config
        parts = [(self._options.ignore, self._option("ignore")), (config.ignore, self._origin("ignore"))]
        parts += [(config.overrides[index].ignore, self._origin("overrides", index, "ignore")) for index in matching]
        origins = [origin for rules, origin in parts if rules]
        return Setting("ignore", [rule for rules, _ in parts for rule in rules], ", ".join(origins) or DEFAULT)

    def _option(self, name: str) -> str:
        return f"{COMMAND_LINE} ({self._given.get(name, '')})"

    def _vocabulary(self) -> Iterator[Setting]:
        for key in VOCABULARY.keys:
            value = getattr(self._options.config.vocabulary, key.replace("-", "_"))
            yield Setting(f"vocabulary.{key}", plain(value), self._origin("vocabulary", key))

    def _origin(self, *path: str | int) -> str:
        config = self._options.config
        full = (*config.table, *path)
        if not _holds(self._document, full):
            return DEFAULT
        number = line_of(self._lines, full)
        return str(config.source) if number is None else f"{config.source}:{number}"


def _holds(document: Any, path: tuple[str | int, ...]) -> bool:
    for part in path:
        try:
            document = document[part]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def plain(value: Any) -> Any:
    """As JSON can hold it."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        names = [each.name for each in fields(value) if each.name != "source"]
        pairs = ((name.replace("_", "-"), getattr(value, name)) for name in names)
        return {name: plain(item) for name, item in pairs if item not in (None, (), "")}
    return value
