"""Writing files whole: a reader finds the old content or the new, never half of it."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

_MODE_OF_NEW_FILES = 0o666


def write_atomically(file: Path, content: bytes) -> None:
    """Replaces ``file`` in one step, and keeps its permissions; a link stays one, and what it leads to is replaced.

    A pipe or a device is written to as it is. Raises OSError, and leaves nothing behind then.
    """
    target = Path(os.path.realpath(file))
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        target.write_bytes(content)
        return
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", suffix=".tmp", dir=target.parent)
    written = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        written.chmod(stat.S_IMODE(mode) if mode is not None else _MODE_OF_NEW_FILES & ~_umask())
        written.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            written.unlink()
        raise


def _umask() -> int:
    """The process's; there is no way to ask for it but to set it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
