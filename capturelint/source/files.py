"""Finding the Python files to check: below the given paths, minus what is ignored and excluded."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from capturelint.errors import SourceError, UsageError
from capturelint.source.gitignore import (
    GITIGNORE,
    SUFFIXES,
    IgnoreFile,
    is_ignored,
    parse_ignore_lines,
    read_ignore_file,
)
from capturelint.source.notebooks import SUFFIX, Notebook, read_notebook
from capturelint.source.problems import unreadable
from capturelint.source.roots import repository_top

#: directories that hold no source of the project's own; skipped below a given path, never the given path itself
DEFAULT_EXCLUDES = frozenset(
    {
        ".eggs",
        ".git",
        ".ipynb_checkpoints",
        ".mypy_cache",
        ".nox",
        ".pytest_cache",
        ".ruff_cache",
        ".tox",
        ".venv",
        "__pycache__",
        "build",
        "dist",
        "node_modules",
        "site-packages",
        "venv",
    }
)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file to check: ``path`` is absolute, ``display`` is what reports show (see ``display_path``).

    ``problem`` is set for what is known to be unreadable, and becomes a diagnostic when it is read: a directory that
    cannot be listed, which stands in for the files that it hides.
    """

    path: Path
    display: str
    problem: str | None = None
    #: what the file is to hold, whatever is on disk
    content: bytes | None = None

    @classmethod
    def at(cls, path: Path) -> SourceFile:
        absolute = os.path.abspath(path)
        return cls(Path(absolute), display_path(absolute))

    @property
    def is_notebook(self) -> bool:
        return self.display.endswith(SUFFIX)

    def notebook(self) -> Notebook:
        """The notebook in the file; raises SourceError."""
        return read_notebook(self._bytes(), self.display)

    def read(self) -> bytes:
        """The bytes of the file's Python source; raises SourceError with a one-line message when there are none."""
        return self.notebook().source.encode("utf-8") if self.is_notebook else self._bytes()

    def _bytes(self) -> bytes:
        if self.content is not None:
            return self.content
        if self.problem is not None:
            raise SourceError(self.display, 1, unreadable(self.problem))
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise SourceError(self.display, 1, unreadable(error.strerror or str(error))) from error


def display_path(path: str | os.PathLike[str], cwd: str | None = None) -> str:
    """``path`` relative to the working directory with ``/``; absolute, with ``/``, when it lies outside."""
    absolute = os.path.abspath(path)
    base = os.path.join(os.getcwd() if cwd is None else cwd, "")
    return (absolute[len(base) :] if absolute.startswith(base) else absolute).replace(os.sep, "/")


def find_sources(
    paths: Sequence[Path],
    *,
    root: Path,
    exclude: Sequence[str] = (),
    force_exclude: bool = False,
    respect_gitignore: bool = True,
    present: Collection[Path] = (),
) -> list[SourceFile]:
    """The files to check, each once, sorted by path.

    Directories are walked for ``*.py`` and ``*.ipynb``; symbolic links to directories below them are not followed (as
    git does it). A file that is named in ``paths`` is taken whatever it is called, unless ``force_exclude`` is set and
    it is excluded; .gitignore never counts for such a file, since a file that git tracks may match it. ``exclude``
    holds gitignore patterns relative to ``root``. Files ``present`` are there whatever is on disk. Raises UsageError
    for a path that does not exist or is neither file nor directory (a pipe, a device), and for a pattern that makes no
    sense.
    """
    excluded = _parse_excludes(exclude, root)
    found: dict[str, str | None] = {}
    for path in paths:
        absolute = os.path.abspath(path)
        if Path(absolute) in present or not _is_directory(absolute, path):
            if not (force_exclude and _is_excluded_file(absolute, root, excluded)):
                found[absolute] = None
        elif not (force_exclude and _is_excluded_directory(absolute, root, excluded)):
            stack = _outer_ignore_files(absolute, root) if respect_gitignore else []
            _Walk(excluded, respect_gitignore, found).visit(absolute, stack)
    cwd = os.getcwd()
    names = _without_twins(found, [os.path.abspath(path) for path in paths])
    return [SourceFile(Path(name), display_path(name, cwd), found[name]) for name in names]


#: what a path can be instead of a file or directory
_NO_FILES = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _is_directory(absolute: str, given: Path) -> bool:
    """Whether a path of the user's is a directory; raises UsageError when it is no file either.

    To read a pipe would wait for somebody who writes into it, and a device may have no end.
    """
    try:
        mode = os.stat(absolute).st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise UsageError(f"{given}: no such file or directory") from error
    except OSError as error:
        raise UsageError(f"{given}: {unreadable(error.strerror or str(error))}") from error
    if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
        return stat.S_ISDIR(mode)
    kind = next((name for test, name in _NO_FILES if test(mode)), "something else")
    raise UsageError(f"{given}: not a file or directory but {kind}")


@dataclass(frozen=True, slots=True)
class _Walk:
    excluded: IgnoreFile | None
    respect_gitignore: bool
    found: dict[str, str | None]

    def visit(self, directory: str, stack: list[IgnoreFile]) -> None:
        pending = [(directory, stack)]
        while pending:
            current, ignores = pending.pop()
            try:
                with os.scandir(current) as scan:
                    entries = list(scan)
            except OSError as error:
                self.found[current] = f"the directory cannot be listed: {error.strerror or error}"
                continue
            if self.respect_gitignore:
                ignores = _with_own_ignore_file(current, entries, ignores)
            for entry in entries:
                if _is_real_directory(entry):
                    if entry.name not in DEFAULT_EXCLUDES and not self._skipped(entry, ignores, is_directory=True):
                        pending.append((entry.path, ignores))
                elif _is_python_file(entry) and not self._skipped(entry, ignores, is_directory=False):
                    self.found.setdefault(entry.path, None)

    def _skipped(self, entry: os.DirEntry[str], ignores: list[IgnoreFile], *, is_directory: bool) -> bool:
        if self.excluded is None and not ignores:
            return False
        path = _with_slashes(entry.path)
        if self.excluded is not None and _matches(self.excluded, path, is_directory=is_directory):
            return True
        return is_ignored(path, ignores, is_directory=is_directory)


def _is_real_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _is_python_file(entry: os.DirEntry[str]) -> bool:
    """Leaves out pipes, which would hang the run, and links that lead nowhere (editors use them as lock files)."""
    try:
        return entry.name.endswith(SUFFIXES) and entry.is_file()
    except OSError:
        return False


def _with_slashes(path: str) -> str:
    return path if os.sep == "/" else path.replace(os.sep, "/")


def _prefix(directory: str) -> str:
    return _with_slashes(os.path.join(directory, ""))


def _parse_excludes(exclude: Sequence[str], root: Path) -> IgnoreFile | None:
    if not exclude:
        return None
    try:
        # a file that is named on the command line can have any name
        return parse_ignore_lines(_prefix(os.path.abspath(root)), exclude, python_only=False)
    except (ValueError, re.error) as error:
        raise UsageError(f"exclude: not a pattern: {error}") from error


def _matches(patterns: IgnoreFile, path: str, *, is_directory: bool) -> bool:
    return path.startswith(patterns.prefix) and bool(patterns.decide(path, is_directory=is_directory))


def _ancestors(path: str, root: Path) -> Iterator[str]:
    """The directories from below ``root`` down to ``path``; nothing when ``path`` lies outside."""
    top = os.path.abspath(root)
    if not path.startswith(os.path.join(top, "")):
        return
    current = top
    for part in path[len(os.path.join(top, "")) :].split(os.sep):
        current = os.path.join(current, part)
        yield current


def _is_excluded_directory(directory: str, root: Path, excluded: IgnoreFile | None) -> bool:
    return any(
        os.path.basename(part) in DEFAULT_EXCLUDES
        or (excluded is not None and _matches(excluded, _with_slashes(part), is_directory=True))
        for part in _ancestors(directory, root)
    )


def _is_excluded_file(file: str, root: Path, excluded: IgnoreFile | None) -> bool:
    if _is_excluded_directory(os.path.dirname(file), root, excluded):
        return True
    return excluded is not None and _matches(excluded, _with_slashes(file), is_directory=False)


def _with_own_ignore_file(directory: str, entries: list[os.DirEntry[str]], stack: list[IgnoreFile]) -> list[IgnoreFile]:
    if not any(entry.name == GITIGNORE for entry in entries):
        return stack
    own = read_ignore_file(Path(directory, GITIGNORE), _prefix(directory))
    return [*stack, own] if own is not None else stack


def _outer_ignore_files(directory: str, root: Path) -> list[IgnoreFile]:
    """The ignore files above ``directory``, from the repository's top (or ``root``) downwards.

    None of them counts when they ignore the directory itself: whoever names it wants what is in it.
    """
    top = repository_top(directory) or os.path.abspath(root)
    stack: list[IgnoreFile] = []
    info = read_ignore_file(Path(top, ".git", "info", "exclude"), _prefix(top))
    if info is not None:
        stack.append(info)
    current = top
    for part in _ancestors(directory, Path(top)):
        own = read_ignore_file(Path(current, GITIGNORE), _prefix(current))
        if own is not None:
            stack.append(own)
        if is_ignored(_with_slashes(part), stack, is_directory=True):
            return []
        current = part
    return stack


def _without_twins(found: dict[str, str | None], given: Sequence[str]) -> list[str]:
    """Sorted; of a file that links lead to by several names the real one stays, or else the first.

    Without a link among the files and the given paths there are none, and nothing is asked of the file system.
    """
    names = sorted(found)
    linked = any(os.path.realpath(path) != path for path in given) or any(os.path.islink(name) for name in names)
    if not linked:
        return names
    chosen: dict[str, str] = {}
    for name in names:
        real = os.path.realpath(name)
        if name == real or real not in chosen:
            chosen[real] = name
    return sorted(chosen.values())
