"""Measures ``check`` against the labelled code in ``fixtures/truth`` and ``fixtures/cases``.

*Recall* counts the labelled hazards that carry a finding on one of their lines, *false alarms* the findings on code
that is labelled right, *extra* the findings on lines without a label. Each is counted as the figures are published.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from expectations import FIXTURES

from capturelint.config import Config, load_config
from capturelint.model import CheckResult, Confidence, Finding

TRUTH = FIXTURES / "truth"
CASES = FIXTURES / "cases"
FOUND = "found.json"

#: for one construct or case: the rules found, by line (``"10"``) or by file and line (``"case.py:10"``)
Found = dict[str, list[str]]
#: a (file name, line) of a case
Spot = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Score:
    found: int = 0
    hazards: int = 0
    false_alarms: int = 0
    extra: int = 0
    diagnostics: int = 0
    #: what was missed and what was flagged wrongly, for the reader
    notes: tuple[str, ...] = ()

    def __add__(self, other: Score) -> Score:
        return Score(
            self.found + other.found,
            self.hazards + other.hazards,
            self.false_alarms + other.false_alarms,
            self.extra + other.extra,
            self.diagnostics + other.diagnostics,
            self.notes + other.notes,
        )

    @property
    def recall(self) -> float:
        return self.found / self.hazards if self.hazards else 0.0

    def __str__(self) -> str:
        return (
            f"recall {100 * self.recall:.1f}% ({self.found}/{self.hazards}), false alarms {self.false_alarms}, "
            f"extra {self.extra}, diagnostics {self.diagnostics}"
        )


def check(path: Path, root: Path) -> CheckResult:
    """``check`` on ``path``, with the root's own configuration when it has one and the defaults otherwise."""
    from capturelint.check import CheckOptions, check_paths

    config = load_config(root, None) if (root / "capturelint.toml").is_file() else Config()
    return check_paths(
        CheckOptions(paths=(path,), config=config, select=(), ignore=(), min_confidence=Confidence.LIKELY, root=root)
    )


def lines_of(result: CheckResult, root: Path) -> Iterator[tuple[str, int, Finding]]:
    """The findings that count, each with its path relative to ``root`` and the line where it starts."""
    for finding in result.findings:
        if finding.suppressed is None:
            path = Path.cwd() / finding.path
            yield path.resolve().relative_to(root.resolve()).as_posix(), finding.span.line, finding


def score_truth(root: Path = TRUTH) -> tuple[Score, dict[str, Found]]:
    """The score over the measured constructs, from one run, and what was found in each that has a finding."""
    result = check(root, root)
    table: dict[str, Found] = {}
    for path, line, finding in lines_of(result, root):
        table.setdefault(Path(path).stem, {}).setdefault(str(line), []).append(finding.rule)
    score = Score(diagnostics=len(result.diagnostics))
    for row in truth_rows(root):
        score += _score_construct(row, table.get(row["construct"], {}))
    return score, _ordered(table)


def truth_rows(root: Path = TRUTH) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((root / "truth.json").read_text(encoding="utf-8"))["constructs"]
    return rows


def _score_construct(row: Mapping[str, Any], found: Found) -> Score:
    name = row["construct"]
    if row["expect"] == "safe":
        rules = sorted({rule for rules in found.values() for rule in rules})
        return Score(false_alarms=1, notes=(f"false alarm  {name}: {', '.join(rules)}",)) if found else Score()
    lines = {str(line) for line in row["lines"]}
    extra = len(found.keys() - lines)
    if found.keys() & lines:
        return Score(found=1, hazards=1, extra=extra)
    return Score(hazards=1, extra=extra, notes=(f"missed       {name}:{row['lines'][0]} ({row['expect']})",))


def score_cases(root: Path) -> tuple[Score, dict[str, Found]]:
    """The score over a directory of cases, a run for each case, and what was found in each that has a finding."""
    score, table = Score(), {}
    for meta_file in sorted(root.glob("*/meta.yaml")):
        case = meta_file.parent
        result = check(case, case)
        found: Found = {}
        for path, line, finding in lines_of(result, case):
            found.setdefault(f"{Path(path).name}:{line}", []).append(finding.rule)
        meta = yaml.safe_load(meta_file.read_text(encoding="utf-8"))
        score += score_case(case.name, meta, found) + Score(diagnostics=len(result.diagnostics))
        if found:
            table[case.name] = found
    return score, _ordered(table)


def score_case(name: str, meta: Mapping[str, Any], found: Found) -> Score:
    expect = meta.get("expect") or []
    hits = {(file, int(line)) for file, _, line in (spot.rpartition(":") for spot in found)}
    beyond = {_spot(entry) for entry in expect if entry.get("required") is False}
    want = {_spot(entry) for entry in expect} - beyond
    _accept_alternatives(expect, hits, want)
    got = want & hits
    # In a case without a bug every finding is a false alarm, wherever it stands.
    wrong = (hits & {_spot(entry) for entry in meta.get("safe_lines") or []}) - want if expect else set(hits)
    more = hits - want - wrong - beyond
    one_cause = meta.get("match") == "any" and bool(want)
    missed = set() if one_cause and got else want - got
    notes = [f"missed       {name}/{file}:{line}" for file, line in sorted(missed)]
    notes += [f"false alarm  {name}/{f}:{n}: {', '.join(found.get(f'{f}:{n}', []))}" for f, n in sorted(wrong)]
    return Score(
        found=int(bool(got)) if one_cause else len(got),
        hazards=1 if one_cause else len(want),
        false_alarms=len(wrong),
        extra=len(more),
        notes=tuple(notes),
    )


def _accept_alternatives(expect: list[dict[str, Any]], hits: set[Spot], want: set[Spot]) -> None:
    """Another acceptable line for the same finding counts as the line itself."""
    for entry in expect:
        file, _ = key = _spot(entry)
        for line in entry.get("alt_lines") or []:
            if (file, line) in hits:
                hits.add(key)
                if (file, line) not in want:
                    hits.discard((file, line))


def _spot(entry: Any) -> Spot:
    if isinstance(entry, dict):
        return entry.get("file", "case.py"), entry["line"]
    return "case.py", int(entry)


def _ordered(table: dict[str, Found]) -> dict[str, Found]:
    return {name: {spot: sorted(table[name][spot]) for spot in sorted(table[name])} for name in sorted(table)}


def score_all_cases() -> tuple[dict[str, Score], dict[str, dict[str, Found]]]:
    """Scores and findings for each directory of cases."""
    both = {directory.name: score_cases(directory) for directory in sorted(CASES.iterdir()) if directory.is_dir()}
    return {name: score for name, (score, _) in both.items()}, {name: table for name, (_, table) in both.items()}


def recorded(root: Path) -> Any:
    return json.loads((root / FOUND).read_text(encoding="utf-8"))


def record(root: Path, table: Mapping[str, Any]) -> None:
    (root / FOUND).write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
