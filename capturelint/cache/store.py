"""Entries by key in a folder of their own: written whole or not at all, checked when read, the oldest dropped first."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: the layout of the folder and of an entry's file; another number keeps versions of it apart
LAYOUT = "v1"
#: what a cache may take up, in bytes, before the entries that were not used for longest go
MAX_SIZE = 256 * 1024 * 1024
_MAGIC = b"capturelint cache 1\n"
_KEY = re.compile(r"[0-9a-f]{64}\Z")
_PARTIAL = re.compile(r"[0-9a-f]{64}\.\d+\.partial\Z")
#: a file that is being written is there for moments; one as old as this is what a killed run left
_ABANDONED_SECONDS = 3600.0
_TAG = "CACHEDIR.TAG"
_TAG_TEXT = "Signature: 8a477f597d28d172789f06886806bc55\n# A cache of capturelint; see https://bford.info/cachedir/\n"


@dataclass(frozen=True, slots=True)
class _Entry:
    path: Path
    size: int
    used: float


@dataclass(frozen=True)
class Store:
    """Keys are SHA-256 digests in hexadecimal. Runs side by side may share a store; each entry is one file."""

    folder: Path

    def get(self, key: str) -> bytes | None:
        """What was put under a key; None when there is nothing, or nothing that can be read whole."""
        if not _KEY.match(key):
            return None  # named by an entry that is broken itself
        path = self._path(key)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        head = len(_MAGIC) + hashlib.sha256().digest_size
        if not data.startswith(_MAGIC) or hashlib.sha256(data[head:]).digest() != data[len(_MAGIC) : head]:
            return None
        try:
            content = zlib.decompress(data[head:])
        except zlib.error:
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # used just now: the last to go
        return content

    def put(self, key: str, content: bytes) -> None:
        """Keeps ``content``, and drops old entries where there are too many; does nothing where that cannot be done."""
        packed = zlib.compress(content, 1)
        path = self._path(key)
        partial = path.with_name(f"{key}.{os.getpid()}.partial")
        try:
            self._make(path.parent)
            partial.write_bytes(_MAGIC + hashlib.sha256(packed).digest() + packed)
            partial.replace(path)  # at once: whoever reads sees the old entry or the new one
        except OSError:
            with contextlib.suppress(OSError):
                partial.unlink()
            return
        self.prune()

    def size(self) -> tuple[int, int]:
        """How many entries there are, and their bytes."""
        entries = list(self._entries())
        return len(entries), sum(entry.size for entry in entries)

    def prune(self, max_size: int = MAX_SIZE) -> int:
        """Drops the entries unused for longest until at most ``max_size`` bytes are left; how many went."""
        self._drop_abandoned()
        entries = sorted(self._entries(), key=lambda entry: entry.used)
        excess = sum(entry.size for entry in entries) - max_size
        dropped = 0
        for entry in entries:
            if excess <= 0:
                break
            with contextlib.suppress(OSError):
                entry.path.unlink()
                dropped += 1
            excess -= entry.size
        return dropped

    def clean(self) -> int:
        """Deletes what the cache wrote, and nothing else that may lie in the folder; how many entries went."""
        dropped = self.prune(0)
        with contextlib.suppress(OSError):
            for folder in (self.folder / LAYOUT).iterdir():
                with contextlib.suppress(OSError):
                    folder.rmdir()
            (self.folder / LAYOUT).rmdir()
            if (self.folder / _TAG).read_text(encoding="utf-8") == _TAG_TEXT:
                (self.folder / _TAG).unlink()
            self.folder.rmdir()
        return dropped

    def _path(self, key: str) -> Path:
        assert _KEY.match(key), key
        return self.folder / LAYOUT / key[:2] / key

    def _make(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        tag = self.folder / _TAG
        if not tag.exists():
            tag.write_text(_TAG_TEXT, encoding="utf-8")  # backups leave such a folder out

    def _files(self) -> Iterator[os.DirEntry[str]]:
        with contextlib.suppress(OSError), os.scandir(self.folder / LAYOUT) as folders:
            for folder in folders:
                with contextlib.suppress(OSError), os.scandir(folder) as files:
                    yield from files

    def _entries(self) -> Iterator[_Entry]:
        for file in self._files():
            if _KEY.match(file.name):
                with contextlib.suppress(OSError):
                    found = file.stat()
                    yield _Entry(Path(file.path), found.st_size, found.st_mtime)

    def _drop_abandoned(self) -> None:
        for file in self._files():
            if _PARTIAL.match(file.name):
                with contextlib.suppress(OSError):
                    if time.time() - file.stat().st_mtime > _ABANDONED_SECONDS:
                        Path(file.path).unlink()
