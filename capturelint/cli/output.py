"""Where reports go: stdout and files, several of one run."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from capturelint.cli.errors import failure_of
from capturelint.cli.streams import write_stderr, write_stdout
from capturelint.cli.terminal import terminal_width, use_color
from capturelint.errors import UsageError
from capturelint.model import CheckResult
from capturelint.report.formats import DEFAULT_FORMAT, FORMATS, STATISTICS, Format
from capturelint.report.options import ReportOptions
from capturelint.source.roots import repository_top
from capturelint.source.writing import write_atomically


@dataclass(frozen=True, slots=True)
class Destination:
    """One report: its format, and the file that it goes to (None: stdout)."""

    format: Format
    file: Path | None


def parse_destinations(
    stdout_format: str | None, outputs: Sequence[str], statistics: bool = False
) -> list[Destination]:
    """The reports that ``--format`` and the ``--output FORMAT:FILE`` options ask for.

    stdout gets one report: that of ``--format`` or of an output to ``-``, else the default format; for ``statistics``
    the counts in the place of that. Raises UsageError.
    """
    destinations = [_parse_output(output) for output in outputs]
    if stdout_format is not None or not any(destination.file is None for destination in destinations):
        destinations.append(Destination(_of_stdout(stdout_format or DEFAULT_FORMAT, statistics), None))
    elif statistics:
        raise UsageError("--statistics: stdout takes the report of --output; name a file there, or leave it out")
    files = [destination.file for destination in destinations]
    for file in files:
        if files.count(file) > 1:
            raise UsageError(f"two reports go to {'stdout' if file is None else file}")
    return destinations


def _of_stdout(name: str, statistics: bool) -> Format:
    if statistics and name not in STATISTICS:
        raise UsageError(f"--statistics: there are none as {name}; with --format json they are for tools")
    return STATISTICS[name] if statistics else FORMATS[name]


def _parse_output(output: str) -> Destination:
    format_name, separator, name = output.partition(":")
    if not separator or not name:
        raise UsageError(f"--output {output}: should be FORMAT:FILE, such as json:report.json")
    if format_name not in FORMATS:
        raise UsageError(f"--output {output}: {format_name!r} is none of the formats {', '.join(FORMATS)}")
    if name == "-":
        return Destination(FORMATS[format_name], None)
    file = Path(name)
    if file.suffix in (".py", ".pyi") and file.exists():
        raise UsageError(f"--output {output}: {name} is a Python file; a report would overwrite it")
    if file.is_dir() or not file.parent.is_dir():
        problem = "is a directory" if file.is_dir() else "its directory does not exist"
        raise UsageError(f"--output {output}: cannot write {name}: {problem}")
    return Destination(FORMATS[format_name], file)


class Reports:
    """The reports of one run. As a context manager it sees to it that what reads them never reads half a document.

    Where the run raises, the formats for tools that were not written yet say why; the error goes on.
    """

    def __init__(self, destinations: Sequence[Destination], color: str) -> None:
        # stdout comes last: a file that cannot be written can still be reported there
        self._waiting = sorted(destinations, key=lambda destination: destination.file is None)
        self._color = color
        top = repository_top(str(Path.cwd()))
        self.base = Path(top) if top is not None else None

    @classmethod
    def asked_for(
        cls, stdout_format: str | None, outputs: Sequence[str], color: str, *, statistics: bool = False
    ) -> Reports:
        """Those of the options. Where the options are wrong, the report on stdout still says so. Raises UsageError."""
        try:
            return cls(parse_destinations(stdout_format, outputs, statistics), color)
        except UsageError:
            with cls([] if stdout_format is None else [Destination(FORMATS[stdout_format], None)], color):
                raise

    def __enter__(self) -> Reports:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        failure = failure_of(error) if error is not None else None
        if failure is None:
            return
        result = CheckResult(failure=failure)
        self._waiting = [each for each in self._waiting if each.format.machine]
        while self._waiting:
            with contextlib.suppress(UsageError, BrokenPipeError):  # the first error is the one to hear of
                self.write(result, ReportOptions())

    def write(self, result: CheckResult, options: ReportOptions) -> None:
        """Writes every report; files get neither colours (unless they are always on) nor a terminal's width."""
        options = replace(options, base=self.base)
        while self._waiting:
            destination = self._waiting.pop(0)
            render = destination.format.render
            if destination.file is None:
                color = use_color(self._color, sys.stdout)
                write_stdout(render(result, replace(options, color=color, width=terminal_width(sys.stdout))))
            else:
                _write_file(destination.file, render(result, replace(options, color=self._color == "always")))


def note(message: str) -> None:
    """One line for people, beside the report."""
    write_stderr(message)


def _write_file(file: Path, text: str) -> None:
    try:
        write_atomically(file, text.encode("utf-8", errors="backslashreplace"))
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror or error}") from error
