"""Where in a configuration file each key stands: TOML readers give values without their lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from capturelint.config.load import toml_document

#: what a line begins with that may set a key; a key may be quoted and dotted
_ASSIGNMENT = re.compile(r"""\s*((?:[\w-]+|"[^"\n]*"|'[^'\n]*')(?:\s*\.\s*(?:[\w-]+|"[^"\n]*"|'[^'\n]*'))*)\s*=""")
_HEADER = re.compile(r"\s*\[\[?")
_PROBE = "capturelint-probe"

Path = tuple["str | int", ...]


def key_lines(text: str) -> dict[Path, int]:
    """The line of each key of a valid TOML document, by the path to it: names, and numbers in arrays of tables.

    The text before a line that looks like an assignment tells whether it is one: where it is a document by itself, the
    line begins a statement, and where a key that is put there ends up is where the line's own key belongs.
    """
    found: dict[Path, int] = {}
    lines = text.splitlines(keepends=True)
    for index, line in enumerate(lines):
        header, assignment = _HEADER.match(line), _ASSIGNMENT.match(line)
        if header is None and assignment is None:
            continue
        if toml_document("".join(lines[:index])) is None:
            continue  # inside a string or a list
        before = "".join(lines[: index + 1]) if header is not None else "".join(lines[:index])
        key = "" if assignment is None or header is not None else assignment.group(1)
        probed = toml_document(f"{before}\n{key}{'.' if key else ''}{_PROBE} = 0\n")
        path = None if probed is None else _probe(probed)
        if path:
            found.setdefault(path, index + 1)
            if isinstance(path[-1], int):  # an array of tables stands where its first one does
                found.setdefault(path[:-1], index + 1)
    return found


def line_of(lines: dict[Path, int], path: Path) -> int | None:
    """The line of a key, or of what it stands in: an inline table has all its keys on one."""
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return None


def _probe(document: dict[str, Any]) -> Path | None:
    return next((path[:-1] for path in _paths(document) if path[-1] == _PROBE), None)


def _paths(value: Any) -> Iterator[Path]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (key,)
        yield from ((key, *rest) for rest in _paths(item))
