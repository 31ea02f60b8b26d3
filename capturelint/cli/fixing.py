"""The options of ``check`` that fix, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from capturelint.cli.output import note
from capturelint.cli.streams import write_stdout
from capturelint.errors import UsageError
from capturelint.report.outcome import FAILED, PASSED
from capturelint.report.text import count

if TYPE_CHECKING:
    from capturelint.check import CheckOptions
    from capturelint.fixes.rounds import Fixed
    from capturelint.model import CheckResult

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class FixOptions:
    """``diff`` shows what ``apply`` would write. ``unsafe`` alone only counts fixes as ones that may be applied."""

    apply: bool = False
    unsafe: bool = False
    diff: bool = False


def fix_options(command: _F) -> _F:
    """Adds the options about fixes."""
    for option in reversed(
        (
            click.option("--fix", "fix", is_flag=True, help="Apply the fixes that keep what the code means."),
            click.option("--unsafe-fixes", is_flag=True, help="Count fixes in that may change what the code means."),
            click.option("--diff", is_flag=True, help="Show what --fix would change; write nothing, report nothing."),
        )
    ):
        command = option(command)
    return command


def check_and_fix(
    run: CheckOptions, options: FixOptions, progress: Callable[[str], object] = str
) -> tuple[CheckResult, Fixed | None]:
    """The result to report, and what was fixed. With ``apply`` the files are written; raises UsageError."""
    from capturelint.check import check_paths

    if not (options.apply or options.diff):
        return check_paths(run, progress), None
    if run.contents and not options.diff:
        raise UsageError("--fix cannot write to stdin: --diff shows what it would change")
    from capturelint.fixes.rounds import fix_until_stable

    def check(contents: Mapping[Path, bytes]) -> CheckResult:
        return check_paths(replace(run, contents={**run.contents, **contents}), progress)

    fixed = fix_until_stable(check, unsafe=options.unsafe, given=run.contents)
    if options.apply and not options.diff:
        fixed.write()
    return replace(fixed.result, fixed=fixed.total), fixed


def write_diff(fixed: Fixed, *, exit_zero: bool) -> int:
    """Writes the diff, with its numbers on stderr; the exit status is 1 where there is one."""
    write_stdout(fixed.diff())
    if fixed.changed:
        note(f"would fix {count(fixed.total, 'finding')} in {count(len(fixed.changed), 'file')}")
    return FAILED if fixed.changed and not exit_zero else PASSED
