"""Safe fixes keep what programs compute, on the CPU here and on a GPU as recorded; all fixtures can be fixed."""

from __future__ import annotations

import ast
import json
from collections import Counter
from pathlib import Path

import pytest
from fix_programs import FIXES, Case, cases, differences, files, loaded, made, ran, tensors
from fixing import fixed

from capturelint.check import CheckOptions, check_paths
from capturelint.config import Config
from capturelint.fixes.edits import wanted
from capturelint.model import Confidence, Finding

ROOT = FIXES.parents[1]
RECORD = ROOT / "fixtures" / "gpu" / "fixes.json"
SEEDS = range(3)


def after_fixing(file: Path, *, unsafe: bool) -> tuple[str, list[str]]:
    """A file's text after fixing, and the rules that still report it."""
    outcome = fixed(file, unsafe=unsafe)
    ((_, data),) = outcome.after.items()
    return data.decode(), [finding.rule for finding in outcome.result.findings]


@pytest.mark.parametrize("file", files("safe"), ids=lambda file: file.stem)
def test_safe_fixes_leave_no_finding(file: Path) -> None:
    text, left = after_fixing(file, unsafe=False)
    assert text != file.read_text(encoding="utf-8")
    assert left == []


@pytest.mark.parametrize("file", files("unsafe"), ids=lambda file: file.stem)
def test_unsafe_fixes_leave_no_finding_and_are_not_taken_for_safe(file: Path) -> None:
    text, left = after_fixing(file, unsafe=True)
    ast.parse(text)
    assert left == []
    assert not fixed(file).changed


ON_CPU = [case for case in cases(files("safe")) if "NEEDS_GPU" not in case.file.read_text(encoding="utf-8")]


@pytest.mark.parametrize("case", ON_CPU, ids=lambda case: case.id)
def test_the_fixed_program_does_the_same_on_the_cpu(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    before = loaded(case.file.read_text(encoding="utf-8"), "cpu")
    after = loaded(after_fixing(case.file, unsafe=False)[0], "cpu")
    if case.expected:
        from verifier.emulated import emulate

        emulate(monkeypatch)
        assert differences(tensors(after[case.name]()), tensors(after[case.expected]())) == []
        return
    for seed in SEEDS:
        inputs = made(case.inputs, seed, "cpu")
        assert differences(ran(before[case.name], inputs), ran(after[case.name], inputs)) == []


@pytest.mark.skipif(not RECORD.exists(), reason="not measured yet")
def test_a_gpu_captured_every_fixed_program_and_replayed_it_right() -> None:
    rows = {row["case"]: row for row in json.loads(RECORD.read_text(encoding="utf-8"))["rows"]}
    assert sorted(rows) == sorted(case.id for case in cases(files("safe")))
    for name, row in rows.items():
        assert (row["fixed"], row["differences"]) == ("captured", []), name
        assert row["before"] != "captured and right", name


# -- all fixtures ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["programs", "cases", "truth"])
def test_fixtures_lose_what_has_a_fix_and_gain_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    root = ROOT / "fixtures" / name
    found = check_paths(CheckOptions((root,), Config(), (), (), Confidence.LIKELY, root))
    outcome = fixed(root, unsafe=True)
    assert outcome.total > 10
    for data in outcome.after.values():
        ast.parse(data)
    assert [each for each in outcome.result.findings if wanted(each, unsafe=True)] == []
    assert outcome.result.diagnostics == found.diagnostics
    assert Counter(map(place, outcome.result.findings)) - Counter(map(place, found.findings)) == Counter()


def place(finding: Finding) -> tuple[str, str]:
    return finding.path, finding.rule


def test_fixed_constructs_compute_what_they_did(monkeypatch: pytest.MonkeyPatch) -> None:
    """Safe fixes of the measured constructs, wherever the CPU runs the construct at all."""
    monkeypatch.chdir(ROOT)
    outcome = fixed(ROOT / "fixtures" / "truth")
    compared = []
    for name in outcome.changed:
        (case,) = cases([ROOT / name])
        inputs = made(case.inputs, 0, "cpu")
        try:
            expected = ran(loaded(outcome.before[name].decode(), "cpu")[case.name], inputs)
        except (AssertionError, RuntimeError):
            continue  # no GPU, and it asks for one in a way that `loaded` does not see
        after = loaded(outcome.after[name].decode(), "cpu")[case.name]
        if "capturable=True" not in outcome.after[name].decode():  # which torch refuses on the CPU
            assert differences(expected, ran(after, inputs)) == [], name
            compared.append(case.file.stem)
    assert len(compared) >= 10, compared
