"""The one place where errors become messages and exit statuses."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from capturelint.cli.streams import flush_stdout, forget, stdout_fault, write_stderr
from capturelint.errors import CaptureLintError, ConfigError, RulebookError
from capturelint.model import Failure
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
        flush_stdout()
    except click.exceptions.Exit as request:
        return request.exit_code
    except (KeyboardInterrupt, click.Abort):
        _say("interrupted")
        return _INTERRUPTED
    except BrokenPipeError:
        return reader_gone()
    except click.ClickException as error:
        _say(f"error: {error.format_message()}")
        return WENT_WRONG
    except CaptureLintError as error:
        _went_wrong(error)
        return WENT_WRONG
    except FileNotFoundError as error:
        if _directory_is_gone():
            _say("error: the working directory does not exist any more")
        else:
            _internal_error(error)
        return WENT_WRONG
    except Exception as error:
        fault = stdout_fault() if isinstance(error, OSError) else None
        if fault is not None:
            _went_wrong(fault)
        else:
            _internal_error(error)
        return WENT_WRONG
    return int(status or 0)


def failure_of(error: BaseException) -> Failure | None:
    """What reports for tools say about an error; None for one that is no fault of the run, such as an interrupt."""
    message = " ".join(str(error).split())
    if isinstance(error, ConfigError):
        return Failure("config-error", message, error.source or None, error.key or None)
    if isinstance(error, CaptureLintError):
        return Failure("rulebook-error" if isinstance(error, RulebookError) else "usage-error", message)
    if isinstance(error, BrokenPipeError) or not isinstance(error, Exception):
        return None
    if isinstance(error, click.ClickException):
        return Failure("usage-error", error.format_message())
    if isinstance(error, (click.exceptions.Exit, click.Abort)):
        return None
    return Failure("internal-error", _internal(error))


def _directory_is_gone() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def reader_gone() -> int:
    """The exit status for a stdout that nobody reads any more; nothing is said, as other tools do."""
    forget(sys.stdout)
    return _BROKEN_PIPE


def _say(message: str) -> None:
    write_stderr(" ".join(message.split()))


def _went_wrong(error: CaptureLintError) -> None:
    _say(f"error: {error}")
    if sys.stdout is not None and stdout_fault() is not None:
        forget(sys.stdout)


def _internal_error(error: Exception) -> None:
    if os.environ.get(DEBUG_VARIABLE) == "1":
        traceback.print_exception(error)
    _say(f"internal error: {_internal(error)}")


def _internal(error: Exception) -> str:
    return (
        f"{type(error).__name__}: {' '.join(str(error).split())}; this is a bug in capturelint: please report it"
        f" with the traceback that {DEBUG_VARIABLE}=1 shows"
    )
