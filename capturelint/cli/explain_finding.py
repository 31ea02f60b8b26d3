"""``capturelint explain-finding``: what one finding rests on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from capturelint.cli import options
from capturelint.cli.process import keep_until_exit
from capturelint.cli.streams import write_stdout
from capturelint.cli.terminal import use_color
from capturelint.errors import UsageError
from capturelint.model import CheckResult, Confidence, Finding
from capturelint.report.outcome import PASSED
from capturelint.source.notebooks import SUFFIX


@click.command("explain-finding")
@click.argument("place", metavar="PATH:LINE")
@click.argument("code", metavar="[RULE]", required=False)
@options.config_option
@options.color_option
def command(place: str, code: str | None, config_file: Path | None, color: str) -> int:
    """Show what the finding on a line rests on.

    That is the region, each call from there with how sure it is and why it is no surer, where the values come from, and
    the branches around the line. Possible findings count too, and so do suppressed ones. RULE (a code or name) chooses
    where several findings stand on the line.
    """
    from capturelint.check import check_paths
    from capturelint.explanation import explain
    from capturelint.reach import Evidence
    from capturelint.report.explanation_text import render_explanation
    from capturelint.rulebook import load_rulebook
    from capturelint.source.lines import LineReader

    path, line = _place(place)
    codes = load_rulebook().resolve(code) if code is not None else None
    below = Path(os.path.realpath(path)).is_relative_to(Path.cwd())
    run = options.check_options(
        (path,),
        config_file=config_file,
        min_confidence=Confidence.POSSIBLE.value,
        beside=(Path(),) if below else (),  # as for a check of the working directory
        explains=True,
    )
    result = check_paths(run)
    keep_until_exit(result)
    found = _on_line(result, line)
    chosen = [finding for finding in found if codes is None or finding.rule in codes]
    if not chosen:
        raise UsageError(_nothing(result, place, line, code, found))
    assert isinstance(result.behind, Evidence)
    read_line = LineReader()
    texts = (
        render_explanation(explain(finding, result.behind), read_line=read_line, color=use_color(color, sys.stdout))
        for finding in chosen
    )
    write_stdout("\n".join(texts))
    return PASSED


def _place(text: str) -> tuple[Path, int]:
    """``PATH:LINE``; a column after it, as reports have it, is let be."""
    parts = text.rstrip(":").split(":")
    if len(parts) > 2 and parts[-1].isdigit() and parts[-2].isdigit():
        parts.pop()
    path, number = ":".join(parts[:-1]), parts[-1]
    if not path or not number.isdigit() or int(number) < 1:
        raise UsageError(f"{text!r} names no line: it has to be PATH:LINE, such as src/model.py:41")
    found = Path(path)
    if found.is_dir():
        raise UsageError(f"{path} is a directory: name the file that the finding is in")
    if SUFFIX in path:
        raise UsageError("what findings in notebooks rest on cannot be shown; `check --verbose` says some of it")
    return found, int(number)


def _on_line(result: CheckResult, line: int) -> list[Finding]:
    """The findings that begin on a line, else those whose lines hold it."""
    begin = [finding for finding in result.findings if finding.span.line == line]
    return begin or [finding for finding in result.findings if finding.span.line <= line <= finding.span.end_line]


def _nothing(result: CheckResult, place: str, line: int, code: str | None, found: list[Finding]) -> str:
    if result.diagnostics:
        return f"{place}: {result.diagnostics[0].message}"
    if found and code is not None:
        return f"no finding of {code} at {place}; there {_are(found)} {', '.join(sorted({f.rule for f in found}))}"
    near = sorted({finding.span.line for finding in result.findings}, key=lambda each: (abs(each - line), each))[:3]
    hint = f"; the nearest are on line {', '.join(str(each) for each in sorted(near))}" if near else ""
    return f"no finding at {place}{hint}"


def _are(found: list[Finding]) -> str:
    return "is" if len({finding.rule for finding in found}) == 1 else "are"
