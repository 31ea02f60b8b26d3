"""Running ``--fix`` over texts and folders, for the tests about fixes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from capturelint.check import CheckOptions, check_paths
from capturelint.config import Config
from capturelint.fixes.rounds import Fixed, fix_until_stable
from capturelint.model import CheckResult, Confidence


def fixed(root: Path, *, unsafe: bool = False, codes: tuple[str, ...] = ()) -> Fixed:
    """What fixing everything below ``root`` comes to. Nothing is written."""
    options = CheckOptions((root,), Config(), codes, (), Confidence.LIKELY, root)

    def check(contents: Mapping[Path, bytes]) -> CheckResult:
        return check_paths(replace(options, contents=contents))

    return fix_until_stable(check, unsafe=unsafe)


def fixed_text(folder: Path, text: str, *, unsafe: bool = False) -> tuple[str, CheckResult]:
    """A module after fixing, and what is left to report of it."""
    file = folder / "example.py"
    file.write_text(text, encoding="utf-8")
    outcome = fixed(folder, unsafe=unsafe)
    after = next(iter(outcome.after.values()), text.encode())
    return after.decode(), outcome.result
