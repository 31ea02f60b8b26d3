"""What is said of files that cannot be checked, in one form: reports tell them from syntax errors by it."""

from __future__ import annotations

UNREADABLE = "cannot be read: "


def unreadable(problem: str) -> str:
    """The message of a SourceError about a file whose text is not to be had, whatever may stand in it."""
    return UNREADABLE + problem
