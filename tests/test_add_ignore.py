"""``--add-ignore``: where the comments go, that they do what they are for, and that nothing else changes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran

from capturelint.cli.main import main

Check = Callable[..., Ran]

HEAD = (
    "import torch\nfrom capturelint import capture_region\n\n\n"
    '@capture_region(inputs={"x": "float32[8]", "y": "float32[8]"})\ndef f(x: torch.Tensor, y: torch.Tensor):\n'
)


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Check:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Ran:
        status = main(["check", *arguments])
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return run


def body(text: str) -> str:
    return HEAD + "".join(f"    {line}\n" if line else "\n" for line in text.split("\n"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = x.item()", "a = x.item()  # capturelint: ignore[CG101] why not"),
        ("a = x.item()   \t", "a = x.item()  # capturelint: ignore[CG101] why not"),
        ("a = x.item(); b = y.item()", "a = x.item(); b = y.item()  # capturelint: ignore[CG101] why not"),
        ("print(x, x.item())", "print(x, x.item())  # capturelint: ignore[CG101, CG103] why not"),
        ("a = (\n  x.item(),\n  1,\n)", "a = (\n  x.item(),\n  1,\n)  # capturelint: ignore[CG101] why not"),
        ("a = x.item() \\\n  + 1", "a = x.item() \\\n  + 1  # capturelint: ignore[CG101] why not"),
        ('a = x.item(), """\n#\\\n"""', 'a = x.item(), """\n#\\\n"""  # capturelint: ignore[CG101] why not'),
        (
            'a = f"""\n{x.item()}\n""" + \'#\'',
            'a = f"""\n{x.item()}\n""" + \'#\'  # capturelint: ignore[CG101] why not',
        ),
        ("if x.sum() > 3:\n  pass", "if x.sum() > 3:  # capturelint: ignore[CG301] why not\n  pass"),
        ("if (\n  x.sum() > 3\n):\n  pass", "if (\n  x.sum() > 3\n):  # capturelint: ignore[CG301] why not\n  pass"),
        ("if 1: a = x.item()", "if 1: a = x.item()  # capturelint: ignore[CG101] why not"),
        ("a = x.item()  # noqa: E501", "a = x.item()  # noqa: E501  # capturelint: ignore[CG101] why not"),
        ("a = (x.item(),  # first\n  1)", "a = (x.item(),  # first\n  1)  # capturelint: ignore[CG101] why not"),
        (
            "print(x.item(), x)  # capturelint: ignore[CG101] why not",
            "print(x.item(), x)  # capturelint: ignore[CG101, CG103] why not",
        ),
        (
            "print(x.item(), x)  # capturelint: ignore[ host-scalar-read ] another",
            "print(x.item(), x)  # capturelint: ignore[ host-scalar-read ] another"
            "  # capturelint: ignore[CG103] why not",
        ),
        (
            "# capturelint: ignore[CG101] above\nprint(x.item(), x)",
            "# capturelint: ignore[CG101] above\nprint(x.item(), x)  # capturelint: ignore[CG103] why not",
        ),
        ("a = '\u2028\x85', x.item()", "a = '\u2028\x85', x.item()  # capturelint: ignore[CG101] why not"),
    ],
)
def test_a_comment_goes_behind_the_statement(check: Check, before: str, after: str) -> None:
    Path("a.py").write_text(body(before), encoding="utf-8")
    ran = check("a.py", "--add-ignore=why not")
    assert Path("a.py").read_text(encoding="utf-8") == body(after)
    assert ast.dump(ast.parse(body(before))) == ast.dump(ast.parse(body(after)))
    assert (ran.status, " 1 file checked" in ran.out or "(1 file checked" in ran.out) == (0, True)
    again = check("a.py", "--add-ignore=why not")
    assert (again.status, again.err) == (0, "suppressed 0 findings in 0 files\n")
    assert Path("a.py").read_text(encoding="utf-8") == body(after)
    assert "0 errors, 0 warnings, " in check("a.py").out


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = x.item()", "a = x.item()  # capturelint: ignore[CG101]"),
        (
            "print(x.item(), x)  # capturelint: ignore[CG101] another",
            "print(x.item(), x)  # capturelint: ignore[CG101, CG103] another",
        ),
    ],
)
def test_without_a_reason(check: Check, before: str, after: str) -> None:
    Path("a.py").write_text(body(before), encoding="utf-8")
    assert check("--add-ignore", "a.py").status == 0  # what follows the option is a path
    assert Path("a.py").read_text(encoding="utf-8") == body(after)


@pytest.mark.parametrize(
    ("data", "comment"),
    [
        (body("a = x.item()").encode().replace(b"\n", b"\r\n"), "  # capturelint: ignore[CG101] d'accord\r\n"),
        (b"\xef\xbb\xbf" + body("a = x.item()").encode(), "  # capturelint: ignore[CG101] d'accord\n"),
        (body("a = x.item()").encode().rstrip(b"\n"), "  # capturelint: ignore[CG101] d'accord"),
        (
            b"# coding: latin-1\n" + body("'\xe4'; a = x.item()").encode("latin-1"),
            "  # capturelint: ignore[CG101] d'accord\n",
        ),
        (body("a = x.item()").replace("    a", "\x0c    a").encode(), "  # capturelint: ignore[CG101] d'accord\n"),
    ],
)
def test_bytes_that_are_there_stay(check: Check, data: bytes, comment: str) -> None:
    path = Path("a.py")
    path.write_bytes(data)
    path.chmod(0o755)
    assert check("a.py", "--add-ignore", "--quiet").status == 0
    path.write_bytes(data)
    assert check("a.py", "--add-ignore=d'accord").status == 0
    end = data.rindex(b".item()") + len(b".item()")
    rest = data[end:].lstrip(b"\r\n")
    assert path.read_bytes() == data[:end] + comment.encode() + rest
    assert path.stat().st_mode & 0o777 == 0o755


def test_several_files_and_what_is_left_alone(check: Check) -> None:
    Path("helpers.py").write_text("def helper(x):\n    return x.item()\n")
    Path("a.py").write_text("from helpers import helper\n" + body("helper(x)\nprint(x)\n# capturelint: ignore[CG104]"))
    Path("c.py").write_text("x = = 1\n")
    ran = check(".", "--add-ignore=for now")
    assert ran.status == 1  # c.py cannot be read
    assert ran.err == "suppressed 2 findings in 2 files\n"
    assert "CG001" in ran.out  # what a comment that does nothing needs is to be taken out
    assert Path("helpers.py").read_text() == (
        "def helper(x):\n    return x.item()  # capturelint: ignore[CG101] for now\n"
    )
    assert Path("c.py").read_text() == "x = = 1\n"


def test_what_is_in_the_baseline_gets_no_comment(check: Check) -> None:
    Path("a.py").write_text(body("a = x.item()"))
    check("a.py", "--baseline", "b.json", "--update-baseline")
    assert check("a.py", "--baseline", "b.json", "--add-ignore").err == "suppressed 0 findings in 0 files\n"
    assert Path("a.py").read_text() == body("a = x.item()")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--add-ignore=a # b"], "--add-ignore: the reason has to be one line without `#`"),
        (["--add-ignore=a\nb"], "--add-ignore: the reason has to be one line without `#`"),
        (["--add-ignore=, region"], "--add-ignore: the reason reads as something else in a comment: ', region'"),
        (["--add-ignore=[CG102]"], "--add-ignore: the reason reads as something else in a comment: '[CG102]'"),
        (["--add-ignore", "--diff"], "--add-ignore changes files: it does not go with stdin, --diff or "),
        (["--add-ignore", "--update-baseline", "--baseline", "b"], "--add-ignore changes files: it does not go with "),
    ],
)
def test_what_makes_no_sense_writes_nothing(check: Check, options: list[str], message: str) -> None:
    Path("a.py").write_text(body("a = x.item()"))
    ran = check("a.py", *options)
    assert ran.status == 2
    assert ran.err.startswith(f"error: {message}")
    assert Path("a.py").read_text() == body("a = x.item()")


def test_a_reason_that_the_encoding_does_not_have(check: Check) -> None:
    Path("a.py").write_text("# coding: ascii\n" + body("a = x.item()"))
    ran = check("a.py", "--add-ignore=größer")
    assert ran.err == "error: --add-ignore: a.py: the reason cannot be written in the encoding of the file\n"


def test_notebooks_are_not_changed(check: Check) -> None:
    import json

    text = json.dumps({"cells": [{"cell_type": "code", "source": body("a = x.item()")}]})
    Path("a.ipynb").write_text(text)
    ran = check("a.ipynb", "--add-ignore")
    assert ran.status == 1
    assert ran.err == "suppressed 0 findings in 0 files\nnote: 1 finding in notebooks, which are not changed\n"
    assert Path("a.ipynb").read_text() == text
