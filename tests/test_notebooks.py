"""Notebooks: which cells are read and how, where findings are said to be, and what is no notebook."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran

from capturelint.check import CheckOptions, check_paths
from capturelint.cli.main import main
from capturelint.config import Config
from capturelint.errors import SourceError
from capturelint.model import Confidence
from capturelint.source.notebooks import read_notebook
from capturelint.verifier.plan import make_plan

Check = Callable[..., Ran]


def notebook(*cells: str | Sequence[str] | tuple[str, str], language: str = "python") -> str:
    """A notebook's text; a pair is a cell of another type, with its text."""
    written: list[dict[str, Any]] = []
    for cell in cells:
        kind, source = cell if isinstance(cell, tuple) else ("code", cell)
        written.append({"cell_type": kind, "metadata": {}, "source": source})
    return json.dumps({"cells": written, "metadata": {"language_info": {"name": language}}, "nbformat": 4})


def read(*cells: str) -> list[str]:
    """The lines that are read of code cells, without the line before the first."""
    return read_notebook(notebook(*cells).encode(), "a.ipynb").source.split("\n")[1:-1]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Check:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, command: str = "check") -> Ran:
        status = main([command, *arguments])
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return run


IMPORTS = "import torch\nfrom capturelint import capture_region"
REGION = '@capture_region(inputs={"x": "float32[8]"})\ndef f(x: torch.Tensor):\n    return helper(x)'
HELPER = ["def helper(x):\n", "    '''Größe'''; y = x.item()\n", "    return y"]


def test_places_are_cells_and_lines_in_them(check: Check) -> None:
    Path("a.ipynb").write_text(notebook(("markdown", "# x.item()"), IMPORTS, REGION, HELPER), encoding="utf-8")
    ran = check(".")
    assert ran.status == 1
    assert ran.out == (
        "a.ipynb:cell 4:2:22: error CG101 host-scalar-read [certain]\n"
        "  `x.item()` makes the CPU wait for the GPU; capture fails on this line\n"
        "  |\n"
        "2 |     '''Größe'''; y = x.item()\n"
        "  |                      ^^^^^^^^ reads a device tensor\n"
        "  |\n"
        "  captured here      a.ipynb:cell 3:2   def f(x: torch.Tensor):\n"
        "  called from        a.ipynb:cell 3:3   return helper(x)\n"
        "  help: keep the value on the device (`torch.where`, a 0-d tensor operand), or read it after `replay()`\n"
        "\n"
        "1 error, 0 warnings (1 file checked, 1 region)\n"
    )


def test_json_has_the_cell_everywhere(check: Check) -> None:
    Path("a.ipynb").write_text(notebook(IMPORTS, REGION, HELPER), encoding="utf-8")
    report = json.loads(check("a.ipynb", "--format", "json").out)
    (finding,) = report["findings"]
    place = {key: finding[key] for key in ("path", "cell", "line", "column", "end_line", "end_column")}
    assert place == {"path": "a.ipynb", "cell": 3, "line": 2, "column": 22, "end_line": 2, "end_column": 30}
    (region,) = finding["regions"]
    assert (region["path"], region["cell"], region["line"]) == ("a.ipynb", 2, 2)
    assert region["trace"] == [{"path": "a.ipynb", "cell": 2, "line": 3, "function": "f"}]
    assert [(each["cell"], each["line"]) for each in report["regions"]] == [(2, 2)]
    listed = json.loads(check("a.ipynb", "--format", "json", command="regions").out)["regions"][0]["reached"]
    assert [(each["name"], each["cell"], each["line"]) for each in listed] == [("f", 2, 2), ("helper", 3, 1)]


def test_other_formats_name_the_cell_in_their_messages(check: Check) -> None:
    Path("a.ipynb").write_text(notebook(IMPORTS, REGION, HELPER), encoding="utf-8")
    github = check(".", "--format", "github").out
    assert "file=a.ipynb,line=2,endLine=2,col=22,endColumn=30::cell 3: host-scalar-read" in github
    assert "captured here: a.ipynb:cell 2:2" in github
    result = json.loads(check(".", "--format", "sarif").out)["runs"][0]["results"][0]
    assert result["message"]["text"].startswith("cell 3: `x.item()`")
    assert result["relatedLocations"][0]["message"]["text"].startswith("cell 2: captured here")
    (issue,) = json.loads(check(".", "--format", "gitlab").out)
    assert issue["description"].startswith("cell 3: host-scalar-read")
    assert check(".", "--format", "concise").out.startswith("a.ipynb:cell 3:2:22: error CG101 ")


def test_comments_and_the_baseline_work_as_in_modules(check: Check) -> None:
    comment = "x.item()  # capturelint: ignore[CG101] in warm-up"
    Path("a.ipynb").write_text(notebook(IMPORTS, REGION, [HELPER[0], f"    y = {comment}\n", HELPER[2]]))
    assert check(".").status == 0
    Path("a.ipynb").write_text(notebook(IMPORTS, REGION, HELPER))
    check(".", "--baseline", "b.json", "--update-baseline")
    Path("a.ipynb").write_text(notebook("pass", IMPORTS, "pass", REGION, HELPER))
    assert check(".", "--baseline", "b.json").status == 0


def test_modules_of_the_project_are_followed(check: Check) -> None:
    Path("helpers.py").write_text("def helper(x):\n    return x.item()\n")
    Path("a.ipynb").write_text(notebook(IMPORTS, "from helpers import helper\n" + REGION))
    out = check(".", "--format", "concise").out
    assert out.startswith("helpers.py:2:12: error CG101 ")


def test_a_syntax_error_is_said_in_its_cell(check: Check) -> None:
    Path("a.ipynb").write_text(notebook(IMPORTS, "x = 1\ny = = 2"))
    Path("b.py").write_text("x = 1\n")
    ran = check(".", "--format", "json")
    assert ran.status == 1
    (diagnostic,) = json.loads(ran.out)["diagnostics"]
    assert (diagnostic["path"], diagnostic["cell"], diagnostic["line"]) == ("a.ipynb", 2, 2)
    assert check(".").out.startswith("a.ipynb:cell 2:2:1: error CG000 syntax-error  invalid syntax")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "not a notebook: no valid JSON (Expecting value)"),
        ('{"cells": [\n{]}', 2, "not a notebook: no valid JSON (Expecting property name enclosed in double quotes)"),
        ("[]", 1, "not a notebook: it has no list of cells"),
        ('{"worksheets": []}', 1, "a notebook of format 3; `jupyter nbconvert --to notebook` makes it a newer one"),
        ('{"cells": [3]}', 1, "not a notebook: cell 1 has no type"),
        ('{"cells": [{"cell_type": "code", "source": 3}]}', 1, "not a notebook: the source of cell 1 is no text"),
        ('{"cells": [{"cell_type": "code"}]}', 1, "not a notebook: the source of cell 1 is no text"),
        ('{"cells": [{"cell_type": "code", "source": [1]}]}', 1, "not a notebook: the source of cell 1 is no text"),
        ("\udcff", 1, "not a notebook: it is not UTF-8"),
        ("[" * 100_000, 1, "not a notebook: nested too deeply"),
    ],
)
def test_what_is_no_notebook_is_a_diagnostic(check: Check, text: str, line: int, message: str) -> None:
    data = text.encode("utf-8", "surrogateescape")
    with pytest.raises(SourceError) as raised:
        read_notebook(data, "a.ipynb")
    assert (raised.value.line, str(raised.value)) == (line, f"cannot be read: {message}")
    Path("a.ipynb").write_bytes(data)
    Path("b.py").write_text("x = 1\n")
    ran = check(".")
    assert ran.status == 1
    assert ran.out.startswith(f"a.ipynb:{line}:1: error CG000 unreadable-file  cannot be read: {message}\n")
    assert "1 file checked" in ran.out


def test_other_languages_and_empty_notebooks_have_no_source() -> None:
    assert read_notebook(notebook("x <- item()", language="R").encode(), "a.ipynb").source == ""
    assert read_notebook(b'\xef\xbb\xbf{"cells": []}', "a.ipynb").source == ""
    kernel = {"cells": [], "metadata": {"kernelspec": {"language": "julia"}}}
    assert read_notebook(json.dumps(kernel).encode(), "a.ipynb").source == ""


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("%matplotlib inline\nx = 1", ["pass", "x = 1"]),
        ("!pip install x \\\n  y\nx = 1", ["pass", "", "x = 1"]),
        ("torch.ones?\n?torch\nx.y??", ["pass", "pass", "pass"]),
        ("if x:\n    %load a\n    y = 1", ["if x:", "    pass", "    y = 1"]),
        ("files = !ls\na, b = %time f()\nc = d % e\nx = 1", ["files = None", "a, b = None", "c = d % e", "x = 1"]),
        ("%%time\nx = 1\n!ls", ["", "x = 1", "pass"]),
        ("\n%%bash\nls | x.item()", ["", "", ""]),
        ("%%html\n<b>\n%", ["", "", ""]),
        ("x = (a\n  % b)\n%cd", ["x = (a", "  % b)", "pass"]),
        ("x = '''\n% b\n!'''\n%cd", ["x = '''", "% b", "!'''", "pass"]),
        ("x = 'a\\\n%b'\n%cd", ["x = 'a\\", "%b'", "pass"]),
        ("x = a \\\n  % b\n%cd", ["x = a \\", "  % b", "pass"]),
        ('x = "(" # ((\n%cd', ['x = "(" # ((', "pass"]),
        ("x = '\\'(' + f\"[\"\n%cd", ["x = '\\'(' + f\"[\"", "pass"]),
        ("await f()\nx = 1", ["await f()", "x = 1"]),
        ("x = 1\r\ny = 2\r", ["x = 1", "y = 2", ""]),
        ("# -*- coding: latin-1 -*-\nx = 'ä'", ["# -*- coding: latin-1 -*-", "x = 'ä'"]),
    ],
)
def test_what_only_ipython_reads(cell: str, expected: list[str]) -> None:
    assert read(cell) == expected


def test_a_coding_line_in_a_cell_says_nothing(check: Check) -> None:
    Path("a.ipynb").write_text(notebook("# -*- coding: ascii -*-\nx = 'ä'\n" + IMPORTS, REGION, HELPER))
    assert check(".", "--format", "concise").out.startswith("a.ipynb:cell 3:2:22: error CG101 ")


def test_a_long_cell_with_a_magic_takes_no_longer_than_without() -> None:
    cell = "%cd\nx = [\n" + "    'a',\n" * 50_000 + "]"
    assert read(cell)[-1] == "]"


def test_what_a_finding_rests_on_is_refused(check: Check) -> None:
    ran = check("a.ipynb:cell 3:2", command="explain-finding")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("error: what findings in notebooks rest on cannot be shown")


def test_a_region_in_a_notebook_is_not_run(check: Check, tmp_path: Path) -> None:
    Path("a.ipynb").write_text(notebook(IMPORTS, REGION, HELPER), encoding="utf-8")
    result = check_paths(CheckOptions((tmp_path,), Config(), (), (), Confidence.LIKELY, tmp_path))
    plan = make_plan(result, [], tmp_path, tmp_path, 10.0, 1)
    assert plan.jobs == []
    assert plan.missing == {("a.ipynb", 2): "a region in a notebook, which cannot be imported"}


def test_what_a_cache_keeps_is_said_in_the_cells_of_now(check: Check, monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.delenv("CAPTURELINT_NO_CACHE", raising=False)
    cached = (".", "--cache-dir", str(tmp_path / "cache"), "--format", "concise")
    Path("a.ipynb").write_text(notebook(IMPORTS, REGION, HELPER), encoding="utf-8")
    for _ in range(2):
        assert check(*cached).out.startswith("a.ipynb:cell 3:2:22: ")
    Path("a.ipynb").write_text(notebook(("markdown", "# new"), IMPORTS, REGION, HELPER), encoding="utf-8")
    for _ in range(2):
        assert check(*cached).out.startswith("a.ipynb:cell 4:2:22: ")
