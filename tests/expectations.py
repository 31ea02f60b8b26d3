"""Reads the labels of the programs under ``fixtures/programs`` and compares them with what ``check`` reports.

A label is a comment on the line where the finding starts:

``# expect: CG101``            the rule reports this line; two codes (``CG101, CG101``) mean two findings
``# todo: CG503``              a real hazard that is not found yet; it must be promoted once it is
``# expect: CG101 -- why``     anything after the codes and ``--`` is for the reader
"""

from __future__ import annotations

import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
PROGRAMS = FIXTURES / "programs"

_LABEL = re.compile(r"#\s*(?P<kind>expect|todo):(?P<rest>[^#]*)")
_CODES = re.compile(r"CG\d{3}(?:\s*,\s*CG\d{3})*")


class LabelError(ValueError):
    """A comment that looks like a label and does not read as one."""


@dataclass(frozen=True, order=True, slots=True)
class Mark:
    """One rule on one line; ``path`` is relative to the program, with ``/``."""

    path: str
    line: int
    rule: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.rule}"


@dataclass(frozen=True, slots=True)
class Expectations:
    expected: Counter[Mark] = field(default_factory=Counter)
    todo: Counter[Mark] = field(default_factory=Counter)

    def __or__(self, other: Expectations) -> Expectations:
        return Expectations(self.expected + other.expected, self.todo + other.todo)


def parse_labels(source: str, path: str) -> Expectations:
    """The labels in ``source``. Raises LabelError for a label without codes, or with anything else after them."""
    expected: Counter[Mark] = Counter()
    todo: Counter[Mark] = Counter()
    for line, kind, rest in _labels(source):
        codes, _, _ = rest.partition("--")
        if not _CODES.fullmatch(codes.strip()):
            raise LabelError(f"{path}:{line}: not a list of codes: {codes.strip()!r}")
        marks = expected if kind == "expect" else todo
        marks.update(Mark(path, line, code) for code in re.findall(r"CG\d{3}", codes))
    return Expectations(expected, todo)


def _labels(source: str) -> Iterator[tuple[int, str, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            for match in _LABEL.finditer(token.string):
                yield token.start[0], match["kind"], match["rest"]


def python_files(program: Path) -> list[Path]:
    return [program] if program.is_file() else sorted(program.rglob("*.py"))


def root_of(program: Path) -> Path:
    """The directory that a run on ``program`` has as its root."""
    return program if program.is_dir() else program.parent


def read_labels(program: Path) -> Expectations:
    found = Expectations()
    for file in python_files(program):
        found |= parse_labels(file.read_text(encoding="utf-8"), file.relative_to(root_of(program)).as_posix())
    return found


def programs() -> list[Path]:
    """Every program: a file that stands alone, or a directory (those of tools, such as ``.ruff_cache``, are none)."""
    return sorted(
        p
        for p in PROGRAMS.iterdir()
        if p.suffix == ".py" or (p.is_dir() and p.name.isidentifier() and not p.name.startswith("_"))
    )


def differences(labels: Expectations, found: Iterable[Mark], root: Path) -> list[str]:
    """What is wrong, a line or two for each mark, in the order of the files; empty when all is as labelled."""
    reported = Counter(found)
    extra = reported - labels.expected
    promoted = extra & labels.todo
    problems = [(mark, "missing") for mark in (labels.expected - reported).elements()]
    problems += [(mark, "found, though labelled todo: make it expect") for mark in promoted.elements()]
    problems += [(mark, "not expected") for mark in (extra - promoted).elements()]
    return [f"{mark}: {what}\n    {_line(root, mark)}" for mark, what in sorted(problems)]


def _line(root: Path, mark: Mark) -> str:
    file = root / mark.path
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return lines[mark.line - 1].strip() if 0 < mark.line <= len(lines) else "(no such line)"
