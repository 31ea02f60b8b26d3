"""The baseline: what is in it does not count, what is new does, and nothing gets into it unsaid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran, write_files

from capturelint.cli.main import main

HEAD = "import torch\n\nfrom capturelint import capture_region\n\n\n"
ONE = (
    HEAD + '@capture_region(inputs={"x": "float32[8]"})\ndef f(x: torch.Tensor):\n    a = x.item()\n    return x + a\n'
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, {"pyproject.toml": "", "src/a.py": ONE})
    return tmp_path


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: str) -> Ran:
        status = main(["check", *arguments])
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return run


def entries(file: str = "base.json") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(Path(file).read_text(encoding="utf-8"))["findings"]
    return found


def test_what_is_in_the_baseline_does_not_count(check: Any) -> None:
    assert check("src").status == 1
    made = check("src", "--baseline", "base.json", "--update-baseline", "--quiet")
    assert (made.status, made.out) == (0, "")
    assert made.err == "base.json: 1 added, 0 removed, 1 in all\n  + src/a.py: CG101 in f: `x.item()`\n"
    assert Path("base.json").read_text() == (
        '{\n "version": 1,\n "min-confidence": "likely",\n "findings": [\n'
        '  {"path": "src/a.py", "scope": "f", "rule": "CG101", "text": "x.item()"}\n ]\n}\n'
    )
    after = check("src", "--baseline", "base.json")
    assert (after.status, after.err) == (0, "")
    assert after.out == "0 errors, 0 warnings, 1 suppressed (1 by the baseline) (1 file checked, 1 region)\n"
    report = json.loads(check("src", "--baseline", "base.json", "--format", "json").out)
    assert [finding["suppressed"] for finding in report["findings"]] == [{"kind": "baseline", "reason": None}]
    assert (report["summary"]["suppressed"], report["summary"]["baseline"]) == (1, 1)


@pytest.mark.parametrize(
    "text",
    [
        "# a comment\n" * 9 + ONE,
        ONE.replace("x.item()", "x . item(\n    )"),
        ONE.replace("\n", "\r\n"),
        ONE + "\n\ndef g(x):\n    return x.item()\n",
    ],
)
def test_edits_elsewhere_and_formatters_change_nothing(check: Any, text: str) -> None:
    check("src", "--baseline", "base.json", "--update-baseline")
    Path("src/a.py").write_text(text, encoding="utf-8", newline="")
    after = check("src", "--baseline", "base.json")
    assert (after.status, after.err) == (0, "")


@pytest.mark.parametrize(
    "text",
    [
        ONE.replace("x.item()", "x.cpu().item()"),
        ONE.replace("def f", "def g"),
        ONE.replace("a = x.item()", "print(x)\n    a = 1"),
    ],
)
def test_other_code_another_scope_or_rule_counts_and_the_entry_is_gone(check: Any, text: str) -> None:
    check("src", "--baseline", "base.json", "--update-baseline")
    Path("src/a.py").write_text(text, encoding="utf-8")
    after = check("src", "--baseline", "base.json")
    assert after.status == 1
    assert after.err == (
        "note: 1 in the baseline is gone; --update-baseline removes what is\n  - src/a.py: CG101 in f: `x.item()`\n"
    )
    assert json.loads(check("src", "--baseline", "base.json", "--format", "json").out)["stale"] == [
        {"path": "src/a.py", "description": "src/a.py: CG101 in f: `x.item()`", "count": 1}
    ]


def test_the_same_code_in_another_file_counts(check: Any) -> None:
    check("src", "--baseline", "base.json", "--update-baseline")
    Path("src/a.py").rename("src/b.py")
    after = check("src", "--baseline", "base.json")
    assert after.status == 1
    assert "  - src/a.py: CG101" in after.err
    assert check("src/b.py", "--baseline", "base.json").err == ""  # src was not asked about


def test_one_more_copy_fails_and_one_less_is_said(check: Any) -> None:
    twice = ONE.replace("    a = x.item()\n", "    a = x.item()\n    a = x.item()\n")
    Path("src/a.py").write_text(twice, encoding="utf-8")
    check("src", "--baseline", "base.json", "--update-baseline")
    assert entries() == [{"path": "src/a.py", "scope": "f", "rule": "CG101", "text": "x.item()", "count": 2}]
    assert check("src", "--baseline", "base.json").status == 0
    Path("src/a.py").write_text(twice.replace("    return", "    a = x.item()\n    return"), encoding="utf-8")
    more = check("src", "--baseline", "base.json")
    assert more.status == 1
    assert more.out.startswith("src/a.py:10:9: error CG101 ")
    assert "1 error, 0 warnings, 2 suppressed (2 by the baseline)" in more.out
    Path("src/a.py").write_text(ONE, encoding="utf-8")
    less = check("src", "--baseline", "base.json")
    assert (less.status, less.err.split("\n")[1]) == (0, "  - src/a.py: CG101 in f: `x.item()`")


def test_an_update_removes_what_is_gone_says_what_it_adds_and_does_nothing_twice(check: Any) -> None:
    check("src", "--baseline", "base.json", "--update-baseline")
    Path("src/a.py").write_text(ONE.replace("x.item()", "x.tolist()"), encoding="utf-8")
    update = check("src", "--baseline", "base.json", "--update-baseline")
    assert update.status == 0
    assert update.err == (
        "base.json: 1 added, 1 removed, 1 in all\n"
        "  + src/a.py: CG101 in f: `x.tolist()`\n"
        "  - src/a.py: CG101 in f: `x.item()`\n"
    )
    written = Path("base.json").stat()
    assert check("src", "--baseline", "base.json", "--update-baseline").err == "base.json: unchanged, 1 in all\n"
    assert Path("base.json").stat().st_mtime_ns == written.st_mtime_ns
    Path("src/a.py").write_text(HEAD, encoding="utf-8")
    check("src", "--baseline", "base.json", "--update-baseline")
    assert entries() == []


def test_an_update_keeps_what_the_run_could_not_see(check: Any, here: Path) -> None:
    write_files(here, {"src/b.py": ONE, "src/c.py": ONE, "lib/d.py": ONE})
    check(".", "--baseline", "base.json", "--update-baseline")
    assert [entry["path"] for entry in entries()] == ["lib/d.py", "src/a.py", "src/b.py", "src/c.py"]
    Path("src/b.py").write_text("def f(:\n", encoding="utf-8")
    Path("src/c.py").unlink()
    Path("lib/d.py").write_text(HEAD, encoding="utf-8")
    assert check("src", "--baseline", "base.json", "--update-baseline").status == 1  # src/b.py cannot be read
    assert [entry["path"] for entry in entries()] == ["lib/d.py", "src/a.py", "src/b.py"]
    check(".", "--select", "CG2", "--baseline", "base.json", "--update-baseline")
    check(".", "--min-confidence", "certain", "--baseline", "base.json", "--update-baseline")
    assert [entry["path"] for entry in entries()] == ["lib/d.py", "src/a.py", "src/b.py"]
    check(".", "--baseline", "base.json", "--update-baseline")
    assert [entry["path"] for entry in entries()] == ["src/a.py", "src/b.py"]


def test_a_comment_comes_before_the_baseline(check: Any) -> None:
    check("src", "--baseline", "base.json", "--update-baseline")
    Path("src/a.py").write_text(ONE.replace("item()", "item()  # capturelint: ignore[CG101] why"), encoding="utf-8")
    after = check("src", "--baseline", "base.json")
    assert "1 suppressed (1 file" in after.out
    assert "1 in the baseline is gone" in after.err


def test_the_configuration_names_it_from_its_own_directory(
    check: Any, here: Path, monkeypatch: Any, capsys: Any
) -> None:
    write_files(here, {"pyproject.toml": '[tool.capturelint]\nbaseline = "ci/base.json"\n', "ci/x": ""})
    missing = check("src")
    assert missing.status == 2
    assert missing.err == (
        "error: ci/base.json: the baseline cannot be read: No such file or directory; --update-baseline makes it\n"
    )
    assert main(["verify", "src"]) == 2
    assert "ci/base.json: the baseline cannot be read" in capsys.readouterr().err
    assert check("src", "--no-baseline").status == 1
    assert check("src", "--update-baseline").status == 0
    assert [entry["path"] for entry in entries("ci/base.json")] == ["../src/a.py"]
    monkeypatch.chdir(here / "src")
    assert check(".").status == 0


def test_a_long_text_is_cut_and_still_told_from_others(check: Any) -> None:
    call = "x.item({})".format(", ".join(f"argument_number_{n}" for n in range(8)))
    long = ONE.replace("x.item()", call)
    Path("src/a.py").write_text(long, encoding="utf-8")
    check("src", "--baseline", "base.json", "--update-baseline")
    (entry,) = entries()
    assert entry["text"].startswith("x.item(argument_number_0, argument_number_1, ")
    assert len(entry["text"]) == 80 + len("... [0123456789abcdef]")
    Path("src/a.py").write_text(long.replace(", ", ",\n        "), encoding="utf-8")
    assert check("src", "--baseline", "base.json", "--update-baseline").err == "base.json: unchanged, 1 in all\n"
    Path("src/a.py").write_text(long.replace("number_7", "number_8"), encoding="utf-8")
    assert check("src", "--baseline", "base.json").status == 1


ROW = {"path": "a.py", "scope": "", "rule": "CG101", "text": "x"}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("", "not a baseline: no valid JSON (Expecting value: line 1 column 1 (char 0))"),
        ("[]", "not a baseline: it has no version"),
        ('{"version": 2}', "version: 2 cannot be read: a newer capturelint wrote it"),
        ('{"version": "1"}', "version: '1' cannot be read: should be 1"),
        ('{"version": 1}', "findings: should be a list"),
        ('{"version": 1, "findings": [], "min-confidence": "sure"}', "min-confidence: 'sure' is none of possible, "),
        ('{"version": 1, "findings": [3]}', "findings[0]: should be an object"),
        (json.dumps({"version": 1, "findings": [{**ROW, "rule": 1}]}), "findings[0].rule: should be a string"),
        (json.dumps({"version": 1, "findings": [{**ROW, "line": 1}]}), "findings[0].line: unknown key"),
        (json.dumps({"version": 1, "findings": [{**ROW, "count": 0}]}), "findings[0].count: should be a number of at"),
        (json.dumps({"version": 1, "findings": [ROW, ROW]}), "findings[1]: is there twice (a.py: CG101: `x`)"),
    ],
)
def test_what_is_no_baseline_fails_loudly_and_is_not_written_over(check: Any, document: str, message: str) -> None:
    Path("base.json").write_text(document, encoding="utf-8")
    for options in ([], ["--update-baseline"]):
        ran = check("src", "--baseline", "base.json", *options)
        assert ran.status == 2
        assert ran.err.startswith(f"error: base.json: {message}")
    assert Path("base.json").read_text(encoding="utf-8") == document


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--update-baseline"], "--update-baseline needs --baseline FILE, or `baseline` in the configuration"),
        (["--no-baseline", "--baseline", "b"], "--no-baseline goes with neither --baseline nor --update-baseline"),
        (["--baseline", "no/b", "--update-baseline"], "cannot write no/b: its directory does not exist"),
        (["--baseline", "src", "--update-baseline"], "src: the baseline cannot be read: Is a directory"),
        (["--diff", "--update-baseline"], "--diff writes nothing: it does not go with --update-baseline"),
        (["--baseline", ""], "--baseline: the path is empty"),
    ],
)
def test_options_that_make_no_sense(check: Any, options: list[str], message: str) -> None:
    ran = check("src", *options)
    assert (ran.status, ran.err) == (2, f"error: {message}\n")


def test_a_link_stays_a_link(check: Any) -> None:
    Path("real.json").write_text('{"version": 1, "findings": []}', encoding="utf-8")
    Path("base.json").symlink_to("real.json")
    check("src", "--baseline", "base.json", "--update-baseline")
    assert Path("base.json").is_symlink()
    assert len(entries("real.json")) == 1
    assert sorted(each.name for each in Path().iterdir()) == ["base.json", "pyproject.toml", "real.json", "src"]


def test_what_a_cache_keeps_knows_no_baseline(check: Any, monkeypatch: Any, here: Path) -> None:
    monkeypatch.delenv("CAPTURELINT_NO_CACHE", raising=False)
    cached = ("--cache-dir", str(here / "cache"))
    for _ in range(2):
        assert check("src", *cached).status == 1
    check("src", *cached, "--baseline", "base.json", "--update-baseline")
    for _ in range(2):
        assert check("src", *cached, "--baseline", "base.json").status == 0
    assert check("src", *cached).status == 1
