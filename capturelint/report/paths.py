"""Paths as services that read reports want them: relative to the repository's top, not to the working directory."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from capturelint.model import Diagnostic, Finding, Frame, RegionRef, Related


def relative_to_base(path: str, base: Path | None) -> str | None:
    """``path`` (as reports show it) from ``base``, with ``/``; None for one that lies outside.

    Without ``base`` that is the working directory, from which paths in reports start.
    """
    if base is None:
        return None if Path(path).is_absolute() else path
    absolute = Path.cwd() / path
    return absolute.relative_to(base).as_posix() if absolute.is_relative_to(base) else None


def shown_from_base(path: str, base: Path | None) -> str:
    """The same, and ``path`` itself where it lies outside."""
    return relative_to_base(path, base) or path


def as_uri(path: str) -> str:
    """A path's text as a URI reference: names can hold any bytes."""
    text = quote(os.fsencode(path), safe="/")
    first = text.partition("/")[0]
    return f"./{text}" if ":" in first else text


def directory_uri(directory: Path) -> str:
    return "file://" + quote(os.fsencode(directory.as_posix().rstrip("/") + "/"), safe="/")


def within_cell(thing: Diagnostic | Finding | Frame | RegionRef | Related) -> str:
    """What a message begins with where a format has lines but no cells, and these lines count in a notebook's cell."""
    return "" if thing.cell is None else f"cell {thing.cell}: "
