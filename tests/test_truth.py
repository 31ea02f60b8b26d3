"""Recall and false alarms on the constructs that were measured on a GPU."""

from __future__ import annotations

import pytest
from scoring import TRUTH, Found, Score, recorded, score_truth, truth_rows

#: what a release may not fall below
MIN_RECALL = 0.65
MAX_FALSE_ALARMS = 3
HAZARDS, SAFE = 99, 86


@pytest.fixture(scope="module")
def measured() -> tuple[Score, dict[str, Found]]:
    return score_truth()


def test_recall(measured: tuple[Score, dict[str, Found]]) -> None:
    score, _ = measured
    assert score.hazards == HAZARDS
    assert score.recall >= MIN_RECALL, "\n".join((str(score), *score.notes))


def test_false_alarms(measured: tuple[Score, dict[str, Found]]) -> None:
    score, _ = measured
    assert score.false_alarms <= MAX_FALSE_ALARMS, "\n".join((str(score), *score.notes))
    assert score.diagnostics == 0


def test_each_construct_is_found_as_recorded(measured: tuple[Score, dict[str, Found]]) -> None:
    """After an intended change: ``python benchmarks/score.py --record``, and read the difference."""
    _, table = measured
    assert table == recorded(TRUTH)


def test_the_labels_fit_the_files() -> None:
    rows = truth_rows()
    assert len(rows) == HAZARDS + SAFE
    assert sum(row["expect"] == "safe" for row in rows) == SAFE
    assert {row["construct"] for row in rows} == {file.stem for file in TRUTH.glob("*.py")}
    for row in rows:
        source = (TRUTH / f"{row['construct']}.py").read_text(encoding="utf-8").splitlines()
        assert all(source[line - 1].strip() for line in row.get("lines", [])), row["construct"]
        assert bool(row.get("lines")) == (row["expect"] != "safe"), row["construct"]
