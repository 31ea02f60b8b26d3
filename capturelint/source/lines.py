"""Single source lines by path, for reports."""

from __future__ import annotations

from pathlib import Path

from capturelint.errors import SourceError
from capturelint.source.decoding import decode
from capturelint.source.files import SourceFile


class LineReader:
    """Called with a path as reports show it (relative to the working directory) and a line number from 1.

    Returns the line without its end, or None when there is no such file or line. Each file is read once.
    """

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}

    def __call__(self, path: str, line: int) -> str | None:
        if path not in self._lines:
            self._lines[path] = self._read(path)
        lines = self._lines[path]
        return lines[line - 1] if 1 <= line <= len(lines) else None

    @staticmethod
    def _read(path: str) -> list[str]:
        source = SourceFile.at(Path(path))
        try:
            return decode(source.read(), source.display).split("\n")
        except SourceError:
            return []
