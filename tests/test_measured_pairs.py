"""Each snippet that a GPU captured, in a generated region: a finding where capture failed, none where it worked.

What is reported otherwise is listed here with its reason, and a difference that is gone must leave the list.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pairs import BASES, INDEXES, LETTERS, OTHERS, VALUES, Snippet, snippets
from scoring import check

from capturelint.rulebook.rules import load_rulebook

RECORD = Path(__file__).resolve().parents[1] / "fixtures" / "gpu" / "index_pairs.json"
_HEAD = "import numpy as np\nimport torch\n\nfrom capturelint import capture_region\n\n"
_SHAPES = {"2-d": "8, 16", "1-d": "8"}

#: other snippets that are reported otherwise than they were measured, by reason
_OTHERWISE = {
    "captures: Python takes an object for equal to itself before it compares, and the objects are not told apart": [
        "t in [t]",
        "s in [s]",
        "s in {s}",
        "[s] == [s]",
        "(s, 1) == (s, 1)",
        "[v].index(v)",
        "[s, s + 1].index(s)",
        "[v].count(v)",
    ],
    "captures: torch answers for a tensor and itself without a look at the device": ["torch.equal(t, t)"],
    "fails: debug and info messages are only formatted where somebody switched them on, so they are possible": [
        "loud.debug('%s', t)",
        "loud.info('%s', s)",
        "loud.info('%d', s)",
        "loud.log(10, '%s', t)",
        "loud.debug(t)",
    ],
}
#: indexes whose rows are not found, by reason
_INDEXES_OTHERWISE = {
    "fails: a slice object that was made outside the region does not tell its bounds": ["slice with cuda bound"],
}


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return document


def outcome(record: dict[str, Any], snippet: Snippet) -> str:
    if snippet.kind == "other":
        word: str = record["others"][snippet.code]
        return word
    letters = record["pairs"][snippet.base][snippet.index][snippet.kind]
    letter = letters[record["values"].index(snippet.value)] if snippet.value else letters
    return next(word for word, each in LETTERS.items() if each == letter)


def program(name: str, rows: list[Snippet]) -> tuple[str, dict[int, Snippet]]:
    """A module with a region for each snippet, and which of them stands on which line."""
    first = rows[0]
    if first.kind == "other":
        lines = (_HEAD + first.prepare).splitlines()
        head, parameters = "@capture_region()", ""
    else:
        lines = [*_HEAD.splitlines(), f"base = {BASES[first.base]}", f"i = {INDEXES[first.index]}"]
        lines += [f"w{n} = {text.replace('x[', 'base[')}" for n, text in enumerate(VALUES.values())]
        head, parameters = f'@capture_region(inputs={{"x": "float32[{_SHAPES[first.base]}]"}})', "x"
    where: dict[int, Snippet] = {}
    for number, row in enumerate(rows):
        code = row.code.replace("= w", f"= w{list(VALUES).index(row.value)}") if row.value else row.code
        lines += ["", "", head, f"def region_{number}({parameters}):"]
        for line in code.splitlines():
            lines.append(f"    {line}")
            where[len(lines)] = row
    return "\n".join(lines) + "\n", where


def found(record: dict[str, Any], folder: Path) -> dict[Snippet, set[str]]:
    """The rules about failing captures that report each measured snippet, from one run."""
    files: dict[str, list[Snippet]] = {}
    for snippet in snippets():
        if outcome(record, snippet) in ("captured", "capture-error"):
            place = list(INDEXES).index(snippet.index) if snippet.index else "others"
            files.setdefault(f"pairs_{snippet.base.replace('-', '')}_{place}.py", []).append(snippet)
    where: dict[tuple[str, int], Snippet] = {}
    for name, rows in files.items():
        text, lines = program(name, rows)
        (folder / name).write_text(text, encoding="utf-8")
        where.update(((name, line), snippet) for line, snippet in lines.items())
    rules = load_rulebook().rules
    result = check(folder, folder)
    assert result.diagnostics == ()
    reported: dict[Snippet, set[str]] = {snippet: set() for snippet in where.values()}
    for finding in result.findings:
        if rules[finding.rule].consequence.value == "capture-error":
            reported[where[Path(finding.path).name, finding.span.line]].add(finding.rule)
    return reported


def known(record: dict[str, Any]) -> set[tuple[str, ...]]:
    """The differences that are listed; of an index, the rows that fail because of it and not because of the value."""
    rows = [snippet for snippet in snippets() if outcome(record, snippet) == "capture-error"]
    of_value = {(row.kind, row.base, row.value) for row in rows if row.index == "slice"}
    spots = {spot for spots in _INDEXES_OTHERWISE.values() for spot in spots}
    listed = {row for row in rows if row.index in spots and (row.kind, row.base, row.value) not in of_value}
    codes = {code for codes in _OTHERWISE.values() for code in codes}
    return {key(row) for row in listed} | {key(row) for row in snippets() if row.code in codes}


def key(snippet: Snippet) -> tuple[str, ...]:
    return (snippet.kind, snippet.base, snippet.index, snippet.value, snippet.code)


def test_findings_are_what_the_gpu_did(record: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    reported = found(record, tmp_path)
    differences = {
        key(snippet) for snippet, rules in reported.items() if bool(rules) is (outcome(record, snippet) == "captured")
    }
    print(f"{record['gpu']}, torch {record['torch']}: {len(reported)} snippets, {len(differences)} reported otherwise")
    for reason, names in (*_OTHERWISE.items(), *_INDEXES_OTHERWISE.items()):
        print(f"- {reason}: {', '.join(names)}")
    assert len(reported) > 1000
    assert differences == known(record)


def test_the_record_has_every_snippet(record: dict[str, Any]) -> None:
    assert record["letters"] == LETTERS
    assert record["values"] == list(VALUES)
    assert list(record["others"]) == OTHERS
    outcomes = Counter(outcome(record, snippet) for snippet in snippets())
    print(outcomes)
    assert set(outcomes) <= set(LETTERS)
    assert outcomes["lost"] < 100
