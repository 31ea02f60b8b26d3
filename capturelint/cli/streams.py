"""Writing to stdout and stderr, which may be closed, full, or read by nobody."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO

import click

from capturelint.errors import UsageError


def require_stdout() -> None:
    """Raises UsageError when the process was started without a stdout (``>&-``): no report could go anywhere."""
    if sys.stdout is None:
        raise UsageError("cannot write to stdout: it is closed")


def write_stdout(text: str) -> None:
    """Writes and flushes. Raises UsageError when stdout takes nothing, BrokenPipeError when its reader has gone."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _cannot_write(error) from error


def flush_stdout() -> None:
    """Writes out what is buffered still; raises as ``write_stdout`` does."""
    write_stdout("")


def stdout_fault() -> UsageError | None:
    """Why stdout takes nothing, None when it does. For what was written there by others, as click writes its help:
    what could not be written is buffered still, so that to flush it fails once more.
    """
    try:
        flush_stdout()
    except BrokenPipeError:
        return None
    except UsageError as fault:
        return fault
    return None


def write_stderr(message: str) -> None:
    """One line. An error here is nobody's to hear of, and changes nothing about the run."""
    try:
        click.echo(message, err=True)
    except OSError:
        forget(sys.stderr)


def forget(stream: TextIO) -> None:
    """Keeps the interpreter from flushing what ``stream`` cannot take once more when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _cannot_write(error: OSError) -> UsageError:
    return UsageError(f"cannot write to stdout: {error.strerror or error}")
