"""The store: whole entries or none, whatever becomes of its folder."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import REPOSITORY, clean_environment

from capturelint.cache.digests import digest
from capturelint.cache.location import default_folder
from capturelint.cache.store import MAX_SIZE, Store

KEYS = [digest((str(number),)) for number in range(8)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache")


def entry_file(store: Store, key: str) -> Path:
    (found,) = store.folder.rglob(key)
    return found


def test_gives_what_was_put(store: Store) -> None:
    assert store.get(KEYS[0]) is None
    store.put(KEYS[0], b"one")
    store.put(KEYS[1], b"")
    store.put(KEYS[0], b"another")
    assert (store.get(KEYS[0]), store.get(KEYS[1]), store.get(KEYS[2])) == (b"another", b"", None)
    assert store.size()[0] == 2


@pytest.mark.parametrize("cut", [0, 1, 10, 30, -1])
def test_an_entry_that_was_cut_short_is_none(store: Store, cut: int) -> None:
    store.put(KEYS[0], b"something" * 100)
    file = entry_file(store, KEYS[0])
    file.write_bytes(file.read_bytes()[:cut])
    assert store.get(KEYS[0]) is None


def test_an_entry_with_a_wrong_byte_is_none(store: Store) -> None:
    store.put(KEYS[0], b"something" * 100)
    file = entry_file(store, KEYS[0])
    data = bytearray(file.read_bytes())
    for place in range(len(data)):
        file.write_bytes(bytes(data[:place]) + bytes([data[place] ^ 1]) + bytes(data[place + 1 :]))
        assert store.get(KEYS[0]) is None


def test_a_folder_that_cannot_be_made_reads_as_empty(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    store = Store(tmp_path / "file" / "cache")
    store.put(KEYS[0], b"one")
    assert store.get(KEYS[0]) is None
    assert store.size() == (0, 0)
    assert store.prune() == 0
    assert store.clean() == 0


def test_a_folder_in_place_of_an_entry_is_none(store: Store) -> None:
    store.put(KEYS[0], b"one")
    file = entry_file(store, KEYS[0])
    file.unlink()
    file.mkdir()
    assert store.get(KEYS[0]) is None
    store.put(KEYS[0], b"two")
    assert store.get(KEYS[0]) is None
    assert [each.name for each in file.parent.iterdir()] == [KEYS[0]]


def test_the_entries_unused_for_longest_go_first(store: Store) -> None:
    for age, key in enumerate(KEYS):
        store.put(key, os.urandom(1000))
        os.utime(entry_file(store, key), (1_000_000 + age, 1_000_000 + age))
    assert store.get(KEYS[0]) is not None  # used just now
    count, size = store.size()
    assert count == len(KEYS)
    assert store.prune(size // 2) == 4
    assert [store.get(key) is not None for key in KEYS] == [True, False, False, False, False, True, True, True]


def test_a_put_keeps_the_size_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store.prune, "__defaults__", (5000,))
    for key in KEYS:
        store.put(key, os.urandom(1000))
    assert store.size()[1] <= 5000
    assert store.get(KEYS[-1]) is not None
    assert MAX_SIZE > 5000


def test_what_a_killed_run_left_goes_after_an_hour(store: Store) -> None:
    store.put(KEYS[0], b"one")
    left = entry_file(store, KEYS[0]).with_name(f"{KEYS[0]}.123.partial")
    left.write_bytes(b"half")
    store.prune()
    assert left.exists()
    os.utime(left, (time.time() - 4000, time.time() - 4000))
    store.prune()
    assert not left.exists()


def test_clean_leaves_what_others_put_there(store: Store) -> None:
    store.put(KEYS[0], b"one")
    stray = store.folder / "notes.txt"
    stray.write_text("mine", encoding="utf-8")
    assert store.clean() == 1
    assert [each.name for each in store.folder.iterdir()] == ["notes.txt"]
    stray.unlink()
    store.put(KEYS[0], b"one")
    store.clean()
    assert not store.folder.exists()


WRITER = """\
import sys
from pathlib import Path
from capturelint.cache.store import Store
store = Store(Path(sys.argv[1]))
while True:
    store.put(sys.argv[2], sys.argv[3].encode() * 200_000)
"""


def test_readers_beside_writers_that_get_killed_see_whole_entries(store: Store) -> None:
    def writer(letter: str) -> subprocess.Popen[bytes]:
        arguments = [sys.executable, "-c", WRITER, str(store.folder), KEYS[0], letter]
        return subprocess.Popen(arguments, env=clean_environment(PYTHONPATH=str(REPOSITORY)))

    writers = [writer("a"), writer("b")]
    whole = {b"a" * 200_000, b"b" * 200_000}
    seen = set()
    until = time.monotonic() + 3
    try:
        while time.monotonic() < until:
            seen.add(store.get(KEYS[0]))
    finally:
        for each in writers:
            each.kill()
            each.wait()
    assert seen - {None} <= whole
    assert seen & whole
    assert store.get(KEYS[0]) in whole


def test_the_user_folder_by_system() -> None:
    assert default_folder({"XDG_CACHE_HOME": "/elsewhere"}, "linux") == Path("/elsewhere/capturelint")
    assert default_folder({"XDG_CACHE_HOME": "relative"}, "linux") == Path.home() / ".cache" / "capturelint"
    assert default_folder({}, "darwin") == Path.home() / "Library" / "Caches" / "capturelint"
    assert default_folder({"LOCALAPPDATA": "C:/Users/me/Local"}, "win32") == Path(
        "C:/Users/me/Local", "capturelint", "Cache"
    )
    assert default_folder({}, "win32") is None
