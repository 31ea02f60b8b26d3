"""What commands do with a baseline: read it, write it anew, and say what became of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from capturelint.cli.options import GivenPath
from capturelint.cli.output import note
from capturelint.errors import UsageError

if TYPE_CHECKING:
    from capturelint.baseline import Entry
    from capturelint.check import CheckOptions
    from capturelint.config import Config
    from capturelint.model import CheckResult

_F = TypeVar("_F", bound=Callable[..., Any])
_MOST_SHOWN = 10


def baseline_options(command: _F) -> _F:
    """Adds the options about the baseline."""
    for option in reversed(
        (
            click.option(
                "--baseline",
                "baseline_file",
                metavar="FILE",
                type=GivenPath(),
                help="Let findings that are in FILE not count.  [default: what the configuration says]",
            ),
            click.option("--no-baseline", is_flag=True, help="Use no baseline, whatever the configuration says."),
            click.option(
                "--update-baseline", is_flag=True, help="Write the findings to the baseline, and say what that changes."
            ),
        )
    ):
        command = option(command)
    return command


def with_baseline(run: CheckOptions, file: Path | None, *, off: bool, update: bool) -> CheckOptions:
    """The options with the baseline to check against. Raises UsageError and ConfigError."""
    from capturelint.baseline import Baseline, load
    from capturelint.source.files import SourceFile

    if off and (file is not None or update):
        raise UsageError("--no-baseline goes with neither --baseline nor --update-baseline")
    if off:
        return run
    file = file if file is not None else _configured(run.config)
    if file is None:
        if update:
            raise UsageError("--update-baseline needs --baseline FILE, or `baseline` in the configuration")
        return run
    if update and not file.exists():
        if not file.parent.is_dir():
            raise UsageError(f"cannot write {file}: its directory does not exist")
        return replace(run, baseline=Baseline(SourceFile.at(file).path, least=run.min_confidence))
    return replace(run, baseline=load(file))


def _configured(config: Config) -> Path | None:
    if config.baseline is None:
        return None
    return Path(config.source or "").parent / config.baseline


def written(result: CheckResult) -> CheckResult:
    """Writes the baseline anew and says what that changed; the result as it is against the new one."""
    from capturelint.baseline import KIND, Update, write
    from capturelint.source.files import display_path

    update = result.update
    assert isinstance(update, Update)
    changed = write(update.baseline)
    total = sum(update.baseline.counts.values())
    added, removed = (sum(count for _, count in part) for part in (update.added, update.removed))
    state = f"{added} added, {removed} removed, {total} in all" if changed else f"unchanged, {total} in all"
    note(f"{display_path(update.baseline.file)}: {state}")
    for sign, part in (("+", update.added), ("-", update.removed)):
        for line in _lines(part):
            note(f"  {sign} {line}")
    own = [
        f if f.suppressed is None or f.suppressed.kind != KIND else replace(f, suppressed=None) for f in result.findings
    ]
    return replace(result, findings=tuple(update.baseline.marked(own)), stale=())


def write_stale_notes(result: CheckResult, *, quiet: bool, verbose: bool) -> None:
    """Says which entries of the baseline match nothing any more."""
    if quiet or not result.stale:
        return
    number = sum(entry.count for entry in result.stale)
    note(f"note: {number} in the baseline {'is' if number == 1 else 'are'} gone; --update-baseline removes what is")
    shown = result.stale if verbose else result.stale[:_MOST_SHOWN]
    for entry in shown:
        note(f"  - {entry.description}{_times(entry.count)}")
    if len(shown) < len(result.stale):
        note(f"  and {len(result.stale) - len(shown)} more (--verbose shows them)")


def _lines(part: Iterable[tuple[Entry, int]]) -> list[str]:
    return [f"{entry}{_times(count)}" for entry, count in part]


def _times(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""
