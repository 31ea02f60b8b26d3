"""The processes that a process has started, as Linux lists them."""

from __future__ import annotations

from pathlib import Path


def children_of(parent: int) -> list[int]:
    """The process numbers of the children of ``parent`` that are there now."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(stat.parent.name))
    return found
