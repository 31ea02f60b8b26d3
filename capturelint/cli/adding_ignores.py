"""``--add-ignore``: suppression comments for all that a check finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capturelint.cli.output import note
from capturelint.errors import UsageError
from capturelint.report.text import count

if TYPE_CHECKING:
    from capturelint.model import CheckResult, Finding

_OPTION = "--add-ignore"

add_ignore_option = click.option(
    _OPTION,
    "add_ignore",
    metavar="[=REASON]",
    help="Put a suppression comment, with REASON, behind each statement with a finding.",
)


class WithOptionalReason(click.Command):
    """A command whose ``--add-ignore`` may stand without a value: what follows is no reason then but a path."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, [f"{arg}=" if arg == _OPTION else arg for arg in args[:end]] + args[end:])


def check_reason(reason: str, *, alone: bool) -> None:
    """Raises UsageError for a reason that no comment can hold, and for options that do not go together."""
    if not alone:
        raise UsageError(f"{_OPTION} changes files: it does not go with stdin, --diff or --update-baseline")
    if not all(character.isprintable() for character in reason) or "#" in reason:
        raise UsageError(f"{_OPTION}: the reason has to be one line without `#`")


def with_ignores(result: CheckResult, reason: str) -> CheckResult:
    """Writes the comments; the result with what they suppress. Raises UsageError, and writes nothing then."""
    from capturelint.fixes.files import replace_file
    from capturelint.model import Consequence, Suppression

    wanted = [f for f in result.findings if f.suppressed is None and f.consequence is not Consequence.NONE]
    by_path: dict[str, list[Finding]] = {}
    for finding in wanted:
        if finding.cell is None:
            by_path.setdefault(finding.path, []).append(finding)
    written = {path: _with_comments(path, found, reason) for path, found in by_path.items()}
    for path, data in written.items():
        replace_file(Path(path), data)
    added = {id(finding) for found in by_path.values() for finding in found}
    note(f"suppressed {count(len(added), 'finding')} in {count(len(written), 'file')}")
    if len(added) < len(wanted):
        note(f"note: {count(len(wanted) - len(added), 'finding')} in notebooks, which are not changed")
    by_comment = Suppression("comment", reason or None)
    return replace(
        result,
        findings=tuple(replace(each, suppressed=by_comment) if id(each) in added else each for each in result.findings),
    )


def _with_comments(path: str, found: Sequence[Finding], reason: str) -> bytes:
    from capturelint.fixes.files import edited
    from capturelint.fixes.ignores import covers_all, ignoring
    from capturelint.source.decoding import decode
    from capturelint.source.files import SourceFile

    data = SourceFile.at(Path(path)).read()
    source = decode(data, path)
    after = edited(data, path, ignoring(source, found, reason))
    if after is None:
        raise UsageError(f"{_OPTION}: {path}: the reason cannot be written in the encoding of the file")
    if not covers_all(decode(after, path), found, source):
        raise UsageError(f"{_OPTION}: the reason reads as something else in a comment: {reason!r}")
    return after
