"""The labelled cases: real bugs and right code, with what is found in each."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from scoring import CASES, Found, Score, recorded, score_all_cases, score_case

CASE_COUNT = 70


@pytest.fixture(scope="module")
def measured() -> tuple[dict[str, Score], dict[str, dict[str, Found]]]:
    return score_all_cases()


def test_every_case_can_be_checked(measured: tuple[dict[str, Score], dict[str, dict[str, Found]]]) -> None:
    scores, _ = measured
    assert scores.keys() == {"serving", "torch"}
    assert all(score.diagnostics == 0 and score.hazards > 0 for score in scores.values())


def test_each_case_is_found_as_recorded(measured: tuple[dict[str, Score], dict[str, dict[str, Found]]]) -> None:
    """After an intended change: ``python benchmarks/score.py --record``, and read the difference."""
    _, tables = measured
    assert tables == recorded(CASES)


def test_the_labels_fit_the_files() -> None:
    metas = sorted(CASES.glob("*/*/meta.yaml"))
    assert len(metas) == CASE_COUNT
    for file in metas:
        meta = yaml.safe_load(file.read_text(encoding="utf-8"))
        for entry in (meta["expect"] or []) + (meta["safe_lines"] or []):
            source = (file.parent / entry.get("file", "case.py")).read_text(encoding="utf-8").splitlines()
            assert source[entry["line"] - 1].strip(), f"{file.parent.name}: {entry}"


@pytest.mark.parametrize(
    ("meta", "found", "figures"),
    [
        pytest.param({"expect": [{"line": 3}, {"line": 5}]}, {"case.py:3": ["CG101"]}, (1, 2, 0, 0), id="one-of-two"),
        pytest.param(
            {"expect": [{"line": 3}, {"line": 5}], "match": "any"}, {"case.py:5": ["CG101"]}, (1, 1, 0, 0), id="any"
        ),
        pytest.param(
            {"expect": [{"line": 3}], "safe_lines": [{"line": 4}]},
            {"case.py:4": ["CG101"], "case.py:9": ["CG102"]},
            (0, 1, 1, 1),
            id="alarm-and-extra",
        ),
        pytest.param({"expect": [], "safe_lines": []}, {"case.py:4": ["CG101"]}, (0, 0, 1, 0), id="safe-case"),
        pytest.param({"expect": [{"line": 3, "alt_lines": [7]}]}, {"case.py:7": ["CG201"]}, (1, 1, 0, 0), id="alt"),
        pytest.param(
            {"expect": [{"line": 3}, {"line": 6, "required": False}]},
            {"case.py:3": ["CG101"], "case.py:6": ["CG101"]},
            (1, 1, 0, 0),
            id="not-required",
        ),
        pytest.param(
            {"expect": [{"line": 3, "file": "other.py"}]}, {"case.py:3": ["CG101"]}, (0, 1, 0, 1), id="other-file"
        ),
    ],
)
def test_score_of_a_case(meta: dict[str, Any], found: Found, figures: tuple[int, int, int, int]) -> None:
    score = score_case("case", meta, found)
    assert (score.found, score.hazards, score.false_alarms, score.extra) == figures
