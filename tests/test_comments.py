"""Comments and marks that do nothing: what is said of each, and what is left when they are taken out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from conftest import write_files

from capturelint.check import CheckOptions, check_paths
from capturelint.cli.main import main
from capturelint.config import Config
from capturelint.model import Applicability, CheckResult, Confidence, Finding

HEAD = "import torch\n\nfrom capturelint import capture_region\n\n\n"
Check = Callable[..., CheckResult]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Checks one file, ``a.py``, which begins with ``HEAD``."""
    monkeypatch.chdir(tmp_path)

    def run(text: str, *, ignore: Sequence[str] = (), least: Confidence = Confidence.LIKELY) -> CheckResult:
        write_files(tmp_path, {"a.py": HEAD + text})
        options = CheckOptions((tmp_path / "a.py",), Config(), (), tuple(ignore), least, tmp_path)
        return check_paths(options)

    return run


def about(result: CheckResult, rule: str) -> list[tuple[int, str]]:
    """Lines (the first after ``HEAD`` is 1) and messages of a rule's findings."""
    return [(f.span.line - HEAD.count("\n"), f.message) for f in result.findings if f.rule == rule]


def taken_out(text: str, finding: Finding) -> str:
    """``text`` (which follows ``HEAD``) after the fix of a finding about its comments."""
    assert finding.fix is not None
    (edit,) = finding.fix.edits
    lines = (HEAD + text).split("\n")
    starts = [sum(len(line) + 1 for line in lines[:index]) for index in range(len(lines))]
    start = starts[edit.span.line - 1] + edit.span.column - 1
    end = starts[edit.span.end_line - 1] + edit.span.end_column - 1
    return (HEAD + text)[len(HEAD) : start] + edit.text + (HEAD + text)[end:]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1  # capturelint: ignore[CG101] why\n", "x = 1\n"),
        ("x = 1  # capturelint: ignore[CG101] why", "x = 1"),
        ("# capturelint: ignore[CG101] why\nx = 1\n", "x = 1\n"),
        ("x = 1\n# capturelint: file-ignore[CG101] why", "x = 1\n"),
        ("x = 1  # type: ignore  # capturelint: ignore[CG101]\n", "x = 1  # type: ignore\n"),
        ("x = 1  # capturelint: ignore[CG101] why # type: ignore\n", "x = 1  # type: ignore\n"),
        ("x = 1  # noqa: CG101\n", "x = 1\n"),
        ("x = 1  # noqa: E501, CG101, F401\n", "x = 1  # noqa: E501, F401\n"),
        ("x = 1  # NOQA:cg101,E501\n", "x = 1  # NOQA:E501\n"),
        ("x = 1  # noqa: CG101 said why\n", "x = 1  # said why\n"),
        ("x = 1  # noqa: CG101  # and more\n", "x = 1  # and more\n"),
        ("\tx = '\u2028\x85'  # capturelint: ignore[host-scalar-read]\n", "\tx = '\u2028\x85'\n"),
    ],
)
def test_an_unused_suppression_can_be_taken_out(check: Check, before: str, after: str) -> None:
    wrap = "if True:\n" if before.startswith("\t") else ""
    (found,) = [finding for finding in check(wrap + before).findings if finding.rule == "CG001"]
    assert found.fix is not None
    assert found.fix.applicability is Applicability.SAFE
    assert taken_out(wrap + before, found) == wrap + after


REGION = '@capture_region(inputs={{"x": "float32[8]"}})\ndef f(x: torch.Tensor):\n    return x.item(){}\n'


@pytest.mark.parametrize(
    ("comment", "unused", "after"),
    [
        ("# capturelint: ignore[CG101, CG103] why", "CG103", "# capturelint: ignore[CG101] why"),
        ("# capturelint: ignore[CG103,CG101] why", "CG103", "# capturelint: ignore[CG101] why"),
        ("# capturelint: ignore[CG103 CG101 CG104]", "CG103, CG104", "# capturelint: ignore[CG101]"),
        ("# noqa: E501, CG103, CG101 long", "CG103", "# noqa: E501, CG101 long"),
    ],
)
def test_what_is_used_stays(check: Check, comment: str, unused: str, after: str) -> None:
    result = check(REGION.format("  " + comment))
    (found,) = [finding for finding in result.findings if finding.rule == "CG001"]
    assert found.message == f"unused suppression of {unused}"
    assert taken_out(REGION.format("  " + comment), found) == REGION.format("  " + after)
    assert [f.suppressed is not None for f in result.findings if f.rule == "CG101"] == [True]


def test_an_unknown_rule_can_be_taken_out_but_may_be_a_slip(check: Check) -> None:
    text = REGION.format("  # capturelint: ignore[CG1O1, CG101] why")
    (found,) = [finding for finding in check(text).findings if finding.rule == "CG002"]
    assert found.message == "unknown rule 'CG1O1'; did you mean 'CG101'?"
    assert found.fix is not None
    assert found.fix.applicability is Applicability.UNSAFE
    assert taken_out(text, found) == REGION.format("  # capturelint: ignore[CG101] why")


def test_a_rule_that_is_switched_off_is_not_called_unused(check: Check) -> None:
    assert about(check("x = 1  # capturelint: ignore[CG101] why\n", ignore=["CG101"]), "CG001") == []


def test_a_comment_about_a_finding_that_is_not_shown_is_in_use(check: Check) -> None:
    text = (
        "def capture(model, batches):\n"
        "    pool = torch.cuda.graph_pool_handle()\n"
        "    for batch in batches:\n"
        "        graph = torch.cuda.CUDAGraph()\n"
        "        with torch.cuda.graph(graph, pool=pool):{}\n"
        "            model(batch)\n"
    )
    comment = "  # capturelint: ignore[CG809] few graphs die here"
    shown = check(text.format(comment), least=Confidence.POSSIBLE)
    assert [(f.span.line - 5, f.suppressed is not None) for f in shown.findings if f.rule == "CG809"] == [(5, True)]
    assert about(check(text.format(comment)), "CG001") == []
    assert check(text.format("")).hidden - check(text.format(comment)).hidden == 1


def test_a_class_and_all_that_is_in_it(check: Check) -> None:
    result = check(
        "class A:  # capturelint: ignore[CG101] eager\n"
        "    @capture_region\n"
        "    def f(self, x: torch.Tensor):\n"
        "        return x.item()\n"
        "\n"
        "\n"
        "@capture_region\n"
        "def g(x: torch.Tensor):\n"
        "    return x.item()\n"
    )
    assert [(f.span.line - 5, f.suppressed is not None) for f in result.findings] == [(4, True), (9, False)]


# -- marks of regions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "# capturelint: region\ndef f(x):\n    return x\n",
        "# capturelint: region\n\n# what it does\ndef f(x):\n    return x\n",
        "def f(x):  # capturelint: region\n    return x\n",
        "def f(x):  # noqa: E501  # capturelint: region\n    return x\n",
        "def f(\n    x,  # capturelint: region\n):\n    return x\n",
        "# capturelint: region\n@staticmethod\n# why\nasync def f(x):\n    return x\n",
        "@staticmethod  # capturelint: region\ndef f(x):\n    return x\n",
        "@staticmethod\n# capturelint: region\ndef f(x): return x\n",
    ],
)
def test_a_comment_marks_the_function_that_it_is_about(check: Check, text: str) -> None:
    result = check(text)
    assert [(region.kind, region.name) for region in result.regions] == [("comment", "f")]
    assert result.findings == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# capturelint: region\nwith a:\n    b()\n", "it is about `with`, and only functions can be marked"),
        ("for a in b:  # capturelint: region\n    a()\n", "it is about `for`, and only functions can be marked"),
        ("# capturelint: region\nclass A:\n    pass\n", "it is about a class; mark the method that is captured"),
        ("# capturelint: region\n@wrap\nclass A:\n    pass\n", "it is about a class; mark the method"),
        ("# capturelint: region\nf = lambda x: x\n", "a lambda has no place for it; make it a function with `def`"),
        ("a = 1\n# capturelint: region\n", "no function follows it"),
        ("def f(x):\n    # capturelint: region\n    with a:\n        b()\n", "it is about `with`, and only functions"),
    ],
)
def test_a_comment_that_marks_nothing_is_said(check: Check, text: str, message: str) -> None:
    result = check(text)
    assert result.regions == ()
    ((line, said),) = about(result, "CG002")
    assert "# capturelint: region" in text.split("\n")[line - 1]
    assert said.startswith(f"this comment marks no region: {message}")


def test_a_marked_class_is_said(check: Check) -> None:
    for marker in ("capture_region", 'capture_region(inputs={"x": "float32[8]"})'):
        result = check(f"@{marker}\nclass A:\n    def f(self, x: torch.Tensor):\n        return x.item()\n")
        assert result.regions == ()
        assert about(result, "CG002") == [(1, "`capture_region` marks no region on the class `A`")]
        assert result.findings[0].help == "mark the method that is captured"


def test_fixing_takes_out_what_does_nothing(check: Check, tmp_path: Path) -> None:
    text = (
        "# capturelint: file-ignore[CG2] old\n"
        + REGION.format("  # noqa: E501, CG103  # capturelint: ignore[CG104, CG101, CG105] why")
        + "x = 1  # capturelint: ignore[CG101]\n"
    )
    check(text)
    assert main(["check", "a.py", "--fix", "--quiet"]) == 0
    after = REGION.format("  # noqa: E501  # capturelint: ignore[CG101] why") + "x = 1\n"
    assert (tmp_path / "a.py").read_text(encoding="utf-8") == HEAD + after
