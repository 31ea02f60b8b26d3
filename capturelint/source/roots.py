"""Where the project starts that the given paths belong to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

#: what marks a project's top directory
MARKERS = ("pyproject.toml", "capturelint.toml", "setup.py", "setup.cfg", ".git")


def find_project_root(paths: Sequence[Path]) -> Path:
    """The nearest directory at or above the paths' common one that holds a project's file.

    Without such a file it is the common directory itself: nothing above it is looked at then, not even when it is not
    there, as with a file that only stdin stands for. No path at all means the working directory. Paths on different
    drives have nothing in common; the first one decides.
    """
    common = _common_directory([os.path.abspath(path) for path in paths] or [os.getcwd()])
    for directory in (common, *common.parents):
        if any((directory / marker).exists() for marker in MARKERS):
            return directory
    return common


def repository_top(directory: str) -> str | None:
    """The top directory of the git repository that ``directory`` (an absolute path) lies in."""
    current = directory
    while not os.path.exists(os.path.join(current, ".git")):
        parent = os.path.dirname(current)
        if parent == current:
            return None
        current = parent
    return current


def _common_directory(paths: Sequence[str]) -> Path:
    try:
        common = os.path.commonpath(paths)
    except ValueError:
        common = paths[0]
    return Path(common) if os.path.isdir(common) else Path(common).parent
