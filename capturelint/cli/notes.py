"""What a run that looked at nothing says: an empty report must not pass for a clean one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from capturelint.cli.output import note
from capturelint.model import CheckResult
from capturelint.report.diagnostics import checked_files
from capturelint.report.text import count

HOW_TO_DECLARE = (
    "only captured code is checked: mark a function with `@capturelint.capture_region` or `# capturelint: region`,"
    " or name it in `regions` under [tool.capturelint]"
)


def write_notes(
    result: CheckResult,
    paths: Sequence[Path],
    *,
    required: bool,
    quiet: bool,
    config_notes: Sequence[str] = (),
) -> None:
    """Says on stderr what there is to know about the run itself, and that there were no files or no regions.

    Nothing when ``quiet``, unless the run fails for it.
    """
    if not quiet:
        for text in (*config_notes, *result.notes):
            note(f"note: {text}")
    failed = required and not result.regions
    if not result.regions and (failed or not quiet):
        _write_no_regions(result, paths)
    if failed:
        note("error: a region is required (--require-regions)")


def _write_no_regions(result: CheckResult, paths: Sequence[Path]) -> None:
    checked = checked_files(result)
    if not result.files and not result.diagnostics:
        note(f"no Python files found in {', '.join(map(str, paths))}")
    elif not result.diagnostics:
        note(f"0 regions found; {HOW_TO_DECLARE}")
    elif checked:
        note(f"0 regions found in what could be checked ({count(checked, 'file')}); {HOW_TO_DECLARE}")
