"""The formats of a report, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from capturelint.model import CheckResult
from capturelint.report.json import render_json
from capturelint.report.text import ReadLine, render_text

DEFAULT_FORMAT = "text"


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """How to write a report; see ``render_text``. Formats take from it what they need."""

    read_line: ReadLine
    color: bool = False
    width: int | None = None
    verbose: bool = False
    quiet: bool = False


def _text(result: CheckResult, options: ReportOptions) -> str:
    return render_text(
        result,
        read_line=options.read_line,
        color=options.color,
        width=options.width,
        verbose=options.verbose,
        quiet=options.quiet,
    )


def _json(result: CheckResult, options: ReportOptions) -> str:
    return render_json(result)


FORMATS: Mapping[str, Callable[[CheckResult, ReportOptions], str]] = {"text": _text, "json": _json}
