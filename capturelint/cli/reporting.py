"""Commands that write reports, which say so too when the command line itself is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from capturelint.cli.output import Reports
from capturelint.errors import CaptureLintError
from capturelint.report.formats import FORMATS


class ReportingCommand(click.Command):
    """A command with ``--format`` and ``--output``."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        given = tuple(args)
        try:
            return super().make_context(info_name, args, parent, **extra)
        except (click.UsageError, CaptureLintError):
            with _reports(given):
                raise


def _reports(arguments: Sequence[str]) -> Reports:
    """Those that can be made out where not all of the command line can be read."""
    formats = [name for name in _values(arguments, "--format") if name in FORMATS]
    return Reports.asked_for(formats[-1] if formats else None, list(_values(arguments, "--output")), "never")


def _values(arguments: Sequence[str], option: str) -> Iterator[str]:
    for index, argument in enumerate(arguments):
        if argument == option and index + 1 < len(arguments):
            yield arguments[index + 1]
        elif argument.startswith(f"{option}="):
            yield argument.removeprefix(f"{option}=")
