"""The presets of ``rules/presets/``: what an engine's own names mean while a graph records. Data, one file an engine.

A preset is on when the project is, or imports, one of the packages under ``when`` (without ``when``: always), or when
config names it. A user's own preset is a file of the same form, named in config by its path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from capturelint.errors import RulebookError, UsageError
from capturelint.model import Hardware
from capturelint.rulebook.compiled import read_all
from capturelint.rulebook.location import rules_directory

_LISTS = (
    "when",
    "breaks",
    "eager",
    "outside",
    "allows-sync",
    "capture-safe",
    "synchronizes",
    "reads-device",
    "starts-capture",
    "regions",
)
_TABLES = ("predicates", "flags")
_HARDWARE = "hardware"
_KEYS = ("version", "name", "summary", *_LISTS, *_TABLES, _HARDWARE)
_ON_HARDWARE = ("code", "flags", "predicates")


@dataclass(frozen=True)
class OnHardware:
    """``code``: name patterns of modules, classes and functions that only this hardware runs.

    ``flags`` (patterns) and ``predicates`` are true on it, and false where no hardware that names them is used.
    """

    code: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    predicates: tuple[str, ...] = ()


@dataclass(frozen=True)
class Preset:
    """``predicates`` are functions and ``flags`` patterns of host flags, with their value inside a region.

    ``breaks``: decorators of functions that may leave the capture; ``eager``: name patterns of functions and classes
    that only the eager path uses; ``outside``: patterns of functions that no capture contains, such as those that
    replay a graph. ``allows_sync``: context managers whose body is meant to synchronize. ``starts_capture``: context
    managers and wrapper classes that record. ``regions``: patterns as in config, for methods that an
    engine captures by contract.
    """

    name: str
    summary: str
    when: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()
    eager: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    allows_sync: tuple[str, ...] = ()
    capture_safe: tuple[str, ...] = ()
    synchronizes: tuple[str, ...] = ()
    reads_device: tuple[str, ...] = ()
    starts_capture: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    predicates: Mapping[str, bool] = field(default_factory=dict)
    flags: Mapping[str, bool] = field(default_factory=dict)
    hardware: Mapping[Hardware, OnHardware] = field(default_factory=dict)

    @property
    def always(self) -> bool:
        return not self.when


@lru_cache(maxsize=4)
def load_presets(directory: Path | None = None) -> Mapping[str, Preset]:
    """The presets that come with capturelint, by name. Raises RulebookError."""
    folder = (directory or rules_directory()) / "presets"
    found = read_all(sorted(folder.glob("*.yaml")), parse_preset, _preset)
    return {preset.name: preset for preset in found}


def choose(names: Iterable[str], root: Path) -> list[Preset]:
    """The presets that config asks for, by name or as the path of a file. Raises UsageError for an unknown one."""
    known = load_presets()
    chosen: list[Preset] = []
    for name in names:
        if name in known:
            chosen.append(known[name])
        elif name.endswith((".yaml", ".yml")):
            path = root / name
            if not path.is_file():
                raise UsageError(f"preset file {name} does not exist")
            chosen.append(read_preset(path))
        else:
            raise UsageError(f"unknown preset {name!r}; there are {', '.join(sorted(known))}, or give a .yaml file")
    return chosen


def read_preset(path: Path) -> Preset:
    """Reads and checks one preset file. Raises RulebookError that names file and key."""
    return _preset(path, parse_preset(path))


def parse_preset(path: Path) -> dict[str, Any]:
    """What the YAML of one preset file holds."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        said = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise RulebookError(f"{path.name}: {where}{said}") from error
    if not isinstance(data, dict):
        raise RulebookError(f"{path.name}: should be a mapping")
    return data


def _preset(path: Path, data: Mapping[str, Any]) -> Preset:
    unknown = [key for key in data if key not in _KEYS]
    if unknown:
        raise RulebookError(f"{path.name}: {unknown[0]}: unknown key; there are {', '.join(_KEYS)}")
    if data.get("version") != 1:
        raise RulebookError(f"{path.name}: version: should be 1")
    lists = {key.replace("-", "_"): _words(path, key, data.get(key, [])) for key in _LISTS}
    tables = {key: _switches(path, key, data.get(key, {})) for key in _TABLES}
    name, summary = _text(path, "name", data), _text(path, "summary", data)
    hardware = _by_hardware(path, data.get(_HARDWARE, {}))
    return Preset(name, summary, hardware=hardware, **lists, **tables)  # type: ignore[arg-type]


def _text(path: Path, key: str, data: Mapping[str, Any]) -> str:
    value = data.get(key)
    if not isinstance(value, str) or not value:
        raise RulebookError(f"{path.name}: {key}: should be text")
    return value


def _words(path: Path, key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise RulebookError(f"{path.name}: {key}: should be a list of names")
    for name in value:
        if not name.lstrip("!") or any(each.isspace() for each in name) or (name.startswith("!") and key != "eager"):
            raise RulebookError(f"{path.name}: {key}: {name!r} is not a name or a pattern")
    return tuple(value)


def _by_hardware(path: Path, value: object) -> Mapping[Hardware, OnHardware]:
    if not isinstance(value, dict):
        raise RulebookError(f"{path.name}: {_HARDWARE}: should be a table of hardware")
    known = {each.value: each for each in Hardware}
    found = {}
    for name, entry in value.items():
        where = f"{_HARDWARE}.{name}"
        if name not in known:
            raise RulebookError(f"{path.name}: {where}: unknown hardware; there are {', '.join(known)}")
        if not isinstance(entry, dict) or not entry:
            raise RulebookError(f"{path.name}: {where}: should be a table with some of {', '.join(_ON_HARDWARE)}")
        for key in entry:
            if key not in _ON_HARDWARE:
                raise RulebookError(f"{path.name}: {where}.{key}: unknown key; there are {', '.join(_ON_HARDWARE)}")
        lists = {key: _words(path, f"{where}.{key}", words) for key, words in entry.items()}
        for pattern in lists.get("code", ()):
            if pattern != pattern.lower() or "." in pattern:
                text = f"{pattern!r} can match no name: parts of dotted names are compared, in lower case"
                raise RulebookError(f"{path.name}: {where}.code: {text}")
        found[known[name]] = OnHardware(**lists)
    return found


def _switches(path: Path, key: str, value: object) -> Mapping[str, bool]:
    if not isinstance(value, dict):
        raise RulebookError(f"{path.name}: {key}: should be a table of name: true or false")
    for name, switch in value.items():
        if not isinstance(name, str) or not isinstance(switch, bool):
            raise RulebookError(f"{path.name}: {key}.{name}: should be true or false")
    return dict(value)
