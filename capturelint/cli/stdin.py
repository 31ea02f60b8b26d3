"""Source from stdin, as editors hand over what is not saved yet."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import click

from capturelint.cli.options import GivenPath
from capturelint.errors import UsageError
from capturelint.source.files import SourceFile

DASH = Path("-")
#: what reports call it when nobody says what it is
_NAMELESS = Path("<stdin>")

stdin_filename_option = click.option(
    "--stdin-filename",
    metavar="FILE",
    type=GivenPath(),
    help="With - as the path: check what comes from stdin in the place of FILE, which need not be there.",
)


def given_paths(paths: tuple[Path, ...], stdin_filename: Path | None) -> tuple[tuple[Path, ...], Mapping[Path, bytes]]:
    """The paths to check, and what comes from stdin by the path that it stands for. Raises UsageError."""
    if DASH not in paths and (stdin_filename is None or paths != (Path(),)):
        if stdin_filename is not None:
            raise UsageError("--stdin-filename goes with - alone: name no other path")
        return paths, {}
    if DASH in paths and len(paths) > 1:
        raise UsageError("- stands alone: name no other path beside it (./- is a file of that name)")
    path = stdin_filename or _NAMELESS
    if path.is_dir():
        raise UsageError(f"--stdin-filename: {path} is a directory")
    return (path,), {SourceFile.at(path).path: _read()}


def _read() -> bytes:
    if sys.stdin is None:
        raise UsageError("cannot read stdin: it is closed")
    try:
        return sys.stdin.buffer.read()
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read stdin: {getattr(error, 'strerror', None) or error}") from error
