"""Single source lines by path, for reports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from capturelint.errors import SourceError
from capturelint.source.decoding import decode
from capturelint.source.files import SourceFile
from capturelint.source.notebooks import Notebook

_CELL = re.compile(r"(?P<path>.*\.ipynb):cell (?P<number>\d+)", re.DOTALL)


class LineReader:
    """Called with a path as reports show it (relative to the working directory), with the cell for one in a notebook
    (see ``model.within``), and a line number from 1.

    Returns the line without its end, or None when there is no such file or line. Each file is read once. ``contents``
    is what files hold in place of what is on disk, by absolute path.
    """

    def __init__(self, contents: Mapping[Path, bytes] | None = None) -> None:
        self._contents = contents or {}
        self._notebooks: dict[str, Notebook | None] = {}
        self._lines: dict[str, list[str]] = {}

    def __call__(self, path: str, line: int) -> str | None:
        cell = _CELL.fullmatch(path)
        if cell is not None:
            return self._in_cell(cell["path"], line, int(cell["number"]))
        if path not in self._lines:
            self._lines[path] = self._read(path)
        lines = self._lines[path]
        return lines[line - 1] if 1 <= line <= len(lines) else None

    def _in_cell(self, path: str, line: int, cell: int) -> str | None:
        if path not in self._notebooks:
            self._notebooks[path] = self._notebook(path)
        notebook = self._notebooks[path]
        found = notebook.line_of(cell, line) if notebook is not None else None
        return self(path, found) if found is not None else None

    def _notebook(self, path: str) -> Notebook | None:
        try:
            return self._file(path).notebook()
        except SourceError:
            return None

    def _read(self, path: str) -> list[str]:
        source = self._file(path)
        try:
            return decode(source.read(), source.display).split("\n")
        except SourceError:
            return []

    def _file(self, path: str) -> SourceFile:
        file = SourceFile.at(Path(path))
        return replace(file, content=self._contents.get(file.path))
