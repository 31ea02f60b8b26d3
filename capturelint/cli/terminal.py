"""What the terminal can show: colours, width, characters."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from typing import TextIO

COLOR_CHOICES = ("auto", "always", "never")


def make_safe() -> None:
    """Makes stdout and stderr write escapes for characters that their encoding lacks, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def use_color(choice: str, stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether to write colours. For ``auto`` NO_COLOR and FORCE_COLOR decide, and else whether it is a terminal."""
    if choice != "auto":
        return choice == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return environ.get("TERM") != "dumb" and stream.isatty()


def terminal_width(stream: TextIO) -> int | None:
    """The terminal's columns; None when ``stream`` is none."""
    return shutil.get_terminal_size().columns if stream.isatty() else None
