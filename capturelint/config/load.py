"""Finding and reading the configuration."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from capturelint.config.keys import CONFIG
from capturelint.config.model import Config
from capturelint.config.values import Where
from capturelint.errors import ConfigError, UsageError
from capturelint.source.files import display_path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PYPROJECT, OWN_FILE = "pyproject.toml", "capturelint.toml"
_TABLE = ("tool", "capturelint")


def load_config(root: Path, explicit: Path | None = None) -> Config:
    """The configuration of the project at ``root``, or that of the file ``explicit``; defaults where there is none.

    Looked for in ``root`` and, where that lies inside a git repository, in the directories above it up to the
    repository's top. In one directory capturelint.toml comes before pyproject.toml, which counts only with a
    ``[tool.capturelint]`` table. Raises ConfigError.
    """
    if explicit is not None:
        return _from_file(explicit, _read_toml(explicit), _prefix_of(explicit))
    for directory in _search_path(root):
        own, pyproject = directory / OWN_FILE, directory / PYPROJECT
        if own.is_file():
            return replace(_from_file(own, _read_toml(own), ()), notes=_notes_about(pyproject))
        if pyproject.is_file() and _has_table(table := _read_toml(pyproject)):
            return _from_file(pyproject, table, _TABLE)
    return Config()


def _from_file(file: Path, document: Mapping[str, Any], prefix: tuple[str, ...]) -> Config:
    return replace(parse_config(document, display_path(file), prefix), file=file.absolute(), table=prefix)


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
    for index, override in enumerate(config.overrides):
        lists |= {f"overrides[{index}].select": override.select, f"overrides[{index}].ignore": override.ignore}
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
    where = Where(source, prefix)
    if not prefix:
        _refuse_outer_table(table, where)
    config: Config = CONFIG.read(where, table)
    return replace(config, source=source)


def _search_path(root: Path) -> list[Path]:
    above = [root, *root.parents]
    tops = [index for index, directory in enumerate(above) if (directory / ".git").exists()]
    return above[: tops[0] + 1] if tops else [root]


def _prefix_of(file: Path) -> tuple[str, ...]:
    return _TABLE if file.name == PYPROJECT else ()


def _has_table(document: Mapping[str, Any]) -> bool:
    tool = document.get("tool")
    return isinstance(tool, dict) and "capturelint" in tool


def toml_document(text: str) -> dict[str, Any] | None:
    """What ``text`` holds, None where it is no TOML."""
    try:
        document: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    return document


def _read_toml(file: Path) -> dict[str, Any]:
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


def _refuse_outer_table(table: Mapping[str, Any], where: Where) -> None:
    """The header of pyproject.toml in a file of capturelint's own is a likely slip, and gets its own message."""
    for key in ("tool", _TABLE[-1]):
        if isinstance(table.get(key), dict):
            header = ".".join(_TABLE) if key == "tool" else key
            message = f"unknown key; in {Path(where.source).name} the keys stand at the top level, not below [{header}]"
            raise where.below(key).error(message)
