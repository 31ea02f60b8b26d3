"""The pages under docs/ are current, and links in the documents lead to what is there."""

from __future__ import annotations

import re
import runpy
from functools import cache
from pathlib import Path

import pytest
import yaml

from capturelint.rulebook.presets import load_presets, read_preset
from capturelint.rulebook.rules import load_rulebook

ROOT = Path(__file__).resolve().parent.parent
GENERATED = ROOT / "docs" / "rules"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "fixtures").glob("*.md")])
_LINK = re.compile(r"(?<!!)\[(?:[^\]\[]|\[[^\]]*\])*\]\((?P<target>[^)\s]+)\)")
_CODE = re.compile(r"`[^`\n]+`")
_FENCE = re.compile(r"^(`{3,})[^\n]*\n.*?^\1\s*$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow  # so that who edits a rule can run the quick tests before the pages are written anew
def test_a_page_for_every_rule_is_there_and_current() -> None:
    pages = runpy.run_path(str(ROOT / "docs" / "generate.py"))["pages"]()
    found = {file.name: file.read_text(encoding="utf-8") for file in GENERATED.glob("*.md")}
    assert sorted(found) == sorted(pages), "run python docs/generate.py"
    stale = [name for name, text in pages.items() if found[name] != text]
    assert stale == [], "run python docs/generate.py"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(document: Path) -> None:
    text = _CODE.sub("", _FENCE.sub("", document.read_text(encoding="utf-8")))
    broken = [target for target in _targets(text) if not _is_there(document, target)]
    assert broken == []


def _targets(text: str) -> list[str]:
    return [match["target"] for match in _LINK.finditer(text) if "://" not in match["target"]]


def _is_there(document: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = (document.parent / path).resolve() if path else document
    if not file.exists():
        return False
    return not anchor or anchor in _anchors(file)


@cache
def _anchors(file: Path) -> frozenset[str]:
    """The names that headings get on GitHub and GitLab."""
    text = _FENCE.sub("", file.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)


def test_the_preset_that_is_shown_can_be_read(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "presets.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"<!-- preset -->\n```yaml\n(.*?)```", text, re.DOTALL)
    (tmp_path / "mine.yaml").write_text(shown, encoding="utf-8")
    preset = read_preset(tmp_path / "mine.yaml")
    assert (preset.name, preset.starts_capture, preset.flags) == ("mine", ("Tape",), {"*use_tape*": True})
    explained = set(re.findall(r"`([a-z-]+)`", "".join(re.findall(r"^\| (`.*?) \|", text, re.MULTILINE))))
    assert set(yaml.safe_load(shown)) - {"version", "name", "summary"} <= explained
    for name, known in load_presets().items():
        assert f"| `{name}` | {known.summary} |" in text


def test_the_table_of_fixes_names_every_rule_that_has_one() -> None:
    fixes = {code for code, rule in load_rulebook().rules.items() if rule.page.fix is not None}
    index = (GENERATED / "README.md").read_text(encoding="utf-8")
    assert fixes == set(re.findall(r"^\| \[(CG\d{3})\].*\| (?:un)?safe[^|]*\|$", index, re.MULTILINE))
    assert f"fixes for {len(fixes)} rules" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
