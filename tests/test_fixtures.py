"""The programs under ``fixtures/programs`` are reported exactly as their comments say."""

from __future__ import annotations

from pathlib import Path

import pytest
from expectations import (
    PROGRAMS,
    Expectations,
    LabelError,
    Mark,
    differences,
    parse_labels,
    programs,
    python_files,
    read_labels,
    root_of,
)
from scoring import check, lines_of

RULES = [
    *("CG001", "CG002", "CG101", "CG102", "CG103", "CG104", "CG105", "CG201", "CG202"),
    *("CG301", "CG302", "CG303", "CG304", "CG401", "CG402", "CG403", "CG501", "CG502", "CG601", "CG602", "CG603"),
    *("CG503", "CG504", "CG505", "CG506", "CG507", "CG508"),
    *("CG203", "CG901", "CG902", "CG903", "CG904"),
    *("CG704", "CG705", "CG802", "CG804", "CG805", "CG806", "CG808", "CG809", "CG905", "CG906"),
]
#: programs in which everything is right: they carry no label at all
CLEAN = {"decode_runner_clean", "host_metadata.py", "lookalikes.py", "train_step_clean.py"}
EVERY = pytest.mark.parametrize("program", programs(), ids=lambda program: program.name)


@EVERY
def test_program_is_reported_as_labelled(program: Path) -> None:
    root = root_of(program)
    found = [Mark(path, line, finding.rule) for path, line, finding in lines_of(check(program, root), root)]
    assert "\n".join(differences(read_labels(program), found, root)) == ""


@EVERY
def test_program_compiles(program: Path) -> None:
    for file in python_files(program):
        compile(file.read_text(encoding="utf-8"), str(file), "exec")


def test_every_rule_is_expected_somewhere() -> None:
    expected = {mark.rule for program in programs() for mark in read_labels(program).expected}
    assert sorted(expected) == sorted(RULES)


def test_clean_programs_carry_no_label() -> None:
    assert {program.name for program in programs() if read_labels(program) == Expectations()} == CLEAN


def test_labels_are_read_from_comments_alone() -> None:
    source = 'x = "# expect: CG101"\ny = f(x)  # noqa  # expect: CG101, CG401 -- both  # todo: CG503\n'
    labels = parse_labels(source, "a.py")
    assert labels.expected == {Mark("a.py", 2, "CG101"): 1, Mark("a.py", 2, "CG401"): 1}
    assert labels.todo == {Mark("a.py", 2, "CG503"): 1}


def test_a_code_that_stands_twice_means_two_findings() -> None:
    assert parse_labels("f()  # expect: CG401, CG401\n", "a.py").expected == {Mark("a.py", 1, "CG401"): 2}


@pytest.mark.parametrize("label", ["expect:", "expect: CG1", "todo: write this", "expect: CG101 CG102", "todo: CG101,"])
def test_a_label_that_is_no_list_of_codes_is_an_error(label: str) -> None:
    with pytest.raises(LabelError, match=r"a\.py:1"):
        parse_labels(f"f()  # {label}\n", "a.py")


def test_differences_name_what_is_missing_unexpected_and_due() -> None:
    labels = parse_labels("a()  # expect: CG101\nb()  # todo: CG503\nc()  # expect: CG401, CG401\n", "a.py")
    found = [Mark("a.py", 2, "CG503"), Mark("a.py", 3, "CG401"), Mark("a.py", 3, "CG402")]
    assert [problem.splitlines()[0] for problem in differences(labels, found, PROGRAMS)] == [
        "a.py:1 CG101: missing",
        "a.py:2 CG503: found, though labelled todo: make it expect",
        "a.py:3 CG401: missing",
        "a.py:3 CG402: not expected",
    ]
    assert differences(parse_labels("a()  # todo: CG503\n", "a.py"), [], PROGRAMS) == []
