"""From a source file's bytes to its text, as Python itself would read it (PEP 263)."""

from __future__ import annotations

import codecs
import re

from capturelint.errors import SourceError
from capturelint.source.problems import unreadable

_LINE_END = re.compile(rb"\r\n|\r|\n")
_CODING = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK_OR_COMMENT = re.compile(rb"[ \t\f]*(?:#|$)")
_OTHER_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def decode(data: bytes, display: str) -> str:
    """The text of a file whose lines end in ``\\n`` alone, so that ``text.split("\\n")`` numbers them as ``ast`` does.

    A byte order mark goes. A form feed stays and ends no line (``str.splitlines`` would think so). Raises SourceError,
    with the line where one is known, for an unknown encoding, bytes that are none in it, and NUL bytes.
    """
    if data.startswith(_OTHER_BOMS):
        raise SourceError(display, 1, unreadable("UTF-16, which Python source cannot be; save it as UTF-8"))
    text = _decode_as(encoding_of(data, display), data, display)
    nul = text.find("\0")
    if nul >= 0:
        raise SourceError(display, _line_after(text[:nul].encode("utf-8")), unreadable("it holds a NUL byte"))
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def encoding_of(data: bytes, display: str) -> str:
    """The canonical name of the encoding, ``utf-8-sig`` where nothing else is said."""
    line, name = _coding_line(data)
    if name is None:
        return "utf-8-sig"
    try:
        canonical = codecs.lookup(name).name
    except LookupError as error:
        raise SourceError(display, line, unreadable(f"unknown encoding: {name}")) from error
    if canonical in ("utf-8", "utf-8-sig"):
        return "utf-8-sig"
    if data.startswith(codecs.BOM_UTF8):
        raise SourceError(display, line, unreadable(f"the coding line says {name}, the byte order mark says UTF-8"))
    return canonical


def _coding_line(data: bytes) -> tuple[int, str | None]:
    """The line that names the encoding, the first or the second, and the name."""
    start = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    for number in (1, 2):
        end = _LINE_END.search(data, start)
        line = data[start : end.start()] if end else data[start:]
        match = _CODING.match(line)
        if match:
            return number, match.group(1).decode("ascii", "replace")
        if end is None or not _BLANK_OR_COMMENT.match(line):
            break
        start = end.end()
    return 1, None


def _decode_as(encoding: str, data: bytes, display: str) -> str:
    try:
        text = data.decode(encoding)
        if encoding != "utf-8-sig":
            text.encode("utf-8")  # some codecs make lone surrogates, which no parser takes
    except UnicodeDecodeError as error:
        name = "UTF-8" if encoding == "utf-8-sig" else encoding
        hint = "; save it as UTF-8 or name its encoding in a coding line" if name == "UTF-8" else ""
        raise SourceError(display, _line_after(data[: error.start]), unreadable(f"not {name}{hint}")) from error
    except (LookupError, UnicodeError) as error:
        problem = f"{encoding} is not an encoding that Python source can have"
        raise SourceError(display, 1, unreadable(problem)) from error
    return text


def _line_after(data: bytes) -> int:
    return len(_LINE_END.findall(data)) + 1
