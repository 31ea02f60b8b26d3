"""What a report is told beside the result. Formats take from it what they need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from capturelint.report.outcome import Gate

ReadLine = Callable[[str, int], "str | None"]


def _no_line(_path: str, _line: int) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """``read_line`` returns a file's line, or None; ``width`` is the terminal's, None when the report goes elsewhere.

    ``verbose`` adds the reasons, every hop and every region; ``quiet`` leaves out the closing line. ``base`` is the
    directory that other services take paths to start from, None for the working directory.
    """

    read_line: ReadLine = _no_line
    color: bool = False
    width: int | None = None
    verbose: bool = False
    quiet: bool = False
    base: Path | None = None
    #: whether fixes that may change the meaning count as ones that can be applied
    unsafe_fixes: bool = False
    gate: Gate = field(default_factory=Gate)
    #: a rule's page on the web, with ``{code}`` or ``{name}`` for the rule
    rule_url: str | None = None

    def url_of(self, code: str, name: str) -> str | None:
        return None if self.rule_url is None else self.rule_url.replace("{code}", code).replace("{name}", name)


DEFAULTS = ReportOptions()
