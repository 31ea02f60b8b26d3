"""The fixes that rule pages show are what ``--fix`` does, and pages say of every rule whether it has one."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixing import fixed_text

from capturelint.fixes import offer
from capturelint.rulebook.rules import FixExample, load_rulebook

RULES = load_rulebook().rules
WITH_FIX = {code: rule.page.fix for code, rule in RULES.items() if rule.page.fix is not None}
EXAMPLES = [
    pytest.param(code, example, id=f"{code}-{number}")
    for code, page in WITH_FIX.items()
    for number, example in enumerate(page.examples)
]


@pytest.mark.parametrize(("code", "example"), EXAMPLES)
def test_the_example_comes_out_as_the_page_says(
    code: str, example: FixExample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    after, left = fixed_text(tmp_path, example.before, unsafe=example.unsafe)
    assert after == example.after
    assert [finding.rule for finding in left.findings] == []


@pytest.mark.parametrize("code", WITH_FIX)
def test_each_kind_of_fix_has_an_example(code: str) -> None:
    page = WITH_FIX[code]
    assert (page.safe is not None) is any(not example.unsafe for example in page.examples)
    assert (page.unsafe is not None) is any(example.unsafe for example in page.examples)


@pytest.mark.parametrize(("code", "example"), [each for each in EXAMPLES if each.values[1].unsafe])
def test_an_unsafe_example_needs_the_option(
    code: str, example: FixExample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert code in {finding.rule for finding in fixed_text(tmp_path, example.before)[1].findings}


def test_pages_speak_of_every_rule_that_has_a_fix() -> None:
    with_the_hazard = {"CG501", "CG503", "CG901", "CG902"}
    about_comments = {"CG001", "CG002"}
    assert set(WITH_FIX) == offer.RULES | offer.FROM_CODE | with_the_hazard | about_comments
