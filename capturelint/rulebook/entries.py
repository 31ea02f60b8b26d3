"""Reading one rule file: its two parts, its top-level keys, and typed access to their values.

Every error is a RulebookError that names the file and the key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from capturelint.errors import RulebookError

_TOP_KEY = re.compile(r"^([A-Za-z][\w-]*):", re.MULTILINE)

_T = TypeVar("_T")


def split(path: Path, key: str) -> tuple[str, str]:
    """The file's text before the top-level ``key``, and from it on with its line numbers kept."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RulebookError(f"{path}: cannot be read: {error}") from None
    cut = text.find(f"\n{key}:") + 1
    if not cut:
        raise RulebookError(f"{path}: {key}: missing")
    return text[:cut], "\n" * text.count("\n", 0, cut) + text[cut:]


def parse(path: Path, text: str, keys: tuple[str, ...], optional: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Parses one part of a file whose top-level keys must be ``keys``, each once and in that order.

    Those of them that are ``optional`` may be left out.
    """
    import yaml

    found = _TOP_KEY.findall(text)
    for key in found:
        if key not in keys:
            raise RulebookError(f"{path}: {key}: unknown key, or one that belongs in the other part of the file")
        if found.count(key) > 1:
            raise RulebookError(f"{path}: {key}: given twice")
    keys = tuple(key for key in keys if key in found or key not in optional)
    for key in keys:
        if key not in found:
            raise RulebookError(f"{path}: {key}: missing")
    for key, wanted in zip(found, keys, strict=True):
        if key != wanted:
            raise RulebookError(f"{path}: {key}: out of order, {wanted} comes first")
    try:
        data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" line {mark.line + 1}:" if mark is not None else ""
        raise RulebookError(f"{path}:{where} not valid YAML: {getattr(error, 'problem', None) or error}") from None
    if not isinstance(data, dict) or tuple(data) != keys:
        raise RulebookError(f"{path}: must be a mapping with plain, unquoted keys")
    return data


@dataclass(frozen=True)
class Entries:
    """Typed access to the entries of one file; every error names the file and the key."""

    path: Path
    data: Mapping[str, Any]

    def error(self, key: str, message: str) -> RulebookError:
        return RulebookError(f"{self.path}: {key}: {message}")

    def text(self, key: str, pattern: re.Pattern[str] | None = None, otherwise: str = "") -> str:
        value = self.checked_text(key, self.data[key])
        if pattern is not None and not pattern.match(value):
            raise self.error(key, f"{otherwise}, not {value!r}")
        return value

    def choice(self, key: str, allowed: tuple[str, ...]) -> str:
        value = self.text(key)
        if value not in allowed:
            raise self.error(key, f"must be one of {', '.join(allowed)}, not {value!r}")
        return value

    def choices(self, key: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
        values = self.several(key, self.checked_text, empty=True)
        for value in values:
            if value not in allowed:
                raise self.error(key, f"must be among {', '.join(allowed)}, not {value!r}")
        return values

    def urls(self, key: str) -> tuple[str, ...]:
        values = self.several(key, self.checked_text)
        for value in values:
            if not value.startswith("https://") or " " in value:
                raise self.error(key, f"must be https addresses, not {value!r}")
        return values

    def several(self, key: str, read: Callable[[str, object], _T], empty: bool = False) -> tuple[_T, ...]:
        value = self.data[key]
        if not isinstance(value, list) or not (value or empty):
            raise self.error(key, "must be a list" if empty else "must be a list of at least one")
        return tuple(read(f"{key}[{number}]", entry) for number, entry in enumerate(value))

    def checked_text(self, key: str, value: object) -> str:
        if not isinstance(value, str) or not value.strip():
            raise self.error(key, "must be text that is not empty")
        return value.strip()
