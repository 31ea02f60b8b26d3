"""What git ignores, for a walk that visits each directory before what is in it, and takes Python files and notebooks.

Such a walk never enters an ignored directory, so an entry is judged by itself alone, as git does it. pathspec judges
whole paths (``x/`` ignores ``x/a.py``), which differs where a directory is taken back in: ``*``, ``!*/``, ``!keep.py``.
Two pattern lists make it agree. The one for files leaves out what matches directories only, and what can't match a
name of these (usually all but one or two: this is what makes it fast). In the one for directories ``x/**`` means
what is in ``x``, not ``x`` itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathspec import PathSpec

GITIGNORE = ".gitignore"
#: what the walk takes
SUFFIXES = (".py", ".ipynb")
_LITERAL_TAIL = re.compile(r"[^*?\]/\\]*$")


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """The patterns of one ignore file. ``prefix`` is the directory that they count from, with ``/`` at its end."""

    prefix: str
    files: PathSpec[Any]
    directories: PathSpec[Any]

    def decide(self, path: str, *, is_directory: bool) -> bool | None:
        """Whether ``path`` (absolute, with ``/``) is ignored; None when no pattern matches it."""
        relative = path[len(self.prefix) :]
        if is_directory:
            return self.directories.check_file(relative + "/").include
        return self.files.check_file(relative).include if len(self.files) else None


def _can_match_python_file(pattern: str) -> bool:
    tail = _LITERAL_TAIL.search(pattern)
    literal = tail.group() if tail else ""
    return any(literal.endswith(suffix) or suffix.endswith(literal) for suffix in SUFFIXES)


def parse_ignore_lines(prefix: str, lines: Sequence[str], *, python_only: bool = True) -> IgnoreFile:
    """Raises ValueError or re.error for a pattern that is none.

    ``python_only`` says that only Python files and notebooks will be asked about.
    """
    from pathspec import PathSpec

    patterns = [line.rstrip("\r") for line in lines if line.strip() and not line.startswith("#")]
    # Git drops trailing spaces, and so does pathspec; the tests on a pattern's end must agree with them.
    ends = [(pattern, pattern.rstrip(" ")) for pattern in patterns if pattern.strip(" !/")]
    files = [
        pattern for pattern, end in ends if not end.endswith("/") and (not python_only or _can_match_python_file(end))
    ]
    directories = [end[:-1] if end.endswith("/**") else pattern for pattern, end in ends]
    return IgnoreFile(prefix, PathSpec.from_lines("gitignore", files), PathSpec.from_lines("gitignore", directories))


def _is_pattern(line: str) -> bool:
    try:
        parse_ignore_lines("", [line])
    except (ValueError, re.error):
        return False
    return True


def read_ignore_file(file: Path, directory: str) -> IgnoreFile | None:
    """The patterns of ``file``, counted from ``directory`` (with ``/`` at its end); None when it can't be read.

    A pipe of that name would hang the run.
    """
    if not file.is_file():
        return None
    try:
        lines = file.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
    except OSError:
        return None
    try:
        return parse_ignore_lines(directory, lines)
    except (ValueError, re.error):  # git skips a pattern that makes no sense, and so does this
        return parse_ignore_lines(directory, [line for line in lines if _is_pattern(line)])


def is_ignored(path: str, stack: Sequence[IgnoreFile], *, is_directory: bool) -> bool:
    """Asks the ignore files from the innermost to the outermost; the first that knows the path decides."""
    for ignore_file in reversed(stack):
        decision = ignore_file.decide(path, is_directory=is_directory)
        if decision is not None:
            return decision
    return False
