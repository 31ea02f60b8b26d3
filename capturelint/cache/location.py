"""Where the cache is when nobody says: in the user's cache folder, which no checked project can write to beforehand."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

_NAME = "capturelint"


def default_folder(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path | None:
    """The folder for this user; None where the system names none."""
    try:
        home = Path.home()
    except RuntimeError:
        home = None
    if platform == "win32":
        local = environ.get("LOCALAPPDATA")
        return Path(local, _NAME, "Cache") if local else None
    named = environ.get("XDG_CACHE_HOME", "")
    if Path(named).is_absolute():  # the specification has relative ones ignored
        return Path(named, _NAME)
    if home is None or not home.is_absolute():
        return None
    return home / "Library" / "Caches" / _NAME if platform == "darwin" else home / ".cache" / _NAME
