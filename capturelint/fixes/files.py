"""A source file that is rewritten: the same encoding, byte order mark, line ends and mode, all of it or nothing."""

from __future__ import annotations

import ast
import codecs
import contextlib
import os
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path

from capturelint.errors import UsageError
from capturelint.fixes.edits import applied
from capturelint.model import Edit
from capturelint.source.decoding import encoding_of


def edited(data: bytes, display: str, edits: Iterable[Edit]) -> bytes | None:
    """A file's bytes with the edits; None where what comes out is no Python, or can't be written in its encoding."""
    encoding = encoding_of(data, display)
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    encoding = "utf-8" if encoding == "utf-8-sig" else encoding
    text = data[len(mark) :].decode(encoding)
    try:
        after = mark + applied(text, edits).encode(encoding)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(after)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return after


def replace_file(path: Path, data: bytes) -> None:
    """Writes a file beside the old one and puts it in its place; a link stays a link. Raises UsageError."""
    real = Path(os.path.realpath(path))
    temporary: str | None = None
    try:
        if not os.access(real, os.W_OK):
            raise PermissionError(None, "the file is read-only")
        handle, temporary = tempfile.mkstemp(prefix=f".{real.name}.", dir=real.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(real.stat().st_mode & 0o7777)
        Path(temporary).replace(real)
    except OSError as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error
