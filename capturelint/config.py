"""The configuration: ``[tool.capturelint]`` in pyproject.toml, or the same keys at the top of capturelint.toml.

Everything in it is checked when it is loaded; what is wrong is a ConfigError that names the file and the key.
"""

from __future__ import annotations

import contextlib
import enum
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from capturelint.errors import ConfigError, UsageError
from capturelint.model import Confidence, Severity
from capturelint.source.files import display_path
from capturelint.suggest import did_you_mean

if TYPE_CHECKING:
    from capturelint.verifier.harness import Harness

PYPROJECT, OWN_FILE = "pyproject.toml", "capturelint.toml"
_TABLE = ("tool", "capturelint")
_E = TypeVar("_E", bound=enum.Enum)


@dataclass(frozen=True)
class Vocabulary:
    """What the project's own functions do to host and device, by dotted name.

    ``predicates`` maps a function to what it returns during capture.
    """

    synchronizes: tuple[str, ...] = ()
    reads_device: tuple[str, ...] = ()
    capture_safe: tuple[str, ...] = ()
    allows_sync: tuple[str, ...] = ()
    starts_capture: tuple[str, ...] = ()
    predicates: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True)
class Config:
    """The keys of the configuration, with ``_`` for ``-``. ``source`` is the file it came from, as reports show it."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    #: ``pkg.mod:Class.method`` with ``*`` (within a name) and ``**`` (any dotted names)
    regions: tuple[str, ...] = ()
    presets: tuple[str, ...] = ()
    min_confidence: Confidence = Confidence.LIKELY
    fail_on: Severity = Severity.ERROR
    require_regions: bool = False
    #: the file of the baseline, from the directory of the configuration's own file
    baseline: str | None = None
    #: the version that the project runs on, such as ``2.11``; None for every supported one
    torch_version: str | None = None
    #: how many graphs one loop may capture before CG805 speaks of it
    max_graphs: int = 256
    #: where results are kept, relative to the project's root; None for the user's cache folder
    cache_dir: str | None = None
    #: gitignore patterns relative to the project's root, and the selectors that they switch off
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    #: how the verifier calls regions
    harness: tuple[Harness, ...] = ()
    source: str | None = None
    #: what the user should know about where the configuration came from, one line each
    notes: tuple[str, ...] = ()


def load_config(root: Path, explicit: Path | None = None) -> Config:
    """The configuration of the project at ``root``, or that of the file ``explicit``; defaults where there is none.

    Looked for in ``root`` and, where that lies inside a git repository, in the directories above it up to the
    repository's top. In one directory capturelint.toml comes before pyproject.toml, which counts only with a
    ``[tool.capturelint]`` table. Raises ConfigError.
    """
    if explicit is not None:
        return parse_config(_read_toml(explicit), display_path(explicit), _prefix_of(explicit))
    for directory in _search_path(root):
        own, pyproject = directory / OWN_FILE, directory / PYPROJECT
        if own.is_file():
            return replace(parse_config(_read_toml(own), display_path(own)), notes=_notes_about(pyproject))
        if pyproject.is_file() and _has_table(table := _read_toml(pyproject)):
            return parse_config(table, display_path(pyproject), _TABLE)
    return Config()


def _notes_about(pyproject: Path) -> tuple[str, ...]:
    """Says that the table in ``pyproject`` is not read, where there is one, since capturelint.toml is beside it."""
    with contextlib.suppress(ConfigError):  # a file that is not used need not be right
        if pyproject.is_file() and _has_table(_read_toml(pyproject)):
            return (f"[tool.capturelint] in {display_path(pyproject)} is not used: {OWN_FILE} beside it comes first",)
    return ()


def check_selectors(config: Config, resolve: Callable[[str], object]) -> None:
    """Raises ConfigError for a rule selector that ``resolve`` refuses (with UsageError)."""
    lists = {"select": config.select, "ignore": config.ignore}
    lists |= {f'per-file-ignores."{pattern}"': selectors for pattern, selectors in config.per_file_ignores.items()}
    for key, selectors in lists.items():
        for selector in selectors:
            try:
                resolve(selector)
            except UsageError as error:
                raise ConfigError(config.source or "", key, str(error)) from error


def parse_config(document: Mapping[str, Any], source: str, prefix: tuple[str, ...] = ()) -> Config:
    """The configuration in ``document``, a TOML file's content, below the table ``prefix``. Raises ConfigError."""
    table = document
    for part in prefix:
        table = table.get(part, {})
        if not isinstance(table, dict):
            raise ConfigError(source, ".".join(prefix), "should be a table")
    return _Reader(source, prefix).config(table)


def _search_path(root: Path) -> list[Path]:
    above = [root, *root.parents]
    tops = [index for index, directory in enumerate(above) if (directory / ".git").exists()]
    return above[: tops[0] + 1] if tops else [root]


def _prefix_of(file: Path) -> tuple[str, ...]:
    return _TABLE if file.name == PYPROJECT else ()


def _has_table(document: Mapping[str, Any]) -> bool:
    tool = document.get("tool")
    return isinstance(tool, dict) and "capturelint" in tool


def _read_toml(file: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    shown = display_path(file)
    try:
        document: dict[str, Any] = tomllib.loads(file.read_bytes().decode("utf-8"))
    except OSError as error:
        raise ConfigError(shown, "", f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(shown, "", "not UTF-8, which TOML has to be") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(shown, "", f"not valid TOML: {error}") from error
    return document


@dataclass(frozen=True)
class _Reader:
    """Reads values out of one table, and names it in errors."""

    source: str
    prefix: tuple[str, ...]

    def error(self, key: str, message: str) -> ConfigError:
        return ConfigError(self.source, ".".join((*self.prefix, key)), message)

    def below(self, key: str) -> _Reader:
        return replace(self, prefix=(*self.prefix, key))

    def config(self, table: Mapping[str, Any]) -> Config:
        readers: dict[str, Callable[[str, Any], Any]] = {
            "select": self.some_names,
            "ignore": self.names,
            "exclude": self.names,
            "regions": self.region_patterns,
            "presets": self.names,
            "min-confidence": self.choice(Confidence),
            "fail-on": self.choice(Severity),
            "require-regions": self.flag,
            "baseline": self.text,
            "torch-version": self.version,
            "max-graphs": self.count,
            "cache-dir": self.text,
            "per-file-ignores": self.ignores_by_file,
            "vocabulary": self.vocabulary,
            "harness": self.harness,
        }
        if not self.prefix:
            self.refuse_outer_table(table)
        return Config(**self.fields(table, readers), source=self.source)

    def refuse_outer_table(self, table: Mapping[str, Any]) -> None:
        """The header of pyproject.toml in a file of capturelint's own is a likely slip, and gets its own message."""
        for key in ("tool", _TABLE[-1]):
            if isinstance(table.get(key), dict):
                header = ".".join(_TABLE) if key == "tool" else key
                name = Path(self.source).name
                raise self.error(key, f"unknown key; in {name} the keys stand at the top level, not below [{header}]")

    def vocabulary(self, key: str, value: Any) -> Vocabulary:
        reader = self.below(key)
        readers: dict[str, Callable[[str, Any], Any]] = {
            "synchronizes": reader.dotted_names,
            "reads-device": reader.dotted_names,
            "capture-safe": reader.dotted_names,
            "allows-sync": reader.dotted_names,
            "starts-capture": reader.dotted_names,
            "predicates": reader.flags_by_name,
        }
        return Vocabulary(**reader.fields(self.table(key, value), readers))

    def harness(self, key: str, value: Any) -> tuple[Harness, ...]:
        from capturelint.verifier.harness import read_entry

        if not isinstance(value, list):
            raise self.error(key, f"should be an array of tables, not {_kind(value)}")
        shown = ".".join((*self.prefix, key))
        return tuple(read_entry(entry, self.source, f"{shown}[{index}]") for index, entry in enumerate(value))

    def fields(self, table: Mapping[str, Any], readers: Mapping[str, Callable[[str, Any], Any]]) -> dict[str, Any]:
        for key in table:
            if key not in readers:
                raise self.error(key, f"unknown key{did_you_mean(key, readers)}")
        return {key.replace("-", "_"): readers[key](key, value) for key, value in table.items()}

    def table(self, key: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.error(key, f"should be a table, not {_kind(value)}")
        return value

    def names(self, key: str, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise self.error(key, f"should be a list of strings, not {_kind(value)}")
        for index, item in enumerate(value):
            if not isinstance(item, str):
                raise self.error(f"{key}[{index}]", f"should be a string, not {_kind(item)}")
            if not item.strip():
                raise self.error(f"{key}[{index}]", "should not be empty")
        return tuple(item.strip() for item in value)

    def some_names(self, key: str, value: Any) -> tuple[str, ...]:
        names = self.names(key, value)
        if not names:
            raise self.error(key, "should not be empty; without this key all rules are checked")
        return names

    def dotted_names(self, key: str, value: Any) -> tuple[str, ...]:
        names = self.names(key, value)
        for index, name in enumerate(names):
            self.dotted(f"{key}[{index}]", name)
        return names

    def dotted(self, key: str, name: str) -> None:
        if not all(part.isidentifier() for part in name.split(".")):
            raise self.error(key, f"{name!r} is not a dotted name, such as 'pkg.module.function'")

    def region_patterns(self, key: str, value: Any) -> tuple[str, ...]:
        patterns = self.names(key, value)
        for index, pattern in enumerate(patterns):
            if not re.fullmatch(r"[\w.*]+:[\w.*]+", pattern):
                raise self.error(
                    f"{key}[{index}]", f"{pattern!r} is not a pattern such as 'pkg.module:Class.method' or '**:forward'"
                )
        return patterns

    def flag(self, key: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise self.error(key, f"should be true or false, not {_kind(value)}")
        return value

    def flags_by_name(self, key: str, value: Any) -> dict[str, bool]:
        reader = self.below(key)
        flags = {name: reader.flag(f'"{name}"', flag) for name, flag in self.table(key, value).items()}
        for name in flags:
            reader.dotted(f'"{name}"', name)
        return flags

    def ignores_by_file(self, key: str, value: Any) -> dict[str, tuple[str, ...]]:
        reader = self.below(key)
        return {pattern: reader.names(f'"{pattern}"', names) for pattern, names in self.table(key, value).items()}

    def text(self, key: str, value: Any) -> str:
        if not isinstance(value, str):
            raise self.error(key, f"should be a string, not {_kind(value)}")
        if not value.strip():
            raise self.error(key, "should not be empty")
        return value

    def version(self, key: str, value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(r"\d+(\.\d+)*", value):
            raise self.error(key, "should be a string with a version, such as '2.11'")
        return value

    def count(self, key: str, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.error(key, f"should be a number, not {_kind(value)}")
        if value < 1:
            raise self.error(key, "should be at least 1")
        return value

    def choice(self, kind: type[_E]) -> Callable[[str, Any], _E]:
        values = {member.value: member for member in kind}

        def read(key: str, value: Any) -> _E:
            if not isinstance(value, str):
                raise self.error(key, f"should be a string, not {_kind(value)}")
            if value not in values:
                known = ", ".join(values)
                raise self.error(key, f"{value!r} is none of {known}{did_you_mean(value, values)}")
            return values[value]

        return read


def _kind(value: Any) -> str:
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
