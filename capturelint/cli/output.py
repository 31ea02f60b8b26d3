"""Where reports go: stdout and files, several of one run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from capturelint.cli.streams import write_stderr, write_stdout
from capturelint.cli.terminal import terminal_width, use_color
from capturelint.errors import UsageError
from capturelint.model import CheckResult
from capturelint.report.formats import DEFAULT_FORMAT, FORMATS, ReportOptions


@dataclass(frozen=True, slots=True)
class Destination:
    """One report: its format, and the file that it goes to (None: stdout)."""

    format: str
    file: Path | None


def parse_destinations(stdout_format: str | None, outputs: Sequence[str]) -> list[Destination]:
    """The reports that ``--format`` and the ``--output FORMAT:FILE`` options ask for.

    stdout gets one report: that of ``--format`` or of an output to ``-``, else the default format. Raises UsageError.
    """
    destinations = [_parse_output(output) for output in outputs]
    if stdout_format is not None or not any(destination.file is None for destination in destinations):
        destinations.append(Destination(stdout_format or DEFAULT_FORMAT, None))
    files = [destination.file for destination in destinations]
    for file in files:
        if files.count(file) > 1:
            raise UsageError(f"two reports go to {'stdout' if file is None else file}")
    return destinations


def _parse_output(output: str) -> Destination:
    format_name, separator, name = output.partition(":")
    if not separator or not name:
        raise UsageError(f"--output {output}: should be FORMAT:FILE, such as json:report.json")
    if format_name not in FORMATS:
        raise UsageError(f"--output {output}: {format_name!r} is none of the formats {', '.join(FORMATS)}")
    if name == "-":
        return Destination(format_name, None)
    file = Path(name)
    if file.suffix in (".py", ".pyi") and file.exists():
        raise UsageError(f"--output {output}: {name} is a Python file; a report would overwrite it")
    if file.is_dir() or not file.parent.is_dir():
        problem = "is a directory" if file.is_dir() else "its directory does not exist"
        raise UsageError(f"--output {output}: cannot write {name}: {problem}")
    return Destination(format_name, file)


def write_reports(result: CheckResult, destinations: Sequence[Destination], options: ReportOptions, color: str) -> None:
    """Writes every report; files get neither colours (unless ``color`` is ``always``) nor a terminal's width."""
    for destination in destinations:
        render = FORMATS[destination.format]
        if destination.file is None:
            on_stdout = replace(options, color=use_color(color, sys.stdout), width=terminal_width(sys.stdout))
            write_stdout(render(result, on_stdout))
        else:
            _write_file(destination.file, render(result, replace(options, color=color == "always", width=None)))


def note(message: str) -> None:
    """One line for people, beside the report."""
    write_stderr(message)


def _write_file(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror or error}") from error
