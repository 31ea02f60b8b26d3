from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
#: what tools leave in a checkout and a copy of it does not need
_LEFTOVERS = (".git", ".venv*", ".*_cache", "__pycache__", "*.egg-info", "dist", "build")


@dataclass(frozen=True)
class Ran:
    """What a run of the command line came to."""

    status: int
    out: str
    err: str


def write_files(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def copy_repository(target: Path) -> Path:
    """A copy of this checkout as it stands, without what git ignores."""
    return Path(shutil.copytree(REPOSITORY, target, ignore=shutil.ignore_patterns(*_LEFTOVERS)))


def clean_environment(**changes: str) -> dict[str, str]:
    """The environment without what would change colours, or where Python and git look for things."""
    dropped = ("NO_COLOR", "FORCE_COLOR", "PYTHONPATH", "CAPTURELINT_DEBUG", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if name not in dropped and not name.startswith("GIT_")}
    return {**kept, **changes}


@pytest.fixture
def repository() -> Path:
    return REPOSITORY


@pytest.fixture
def run_tool() -> Callable[..., Ran]:
    """Runs ``python -m capturelint`` as a process of its own: ``run_tool("check", ".", cwd=..., env=...)``."""

    def run(*arguments: str | Path, cwd: Path, **environ: str) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "capturelint", *map(str, arguments)],
            cwd=cwd,
            env=clean_environment(PYTHONPATH=str(REPOSITORY), **environ),
            capture_output=True,
            timeout=120,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run
