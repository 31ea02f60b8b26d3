"""Source from stdin, which takes the place of a file in its project."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran, write_files

from capturelint.cli.main import main
from capturelint.source.roots import find_project_root

Check = Callable[..., Ran]

HEAD = "import torch\n\nfrom capturelint import capture_region\n\n\n"
REGION = HEAD + "from helpers import helper\n\n\n@capture_region\ndef f(x: torch.Tensor):\n    return helper(x)\n"
HELPER = "def helper(x):\n    return x.item()\n"


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Check:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, {"pyproject.toml": "", "a.py": REGION, "helpers.py": "def helper(x):\n    return x\n"})

    def run(text: str | bytes, *arguments: str, command: str = "check") -> Ran:
        data = text.encode() if isinstance(text, str) else text
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        status = main([command, *arguments])
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return run


def test_stdin_alone(check: Check) -> None:
    ran = check(REGION.replace("helper(x)", "x.item()"), "-")
    assert ran.status == 1
    assert ran.out.startswith(
        "<stdin>:11:12: error CG101 host-scalar-read [certain]\n"
        "  `x.item()` makes the CPU wait for the GPU; capture fails on this line\n"
        "   |\n"
        "11 |     return x.item()\n"
    )
    assert "(1 file checked, 1 region)" in ran.out


def test_it_takes_the_place_of_the_file_when_others_call_it(check: Check) -> None:
    assert check(b"", "helpers.py").status == 0
    for arguments in (("-", "--stdin-filename", "helpers.py"), ("--stdin-filename", "./helpers.py")):
        ran = check(HELPER, *arguments)
        assert ran.status == 1
        assert ran.out.startswith("helpers.py:2:12: error CG101 ")
        assert "2 |     return x.item()" in ran.out
        assert "called from        a.py:11   return helper(x)" in ran.out


def test_and_when_it_calls_others(check: Check, tmp_path: Path) -> None:
    write_files(tmp_path, {"helpers.py": HELPER})
    out = check(HEAD, "-", "--stdin-filename", "a.py", "--format", "json").out
    assert json.loads(out)["regions"] == []  # the one on disk does not count
    regions = json.loads(check(REGION, "-", "--stdin-filename", "new.py", "--format", "json", command="regions").out)
    assert [(each["path"], each["line"]) for each in regions["regions"]] == [("new.py", 10)]
    assert sorted(each["name"] for each in regions["regions"][0]["reached"]) == ["f", "helper"]


def test_a_file_that_is_not_there_in_a_directory_that_is_not_there(check: Check) -> None:
    ran = check(REGION.replace("helper(x)", "x.item()"), "-", "--stdin-filename", "no/such/b.py")
    assert ran.out.startswith("no/such/b.py:11:12: error CG101 ")


def test_configuration_and_excludes_are_those_of_the_file(check: Check, tmp_path: Path) -> None:
    write_files(tmp_path, {"pyproject.toml": '[tool.capturelint]\nexclude = ["gen"]\nignore = ["CG101"]\n'})
    text = REGION.replace("helper(x)", "x.item()")
    assert check(text, "-", "--stdin-filename", "b.py").status == 0
    excluded = check("x = = 1", "-", "--stdin-filename", "gen/b.py", "--force-exclude")
    assert (excluded.status, excluded.out) == (0, "0 errors, 0 warnings (0 files checked, 0 regions)\n")
    assert check("x = = 1", "-", "--stdin-filename", "gen/b.py").status == 1


def test_bytes_are_decoded_as_a_file_would_be(check: Check) -> None:
    text = ("# coding: latin-1\r\n" + REGION.replace("helper(x)", "'ä', x.item()")).encode("latin-1")
    assert check(text, "-", "--format", "concise").out.startswith("<stdin>:12:17: error CG101 ")
    assert check("x = 'ä'\n".encode("latin-1"), "-").out.startswith(
        "<stdin>:1:1: error CG000 unreadable-file  cannot be read: not UTF-8; save it as UTF-8 or name its encoding"
    )


def test_a_notebook(check: Check) -> None:
    cell = {"cell_type": "code", "source": REGION.replace("helper(x)", "x.item()")}
    out = check(json.dumps({"cells": [cell]}), "-", "--stdin-filename", "n.ipynb").out
    assert out.startswith("n.ipynb:cell 1:11:12: error CG101 ")
    assert "11 |     return x.item()" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-", "a.py"], "- stands alone: name no other path beside it (./- is a file of that name)"),
        (["a.py", "--stdin-filename", "a.py"], "--stdin-filename goes with - alone: name no other path"),
        (["-", "--stdin-filename", "."], "--stdin-filename: . is a directory"),
        (["-", "--stdin-filename", ""], "--stdin-filename: the path is empty"),
        (["-", "--verify-if-possible"], "what comes from stdin cannot be verified: the verifier imports files"),
    ],
)
def test_what_makes_no_sense(check: Check, arguments: list[str], message: str) -> None:
    ran = check("", *arguments)
    assert (ran.status, ran.err) == (2, f"error: {message}\n")


def test_no_stdin(check: Check, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert main(["check", "-"]) == 2
    assert capsys.readouterr().err == "error: cannot read stdin: it is closed\n"


def test_a_directory_that_is_not_there_holds_nothing_else(
    check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").unlink()
    monkeypatch.setattr("capturelint.source.roots.MARKERS", ("pyproject.toml",))
    assert find_project_root([tmp_path / "new" / "deeper" / "b.py"]) == tmp_path / "new" / "deeper"
    ran = check(REGION, "-", "--stdin-filename", "new/deeper/b.py")
    assert "(1 file checked, 1 region)" in ran.out
    (tmp_path / "pyproject.toml").write_text("")
    assert find_project_root([tmp_path / "new" / "deeper" / "b.py"]) == tmp_path
