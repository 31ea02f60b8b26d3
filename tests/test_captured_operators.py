"""Each operator that a GPU captured, called in a generated region: findings where capture failed, none where it worked.

What could not be spelled and what was not measured is printed (``pytest -rP``), and never passed off as fine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from captured import Sample, module, region, samples, shares
from scoring import check

from capturelint.rulebook.captured import NOT_MEASURED, Captured, load_captured
from capturelint.rulebook.ops import load_ops

#: what may report an operator that never captures
RULES = {"CG101", "CG102", "CG105", "CG201", "CG401", "CG402"}
#: outcomes that hang on sizes, which a sample does not tell: why, then operators and arguments
BY_SIZE = {
    "sizes that differ are no longer compared": [
        *(("equal", arguments) for arguments in ("T1, T0", "T0, T1", "T2, T1", "T2, T0")),
    ],
    "of the three batches that captured two or three were empty": [
        ("linalg.eigh", "T3, UPLO='U'"),
        ("linalg.eigvalsh", "T3, UPLO='U'"),
        ("linalg.matrix_rank.hermitian", "T3, hermitian=True"),
        ("linalg.pinv.hermitian", "T3, hermitian=True"),
    ],
    "3000 elements in one dimension": [("mode", "T1")],
}
_LEFT_OUT = {pair for pairs in BY_SIZE.values() for pair in pairs}
_IN_A_FILE = 100


@pytest.fixture(scope="module")
def captured() -> Captured:
    return load_captured()


def spelled(captured: Captured) -> list[Sample]:
    return [
        sample
        for sample in samples(captured)
        if sample.fails is not None and (sample.operator, sample.arguments) not in _LEFT_OUT
    ]


def as_methods(captured: Captured) -> list[Sample]:
    """The samples whose operator is a method too, of the tensor that comes first."""
    table = load_ops()
    return [
        sample
        for sample in spelled(captured)
        if sample.arguments.startswith("T")
        and sample.call.startswith("torch.")
        and sample.call.count(".") == 1
        and table.lookup(f"torch.Tensor.{sample.call.removeprefix('torch.')}") is not None
    ]


def found(rows: Iterable[Sample], folder: Path, *, method: bool = False) -> Iterator[tuple[Sample, list[str]]]:
    """The rules that report the call of each sample, from one run."""
    rows = list(rows)
    where: dict[tuple[str, int], int] = {}
    for start in range(0, len(rows), _IN_A_FILE):
        part = rows[start : start + _IN_A_FILE]
        name = f"operators_{start}.py"
        text, lines = module(region(each, f"region_{i}", method=method) for i, each in enumerate(part))
        (folder / name).write_text(text, encoding="utf-8")
        where.update(((name, line), start + i) for i, line in enumerate(lines))
    result = check(folder, folder)
    assert result.diagnostics == ()
    rules: dict[int, list[str]] = {}
    for finding in result.findings:
        rules.setdefault(where[Path(finding.path).name, finding.span.line], []).append(finding.rule)
    return ((row, rules.get(index, [])) for index, row in enumerate(rows))


def wrong(rows: Iterable[tuple[Sample, list[str]]]) -> list[str]:
    return [
        f"{row.call}({row.arguments}): {'fails' if row.fails else 'captures'}, reported as {rules or 'nothing'}"
        for row, rules in rows
        if (not set(rules) & RULES if row.fails else bool(rules))
    ]


def test_functions(captured: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = spelled(captured)
    print(f"{captured.gpu}, torch {captured.torch}. Operators: {shares(captured)}")
    undecided = Counter(sample.operator for sample in samples(captured) if sample.fails is None)
    print(f"Samples: {len(rows)} checked, {len(_LEFT_OUT)} by size, with both outcomes: {dict(undecided)}")
    assert wrong(found(rows, tmp_path)) == []


def test_methods(captured: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = as_methods(captured)
    assert len(rows) > 500
    assert wrong(found(rows, tmp_path, method=True)) == []


def test_every_operator_that_never_captures_is_spelled(captured: Captured) -> None:
    never = {name for name, operator in captured.operators.items() if operator.capture == "error"}
    assert len(never) == 34
    assert never <= {sample.operator for sample in spelled(captured) if sample.fails}


def test_left_out_shares_stay_small(captured: Captured) -> None:
    """Operators without a sample: properties, jiterator kernels, and those that the database calls in its own way."""
    missing = [n for n, o in captured.operators.items() if not o.samples and o.capture in ("ok", "error", "depends")]
    print("\n".join(missing))
    assert len(missing) <= 29
    known = {(sample.operator, sample.arguments) for sample in samples(captured)}
    assert known >= _LEFT_OUT


def test_what_was_not_measured_is_said(captured: Captured) -> None:
    assert captured.outcome("torch.linalg.inv") == "fails"
    assert captured.outcome("torch.linalg.qr") == NOT_MEASURED
    assert captured.outcome("torch.linalg.svd") == NOT_MEASURED  # on empty tensors alone
    assert captured.outcome("torch.dropout") == NOT_MEASURED
    assert captured.outcome("torch.abs") == "captures"
    assert captured.outcome("torch.nn.functional.one_hot") == "depends on its arguments"
    assert captured.gpu == "NVIDIA H200" and captured.torch.startswith("2.11")
