"""Writing files whole: a reader finds the old content or the new, never half of it."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from pathlib import Path

_MODE_OF_NEW_FILES = 0o666
#: why a file may not be replaced although it may be written: its directory is closed, or it is mounted by itself
_IN_PLACE = (errno.EACCES, errno.EPERM, errno.EBUSY)


def write_atomically(file: Path, content: bytes) -> None:
    """Replaces ``file`` in one step, and keeps its permissions; a link stays one, and what it leads to is replaced.

    A pipe or a device is written to as it is, and so is a file that cannot be replaced. Raises OSError, and leaves
    nothing behind then.
    """
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and (not stat.S_ISREG(mode) or file.parts[:2] == ("/", "dev")):
        file.write_bytes(content)
        return
    try:
        _replace(Path(os.path.realpath(file)), content, mode)
    except OSError as error:
        if mode is None or error.errno not in _IN_PLACE:
            raise
        file.write_bytes(content)


def _replace(target: Path, content: bytes, mode: int | None) -> None:
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
