"""What a result depends on besides the checked files: the tool itself, Python, and the rules."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from capturelint import __version__
from capturelint.rulebook.location import rules_directory

#: packages whose code has a say in what is found
_PACKAGES = ("libcst", "pathspec")


def digest(parts: Iterable[str | bytes]) -> str:
    """One digest of several texts, which tells ``("a", "bc")`` from ``("ab", "c")``."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "big") + data)
    return total.hexdigest()


def content_digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


@lru_cache(maxsize=1)
def tool_digest() -> str:
    """Of this version of the tool as it is installed: its code, its rules, Python, and what it builds on.

    Code counts by size and time of change, rules by content: whoever edits rules expects them to count at once.
    """
    package = Path(__file__).resolve().parent.parent
    return digest((__version__, sys.version, sys.implementation.name, *_code(package), *_rules(), *_packages()))


def _code(package: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(package):
        folders[:] = sorted(name for name in folders if name not in ("__pycache__", "_rules"))
        for name in sorted(files):
            if name.endswith(".py"):
                yield _stamp(Path(folder, name))


def _rules() -> Iterator[str | bytes]:
    directory = rules_directory()
    for path in sorted((*directory.glob("*.yaml"), *directory.glob("*/*.yaml"))):
        yield path.relative_to(directory).as_posix()
        yield path.read_bytes()


def _packages() -> Iterator[str]:
    for name in _PACKAGES:
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            yield _stamp(Path(spec.origin))


def _stamp(path: Path) -> str:
    found = path.stat()
    return f"{path}\0{found.st_size}\0{found.st_mtime_ns}"
