"""The compiled form of ``rules/``: says what the YAML says, is never stale, and is done without where it must be."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from capturelint.errors import RulebookError
from capturelint.rulebook import compiled, ops, presets, rules, rules_directory
from capturelint.rulebook.build import compile_rules


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the rules that nothing was compiled of yet."""
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    target = tmp_path / "rules"
    shutil.copytree(rules_directory(), target, ignore=shutil.ignore_patterns("__pycache__"))
    yield target
    for load in (rules._load, ops._load, presets.load_presets):
        load.cache_clear()


def load_anew(folder: Path) -> tuple[dict[str, rules.Rule], ops.OpTable, dict[str, presets.Preset]]:
    for load in (rules._load, ops._load, presets.load_presets):
        load.cache_clear()
    return (
        dict(rules.load_rulebook(folder).rules),
        ops.load_ops(folder / "ops"),
        dict(presets.load_presets(folder)),
    )


def kept(folder: Path) -> list[Path]:
    return sorted(folder.rglob("__pycache__/*"))


def test_compiled_rules_are_those_of_the_yaml(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_anew(folder)
    assert [file.name.split("-")[0] for file in kept(folder)] == ["rules", "ops", "presets"]
    monkeypatch.setattr("yaml.load", lambda *_, **__: pytest.fail("the YAML was read again"))
    again = load_anew(folder)
    assert again[0] == first[0]
    assert again[2] == first[2]
    assert list(again[1].names()) == list(first[1].names())
    assert all(again[1].lookup(name) == first[1].lookup(name) for name in first[1].names())
    assert again[1].predicates == first[1].predicates
    assert again[1].optimizers == first[1].optimizers


def test_an_edited_rule_counts_at_once_even_with_the_old_time_and_size(folder: Path) -> None:
    assert load_anew(folder)[0]["CG101"].name == "host-scalar-read"
    file = folder / "CG101.yaml"
    before = file.stat()
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("name: host-scalar-read", "name: host-scalar-seen", 1), encoding="utf-8")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    assert load_anew(folder)[0]["CG101"].name == "host-scalar-seen"
    assert len([each for each in kept(folder) if each.name.startswith("rules-")]) == 1


def test_an_added_and_a_deleted_file_count_at_once(folder: Path) -> None:
    assert "mine" not in load_anew(folder)[2]
    (folder / "presets" / "mine.yaml").write_text("version: 1\nname: mine\nsummary: ours\n", encoding="utf-8")
    assert "mine" in load_anew(folder)[2]
    (folder / "presets" / "mine.yaml").unlink()
    assert "mine" not in load_anew(folder)[2]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff\xfe"])
def test_a_broken_compiled_file_reads_as_none(folder: Path, content: bytes) -> None:
    first = load_anew(folder)
    for file in kept(folder):
        file.write_bytes(content)
    assert load_anew(folder)[0] == first[0]


def test_wrong_rules_are_not_kept(folder: Path) -> None:
    (folder / "presets" / "bad.yaml").write_text("version: 2\nname: bad\nsummary: wrong\n", encoding="utf-8")
    with pytest.raises(RulebookError, match=r"bad\.yaml: version: should be 1"):
        load_anew(folder)
    assert not (folder / "presets" / "__pycache__").exists()


def test_nothing_is_written_where_python_writes_no_bytecode(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    assert "CG101" in load_anew(folder)[0]
    assert kept(folder) == []


def test_data_that_json_would_change_are_not_kept(tmp_path: Path) -> None:
    compiled.save(tmp_path / "kept", "a-1.json", {"a.yaml": {1: "one"}})
    assert not (tmp_path / "kept").exists()


def test_a_wheel_gets_what_fits_its_yaml(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    packed = tmp_path / "_rules"  # as the wheel calls the folder
    shutil.copytree(folder, packed)
    for file, place in compile_rules(folder, scratch):
        (packed / place).parent.mkdir(exist_ok=True)
        shutil.copy(file, packed / place)
        assert json.loads(file.read_bytes())
    monkeypatch.setattr("yaml.load", lambda *_, **__: pytest.fail("the YAML was read"))
    found = load_anew(packed)
    assert "CG101" in found[0]
    assert "vllm" in found[2]
    assert found[1].lookup("torch.add") is not None
    assert kept(packed) == []
