"""Which lines changed since a revision, as git knows it: in commits, staged, and in the working tree."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from capturelint.errors import UsageError

#: cells of a notebook have lines of their own, which a difference does not tell
_WHOLE_FILES = (".ipynb",)
_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPES = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}


@dataclass(frozen=True)
class Changes:
    """Lines that are new or different, by absolute path. What git does not track is new as a whole."""

    lines: dict[str, tuple[range, ...]]
    tracked: frozenset[str]

    def touch(self, path: str, first: int, last: int) -> bool:
        """Whether a line from ``first`` to ``last`` changed; ``path`` is one that reports show."""
        place = _absolute(path)
        if place not in self.tracked:
            return True
        ranges = self.lines.get(place, ())
        if place.endswith(_WHOLE_FILES):
            return bool(ranges)
        return any(each.start <= last and first < each.stop for each in ranges)

    def touch_file(self, path: str) -> bool:
        place = _absolute(path)
        return place not in self.tracked or place in self.lines


def changes_since(revision: str, directory: Path) -> Changes:
    """The changes since ``revision`` in the repository that holds ``directory``.

    What counts is where the history of the working tree left that of ``revision``: what others committed there since is
    not changed here. Renamed files are compared with what they were. Raises UsageError.
    """
    git = _Git(directory)
    top = _top(git, directory)
    base = _merge_base(git, _commit(git, revision), revision)
    difference = git.run(
        *("diff", "--unified=0", "--text", "--find-renames", "--no-color", "--no-ext-diff", "--no-textconv"),
        *("--ignore-submodules=all", "--src-prefix=a/", "--dst-prefix=b/", "--diff-filter=d", base, "--", top),
    )
    tracked = git.run("ls-files", "-z", "--full-name", "--", top).split(b"\0")
    return Changes(
        {f"{top}/{path}": ranges for path, ranges in _read(difference)},
        frozenset(f"{top}/{os.fsdecode(name)}" for name in tracked if name),
    )


@dataclass(frozen=True)
class _Git:
    directory: Path

    def ask(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        settings = ("-c", "core.quotePath=false", "-c", "diff.relative=false", "-c", "diff.submodule=short")
        command = ["git", *settings, *arguments]
        try:
            return subprocess.run(
                command,
                cwd=self.directory,
                env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
        except FileNotFoundError as error:
            raise UsageError("--diff-base needs git, which is not installed") from error
        except OSError as error:
            raise UsageError(f"--diff-base: git cannot be run: {error.strerror or error}") from error

    def run(self, *arguments: str) -> bytes:
        done = self.ask(*arguments)
        if done.returncode != 0:
            raise UsageError(f"--diff-base: git {arguments[0]} failed: {_said(done)}")
        return done.stdout


def _top(git: _Git, directory: Path) -> str:
    done = git.ask("rev-parse", "--show-toplevel")
    if done.returncode != 0:
        if b"not a git repository" in done.stderr:
            raise UsageError(f"--diff-base: {directory} is in no git repository")
        raise UsageError(f"--diff-base: {_said(done)}")
    return os.path.realpath(os.fsdecode(done.stdout.rstrip(b"\n")))


def _commit(git: _Git, revision: str) -> str:
    done = git.ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if done.returncode == 0:
        return done.stdout.decode().strip()
    hint = _shallow_hint(git) or "; name a commit, a branch or a tag of this repository"
    raise UsageError(f"--diff-base: unknown revision {revision!r}{hint}")


def _merge_base(git: _Git, commit: str, revision: str) -> str:
    done = git.ask("merge-base", commit, "HEAD")
    if done.returncode == 0:
        return done.stdout.decode().split()[0]
    hint = _shallow_hint(git) or ""
    raise UsageError(f"--diff-base: HEAD and {revision!r} have no common commit{hint}")


def _shallow_hint(git: _Git) -> str | None:
    if git.ask("rev-parse", "--is-shallow-repository").stdout.strip() != b"true":
        return None
    return (
        "; this is a shallow clone: get the rest of the history (`git fetch --unshallow`, `fetch-depth: 0` for"
        " actions/checkout, `GIT_DEPTH: 0` for GitLab)"
    )


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[0].removeprefix("fatal: ") if lines else f"exit status {done.returncode}"


def _read(difference: bytes) -> Iterator[tuple[str, tuple[range, ...]]]:
    """Each file with the ranges that a difference without context adds or changes."""
    path: str | None = None
    ranges: list[range] = []
    skip = 0
    for line in difference.split(b"\n"):
        if skip > 0 and not line.startswith(b"\\"):
            skip -= 1
        elif line.startswith(b"diff --git "):
            if path is not None:
                yield path, tuple(ranges)
            path, ranges = None, []
        elif line.startswith(b"+++ "):
            path = os.fsdecode(_unquoted(line[4:].rstrip(b"\t"))).removeprefix("b/")
        elif (hunk := _HUNK.match(line)) is not None:
            removed, start, added = (int(part) if part is not None else 1 for part in hunk.groups())
            skip = removed + added
            ranges.append(range(start, start + added))
    if path is not None:
        yield path, tuple(ranges)


def _unquoted(name: bytes) -> bytes:
    """A name as git writes it in quotes where it holds such characters, without them."""
    if not name.startswith(b'"'):
        return name

    def character(match: re.Match[bytes]) -> bytes:
        escape = match.group(1)
        return bytes([int(escape, 8)]) if escape.isdigit() else _ESCAPES.get(escape, escape)

    return re.sub(rb"\\([0-7]{3}|.)", character, name[1:-1])


def _absolute(path: str) -> str:
    """As git names it: with the directory's real name, and a link as the link that it is."""
    folder, name = os.path.split(path)
    return f"{os.path.realpath(folder)}/{name}"
