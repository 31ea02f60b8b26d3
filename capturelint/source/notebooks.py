"""Jupyter notebooks as Python source: the code cells one after the other, without what only IPython reads."""

from __future__ import annotations

import ast
import json
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from capturelint.errors import SourceError
from capturelint.source.problems import unreadable

SUFFIX = ".ipynb"
#: stands before the first cell: a coding line that a cell begins with says nothing, since JSON is UTF-8
_FIRST_LINE = "pass"
#: magics whose cell is Python still; any other makes it something else
_PYTHON_MAGICS = frozenset(("capture", "debug", "prun", "pypy", "python", "python3", "time", "timeit"))
_CELL_MAGIC = re.compile(r"\s*%%(\w+)")
_LINE_MAGIC = re.compile(r"(?P<indent>\s*)(?:[%!?]|[%\w.*\[\]]+\?{1,2}\s*;?\s*$)")
_MAGIC_VALUE = re.compile(r"(?P<target>[\w\s.,*\[\]'\"]+=\s*)[%!](?!=)")
_INTERESTING = re.compile(r"\"{3}|'{3}|[\"'#\[({\])}]")


@dataclass(frozen=True, slots=True)
class Notebook:
    """``source`` holds the code cells; ``starts`` are the lines where they begin in it, ``numbers`` count all cells."""

    source: str
    starts: tuple[int, ...]
    numbers: tuple[int, ...]

    def place(self, line: int) -> tuple[int, int]:
        """The cell that holds a line of ``source``, from 1, and the line in it."""
        index = max(bisect_right(self.starts, line) - 1, 0)
        return (self.numbers[index], line - self.starts[index] + 1) if self.starts else (1, line)

    def line_of(self, cell: int, line: int) -> int | None:
        """The line of ``source`` that is a line of a cell."""
        return self.starts[self.numbers.index(cell)] + line - 1 if cell in self.numbers else None


def read_notebook(data: bytes, display: str) -> Notebook:
    """The notebook in a file's bytes. Raises SourceError for what is none; one in another language has no source."""
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise SourceError(display, 1, unreadable("not a notebook: it is not UTF-8")) from error
    except json.JSONDecodeError as error:
        raise SourceError(display, error.lineno, unreadable(f"not a notebook: no valid JSON ({error.msg})")) from error
    except RecursionError as error:
        raise SourceError(display, 1, unreadable("not a notebook: nested too deeply")) from error
    lines = [_FIRST_LINE]
    starts, numbers = [], []
    for number, cell in enumerate(_cells(document, display), 1):
        text = _code(cell, number, display)
        if text is not None and _is_python(document):
            starts.append(len(lines) + 1)
            numbers.append(number)
            lines.extend(_as_python(text))
    source = "\n".join(lines) + "\n" if starts else ""
    return Notebook(source, tuple(starts), tuple(numbers))


def _cells(document: Any, display: str) -> list[Any]:
    cells = document.get("cells") if isinstance(document, dict) else None
    if isinstance(cells, list):
        return cells
    old = isinstance(document, dict) and "worksheets" in document
    problem = (
        "of format 3; `jupyter nbconvert --to notebook` makes it a newer one" if old else "it has no list of cells"
    )
    raise SourceError(display, 1, unreadable(f"a notebook {problem}" if old else f"not a notebook: {problem}"))


def _code(cell: Any, number: int, display: str) -> str | None:
    """A code cell's text with its lines ended by ``\\n``; None for a cell of another type."""
    if not isinstance(cell, dict) or not isinstance(cell.get("cell_type"), str):
        raise SourceError(display, 1, unreadable(f"not a notebook: cell {number} has no type"))
    if cell["cell_type"] != "code":
        return None
    text = cell.get("source")
    if isinstance(text, list) and all(isinstance(part, str) for part in text):
        text = "".join(text)
    if not isinstance(text, str):
        raise SourceError(display, 1, unreadable(f"not a notebook: the source of cell {number} is no text"))
    return text.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "replace").decode("utf-8")


def _is_python(document: Any) -> bool:
    metadata = document.get("metadata")
    for table, key in (("language_info", "name"), ("kernelspec", "language")):
        named = metadata.get(table) if isinstance(metadata, dict) else None
        language = named.get(key) if isinstance(named, dict) else None
        if isinstance(language, str):
            return "python" in language.lower()
    return True


# -- what only IPython reads -----------------------------------------------------------------------------------------


def _as_python(text: str) -> list[str]:
    """A cell's lines; those that are magics hold something else that does nothing, so that lines and columns stay."""
    lines = text.split("\n")
    if _parses(text):
        return lines
    head = next((index for index, line in enumerate(lines) if line.strip()), 0)
    magic = _CELL_MAGIC.match(lines[head])
    if magic is None:
        return list(_without_magics(lines))
    if magic[1] not in _PYTHON_MAGICS:
        return [""] * len(lines)
    return [*lines[:head], "", *_without_magics(lines[head + 1 :])]


def _parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _without_magics(lines: Sequence[str]) -> Iterator[str]:
    logical = _LogicalLine()
    in_magic = False
    for line in lines:
        goes_on = line.endswith("\\")
        if in_magic:
            yield ""
            in_magic = goes_on
        elif logical.is_over and (replaced := _replaced(line)) is not None:
            yield replaced
            in_magic = goes_on
        else:
            logical.add(line)
            yield line


def _replaced(line: str) -> str | None:
    """What to read in place of a line that is a magic; None for any other."""
    match = _LINE_MAGIC.match(line)
    if match is not None:
        return match["indent"] + "pass"
    match = _MAGIC_VALUE.match(line)
    return match["target"] + "None" if match is not None else None


class _LogicalLine:
    """Whether a logical line is over, by its brackets, strings and backslashes: only then can a magic begin."""

    def __init__(self) -> None:
        self._depth = 0
        #: the quotes that the string around the end of the line was opened with
        self._quote: str | None = None
        self._continued = False

    @property
    def is_over(self) -> bool:
        return self._depth == 0 and self._quote is None and not self._continued

    def add(self, line: str) -> None:
        at = 0
        while at < len(line):
            at = self._end_of_string(line, at) if self._quote is not None else self._next(line, at)
        self._continued = line.endswith("\\")
        if self._quote is not None and len(self._quote) == 1 and not self._continued:
            self._quote = None  # not closed on its line: the parser says so

    def _next(self, line: str, at: int) -> int:
        match = _INTERESTING.search(line, at)
        if match is None or match.group() == "#":
            return len(line)
        found = match.group()
        if found[0] in "\"'":
            self._quote = found
        else:
            self._depth = max(self._depth + (1 if found in "[({" else -1), 0)
        return match.end()

    def _end_of_string(self, line: str, at: int) -> int:
        assert self._quote is not None
        while at < len(line):
            if line[at] == "\\":
                at += 2
            elif line.startswith(self._quote, at):
                at += len(self._quote)
                self._quote = None
                return at
            else:
                at += 1
        return at
