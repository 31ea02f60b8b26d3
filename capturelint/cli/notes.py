"""What a run that looked at nothing says: an empty report must not pass for a clean one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from capturelint.cli.output import note
from capturelint.model import CheckResult

HOW_TO_DECLARE = (
    "only captured code is checked: mark a function with `@capturelint.capture_region` or `# capturelint: region`,"
    " or name it in `regions` under [tool.capturelint]"
)


def write_notes(result: CheckResult, paths: Sequence[Path], *, required: bool, quiet: bool) -> None:
    """Says on stderr that there were no files or no regions: not when ``quiet``, unless the run fails for it."""
    failed = required and not result.regions
    if quiet and not failed:
        return
    if not result.files and not result.diagnostics:
        note(f"no Python files found in {', '.join(map(str, paths))}")
    elif not result.regions:
        note(f"0 regions found; {HOW_TO_DECLARE}")
    if failed:
        note("error: a region is required (--require-regions)")
