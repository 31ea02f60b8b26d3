"""How the verifier gets at a region: its harness, from the configuration, a YAML file or the mark. Imports no torch."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from capturelint.errors import ConfigError, UsageError
from capturelint.suggest import did_you_mean
from capturelint.verifier.specs import parse_value

#: looked for in the project's root
FILE_NAME = "capturelint-harness.yaml"
_REFERENCE = re.compile(r"(?P<module>[\w./-]+):(?P<name>\w+(\.\w+)*)")
_REGION = re.compile(r"(?P<module>[\w./*-]+):(?P<name>[\w.*<>]+)")


@dataclass(frozen=True, slots=True)
class Harness:
    """One entry. ``run`` drives a program that captures and replays by itself; else the region is called.

    ``region`` is ``pkg.mod:Class.method`` or ``path/to/file.py:Class.method``, with ``*``; the other references are
    written the same way, without ``*``. ``inputs`` is a reference to a function of a seed, or specs by parameter.
    """

    region: str
    setup: str | None = None
    inputs: Any = None
    vary: str | None = None
    run: str | None = None
    reference: str | None = None
    #: directories to put first on the import path, relative to the root
    path: tuple[str, ...] = ()
    time_limit: float | None = None
    source: str = ""

    def matches(self, path: str, name: str) -> bool:
        """Whether this entry is for the region called ``name`` in the file ``path`` (relative, with ``/``)."""
        module, _, pattern = self.region.partition(":")
        if not (fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name.split(".<locals>")[0], pattern)):
            return False
        if module in ("*", "**"):
            return True
        if module.endswith(".py"):
            return fnmatch.fnmatchcase(path, module) or path.endswith("/" + module)
        dotted = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        return dotted == module or dotted.endswith("." + module) or fnmatch.fnmatchcase(dotted, module)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> Harness:
        return Harness(**{**data, "path": tuple(data["path"])})


_KEYS = ("region", "setup", "inputs", "vary", "run", "reference", "path", "time-limit")


def read_entry(entry: Any, source: str, key: str) -> Harness:
    """Checks one entry. Raises ConfigError, which names the file and the key."""
    if not isinstance(entry, Mapping):
        raise ConfigError(source, key, "should be a table with the key 'region'")
    for name in entry:
        if name not in _KEYS:
            raise ConfigError(source, f"{key}.{name}", f"unknown key{did_you_mean(str(name), _KEYS)}")
    region = entry.get("region")
    if not isinstance(region, str) or not _REGION.fullmatch(region):
        raise ConfigError(source, f"{key}.region", f"{region!r} is not a region such as 'pkg.module:Class.method'")
    for name in ("setup", "vary", "run", "reference"):
        value = entry.get(name)
        if value is not None and (not isinstance(value, str) or not _REFERENCE.fullmatch(value)):
            raise ConfigError(source, f"{key}.{name}", f"{value!r} is not a reference such as 'tests.harness:make'")
    paths = entry.get("path", [])
    paths = [paths] if isinstance(paths, str) else paths
    if not isinstance(paths, list) or not all(isinstance(item, str) for item in paths):
        raise ConfigError(source, f"{key}.path", "should be a directory, or a list of them")
    limit = entry.get("time-limit")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, (int, float)) or limit <= 0):
        raise ConfigError(source, f"{key}.time-limit", "should be a number of seconds")
    return Harness(
        region,
        entry.get("setup"),
        _inputs(entry.get("inputs"), source, f"{key}.inputs"),
        entry.get("vary"),
        entry.get("run"),
        entry.get("reference"),
        tuple(paths),
        float(limit) if limit is not None else None,
        source,
    )


def entry_schema() -> dict[str, Any]:
    """The JSON Schema of what ``read_entry`` takes; specs in ``inputs`` are checked there alone."""
    reference = {"type": "string", "pattern": f"^{_unnamed(_REFERENCE)}$"}
    about = {
        "setup": "Makes what the region is called with.",
        "vary": "Changes the inputs between replays.",
        "run": "Drives a program that captures and replays by itself.",
        "reference": "Gives the right result.",
    }
    directory = {"type": "string"}
    return {
        "type": "object",
        "required": ["region"],
        "additionalProperties": False,
        "properties": {
            "region": {
                "description": "The region: pkg.module:Class.method or path/to/file.py:Class.method, with *.",
                "type": "string",
                "pattern": f"^{_unnamed(_REGION)}$",
            },
            **{key: {"description": text, **reference} for key, text in about.items()},
            "inputs": {
                "description": "A function of a seed, or specs such as float16[8, 4096], in order or by parameter.",
                "type": ["string", "object", "array"],
            },
            "path": {
                "description": "Directories to put first on the import path.",
                "anyOf": [directory, {"type": "array", "items": directory}],
            },
            "time-limit": {"description": "In seconds.", "type": "number", "exclusiveMinimum": 0},
        },
    }


def _unnamed(pattern: re.Pattern[str]) -> str:
    """Named groups are Python's own."""
    return re.sub(r"\?P<\w+>", "", pattern.pattern)


def _inputs(value: Any, source: str, key: str) -> Any:
    """A reference stays a string; specs are checked now, long before a GPU is asked."""
    if value is None or (isinstance(value, str) and _REFERENCE.fullmatch(value) and "[" not in value):
        return value
    if isinstance(value, str):
        value = [value]
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        raise ConfigError(source, key, "should be a reference, specs by parameter, or a list of specs")
    for name, item in items:
        if isinstance(item, str):
            try:
                parse_value(item)
            except UsageError as error:
                raise ConfigError(source, f"{key}.{name}", str(error)) from error
    return dict(value) if isinstance(value, Mapping) else list(value)


def read_file(path: Path, shown: str) -> tuple[Harness, ...]:
    """The entries of a YAML file: a list below ``harness``. Raises ConfigError."""
    import yaml

    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(shown, "", f"cannot be read as YAML: {' '.join(str(error).split())}") from error
    entries = document.get("harness") if isinstance(document, dict) else document
    if entries is None:
        return ()
    if not isinstance(entries, list):
        raise ConfigError(shown, "harness", "should be a list of entries")
    return tuple(read_entry(entry, shown, f"harness[{index}]") for index, entry in enumerate(entries))
