"""What kept files from being checked, in words: the same in every format."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from capturelint.model import CheckResult, Diagnostic
from capturelint.source.problems import UNREADABLE

_INTERNAL = "internal error: "
_PYTHON_SUFFIXES = (".py", ".pyi", ".pyw", ".ipynb")
_SYNTAX = "syntax-error"


def in_order(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    return sorted(diagnostics, key=lambda item: (item.path, item.cell or 0, item.line, item.message))


def name_of(diagnostic: Diagnostic) -> str:
    """What kind it is: ``syntax-error`` is the rule's own name, the others are no syntax errors and not called so."""
    if diagnostic.message.startswith(UNREADABLE):
        return "unreadable-file"
    return "internal-error" if diagnostic.message.startswith(_INTERNAL) else _SYNTAX


def message_of(diagnostic: Diagnostic) -> str:
    """The message; of a syntax error with the grammar that it was read by, since a newer one may allow it."""
    if name_of(diagnostic) != _SYNTAX:
        return diagnostic.message
    read_as = f"read as Python {sys.version_info.major}.{sys.version_info.minor}"
    if not diagnostic.path.endswith(_PYTHON_SUFFIXES):
        read_as += "; it should be a Python file"
    return f"{diagnostic.message} ({read_as})"


def unchecked_files(result: CheckResult) -> int:
    """How many files have a diagnostic."""
    return len({item.path for item in result.diagnostics})


def checked_files(result: CheckResult) -> int:
    """How many of the files that were looked at could be checked."""
    return max(result.files - unchecked_files(result), 0)
