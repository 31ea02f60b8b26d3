"""The one place where errors become messages and exit statuses."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import click

from capturelint.errors import CaptureLintError
from capturelint.report.outcome import WENT_WRONG

DEBUG_VARIABLE = "CAPTURELINT_DEBUG"
#: as shells report a process that SIGINT, or SIGPIPE, ended
_INTERRUPTED, _BROKEN_PIPE = 130, 141


def guarded(run: Callable[[], Any]) -> int:
    """Calls ``run``, which returns an exit status or None for 0, and never raises: errors end as one line on stderr.

    The output is flushed here, since a reader that has gone away may only show then.
    """
    try:
        status = run()
        sys.stdout.flush()
    except click.exceptions.Exit as request:
        return request.exit_code
    except (KeyboardInterrupt, click.Abort):
        _say("interrupted")
        return _INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return _BROKEN_PIPE
    except click.ClickException as error:
        _say(f"error: {error.format_message()}")
        return WENT_WRONG
    except CaptureLintError as error:
        _say(f"error: {error}")
        return WENT_WRONG
    except Exception as error:
        _internal_error(error)
        return WENT_WRONG
    return int(status or 0)


def _say(message: str) -> None:
    click.echo(" ".join(message.split()), err=True)


def _internal_error(error: Exception) -> None:
    if os.environ.get(DEBUG_VARIABLE) == "1":
        traceback.print_exception(error)
    _say(
        f"internal error: {type(error).__name__}: {error}; this is a bug in capturelint: please report it"
        f" with the traceback that {DEBUG_VARIABLE}=1 shows"
    )


def _forget_stdout() -> None:
    """Keeps the interpreter from flushing into the broken pipe once more when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
