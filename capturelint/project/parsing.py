"""From a file's bytes to trees: a module without the bodies of its functions, and a body when it is needed."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from capturelint.errors import SourceError
from capturelint.project.outline import Stretch, outline
from capturelint.project.packed import packed
from capturelint.source.decoding import decode
from capturelint.source.files import SourceFile

_TOO_DEEP = "too many nested parentheses"


def parse_source(file: SourceFile, data: bytes) -> tuple[str, ast.Module]:
    """A file's text and its whole tree. Raises SourceError."""
    source = decode(data, file.display)
    return source, _parsed(source, file.display)


def parse_outline(file: SourceFile, data: bytes) -> tuple[str, ast.Module, dict[int, Stretch] | None]:
    """A file's text, its tree, and the lines of the bodies that this lacks, by the line of ``def``. Raises SourceError.

    None instead of lines where the tree is that of the whole text. What is wrong within a body is not found here.
    """
    source = decode(data, file.display)
    outlined = outline(source)
    if outlined is not None:
        try:
            with _quiet():
                return source, packed(ast.parse(outlined.source)), outlined.bodies
        except (SyntaxError, RecursionError, MemoryError):
            pass  # what is wrong is said of the text itself
    return source, _parsed(source, file.display), None


def parse_body(lines: str, first: int) -> list[ast.stmt]:
    """The statements of a body that begins at line ``first``, with their places in the module. Raises SyntaxError."""
    with _quiet():
        # the lines above only count, the last of them holds what the body stands in
        body = packed(ast.parse("\n" * (first - 2) + "if 1:\n" + lines)).body
    if len(body) != 1 or not isinstance(body[0], ast.If):
        raise SyntaxError("the text of a body goes beyond it")
    return body[0].body


def _parsed(source: str, display: str) -> ast.Module:
    try:
        with _quiet():
            return packed(ast.parse(source))
    except SyntaxError as error:
        # what no version takes is kept from LibCST's parser, which such nesting crashes
        newer = "" if error.msg.startswith(_TOO_DEEP) else _if_newer(source)
        raise SourceError(display, error.lineno or 1, f"{error.msg}{newer}") from None
    except (RecursionError, MemoryError):
        raise SourceError(display, 1, "nested too deeply to parse") from None


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _if_newer(source: str) -> str:
    """What to say of syntax that a newer Python takes. Imported where a file is wrong, which few are."""
    from capturelint.source.newer_syntax import newer_version

    version = newer_version(source)
    return f": this is syntax of Python {version[0]}.{version[1]}" if version is not None else ""
