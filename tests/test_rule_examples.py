"""The examples in the rule files are tests: bad ones give just the findings that they announce, good ones none."""

from __future__ import annotations

from pathlib import Path

import pytest

from capturelint.model import CheckResult, Confidence
from capturelint.rulebook import Example, load_rulebook

RULES = load_rulebook().rules
EXAMPLES = [
    pytest.param(code, example, id=f"{code}-{kind}-{number}")
    for code, rule in RULES.items()
    for kind, examples in (("bad", rule.page.bad), ("good", rule.page.good))
    for number, example in enumerate(examples)
]


#: reported by the verifier; the linter reports nothing here. tests/gpu runs these examples
OBSERVED = frozenset({"CG100", "CG600"})


def broken_files(example: Example) -> set[str]:
    """The files that are meant not to parse."""
    return {path for path, _, code in example.expected() if code == "CG000"}


@pytest.mark.parametrize(("code", "example"), EXAMPLES)
def test_it_compiles(code: str, example: Example) -> None:
    for path, text in example.sources().items():
        if path in broken_files(example):
            with pytest.raises(SyntaxError) as caught:
                compile(text, path, "exec")
            assert (path, caught.value.lineno, "CG000") in example.expected()
        else:
            compile(text, path, "exec")


@pytest.mark.parametrize(("code", "example"), EXAMPLES)
def test_check_finds_what_it_announces(
    code: str, example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, text in example.sources().items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    expected = {finding for finding in example.expected() if finding[2] not in OBSERVED}
    assert reported(check(tmp_path)) == expected


def check(root: Path) -> CheckResult:
    from capturelint.check import CheckOptions, check_paths
    from capturelint.config import Config

    options = CheckOptions(
        paths=(root,), config=Config(), select=(), ignore=(), min_confidence=Confidence.LIKELY, root=root
    )
    return check_paths(options)


def reported(result: CheckResult) -> set[tuple[str, int, str]]:
    """What counts, as (path, line, code): findings that are not suppressed and confident enough, and diagnostics."""
    found = {
        (finding.path, finding.span.line, finding.rule)
        for finding in result.findings
        if finding.suppressed is None and finding.confidence >= Confidence.LIKELY
    }
    return found | {(diagnostic.path, diagnostic.line, diagnostic.rule) for diagnostic in result.diagnostics}
