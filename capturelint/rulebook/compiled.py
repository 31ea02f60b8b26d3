"""What the YAML files of ``rules/`` say, kept as JSON, which loads in a millisecond where YAML takes thirty.

A compiled file is named by a digest of the files that it was made from, so that an edited rule is never taken for the
old one, whatever its time of change. A wheel brings compiled files along (the build hook makes them); a checkout keeps
its own under ``__pycache__``, as Python does with bytecode, and does without where that cannot be written. The YAML
stays the source: where no compiled file fits, it is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

#: the folder of compiled files in a wheel, and the one in a checkout
PACKED, OWN = "compiled", "__pycache__"
_T = TypeVar("_T")


def read_all(paths: Sequence[Path], parse: Callable[[Path], Any], use: Callable[[Path, Any], _T]) -> list[_T]:
    """What ``use`` makes of each file's data; ``parse`` gets the data from YAML where they are not compiled yet.

    ``use`` checks the data, compiled or not. The paths are files of one folder. Raises what the two raise.
    """
    name = compiled_name(paths)
    known = _load(paths, name)
    data = known if known is not None else {path.name: parse(path) for path in paths}
    made = [use(path, data[path.name]) for path in paths]
    if known is None and name is not None and not sys.dont_write_bytecode:
        # what is wrong with the data was said above: only right ones are kept
        save(paths[0].parent / OWN, name, data)
    return made


def compiled_name(paths: Sequence[Path]) -> str | None:
    """The name of the compiled file that belongs to these files as they are now; None when one cannot be read."""
    if not paths:
        return None
    digest = hashlib.sha256()
    try:
        for path in paths:
            data = path.read_bytes()
            digest.update(f"{path.name}\0{len(data)}\0".encode() + data)
    except OSError:
        return None
    return f"{paths[0].parent.name.lstrip('_')}-{digest.hexdigest()[:32]}.json"


def save(folder: Path, name: str, data: dict[str, Any]) -> None:
    """Writes a compiled file, and takes away those that it follows; nothing where that is not allowed.

    Data that JSON would change, such as keys that are no text, are not kept.
    """
    with contextlib.suppress(OSError, TypeError, ValueError):
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        if json.loads(text) != data:
            return
        folder.mkdir(exist_ok=True)
        partial = folder / f"{name}.{os.getpid()}"
        partial.write_text(text, encoding="utf-8")
        partial.replace(folder / name)
        for old in folder.glob(f"{name.rpartition('-')[0]}-*.json"):
            if old.name != name:
                old.unlink()


def _load(paths: Sequence[Path], name: str | None) -> dict[str, Any] | None:
    if name is None:
        return None
    for folder in (PACKED, OWN):
        with contextlib.suppress(OSError, ValueError):
            data = json.loads((paths[0].parent / folder / name).read_bytes())
            if isinstance(data, dict) and all(path.name in data for path in paths):
                return data
    return None
