"""``rules/coverage.yaml``: every kind of hazard has an entry, and every rule that it names exists or is planned."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from capturelint.rulebook import load_rulebook

FILE = Path(__file__).resolve().parent.parent / "rules" / "coverage.yaml"
TABLE = yaml.safe_load(FILE.read_text(encoding="utf-8"))
KINDS: dict[str, dict[str, Any]] = TABLE["kinds"]
#: how many kinds the survey has, by the letter of their group
COUNTS = {"S": 34, "C": 11, "D": 9, "M": 19, "F": 13, "E": 9, "T": 18, "R": 9, "P": 12, "O": 15, "W": 7}
COUNTS |= {"L": 7, "X": 6, "N": 8, "K": 10}
#: rules about the tool itself, and what only the verifier reports
WITHOUT_KIND = re.compile(r"CG0\d\d|CG[16]00")


def named() -> set[str]:
    return {code for entry in KINDS.values() for code in entry.get("rules", ())}


def test_every_kind_has_an_entry() -> None:
    assert list(KINDS) == [f"{letter}{number:02}" for letter, last in COUNTS.items() for number in range(1, last + 1)]
    assert len(KINDS) == 187


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_says_what_covers_it_or_why_nothing_can(kind: str) -> None:
    entry = KINDS[kind]
    assert entry.keys() <= {"name", "rules", "not-static", "verifier"}
    assert entry["name"].strip()
    assert entry.get("rules") or entry.get("not-static")
    assert entry["verifier"] in (True, False, "in-part")
    assert len(set(entry.get("rules", ()))) == len(entry.get("rules", ()))


def test_names_are_told_apart() -> None:
    names = [entry["name"] for entry in KINDS.values()]
    assert len(set(names)) == len(names)


def test_every_rule_named_there_exists_or_is_planned() -> None:
    assert named() - load_rulebook().rules.keys() - set(TABLE["planned"]) == set()


def test_every_rule_covers_some_kind() -> None:
    rules = {code for code in load_rulebook().rules if not WITHOUT_KIND.fullmatch(code)}
    assert rules - named() == set()
