"""Outlines: with the bodies put back, the tree is that of the whole text, positions included."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from capturelint.check import CheckOptions, check_paths
from capturelint.config import Config
from capturelint.model import Confidence
from capturelint.project.outline import outline
from capturelint.project.packed import packed
from capturelint.project.parsing import parse_body

ROOT = Path(__file__).resolve().parent.parent


def _put_together(source: str) -> ast.Module:
    outlined = outline(source)
    assert outlined is not None
    tree = packed(ast.parse(outlined.source))
    found = 0
    for node in list(ast.walk(tree)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno in outlined.bodies:
            lines = outlined.bodies[node.lineno]
            node.body = parse_body(source[lines.begin : lines.end], lines.first)
            node.end_lineno, node.end_col_offset = node.body[-1].end_lineno, node.body[-1].end_col_offset
            found += 1
    assert found == len(outlined.bodies)
    return tree


def _dump(tree: ast.Module) -> str:
    return ast.dump(tree, include_attributes=True)


def _whole(source: str) -> ast.Module:
    return packed(ast.parse(source))


@pytest.mark.parametrize("package", ["capturelint", "tests"])
def test_trees_of_real_files(package: str) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
    sources = [path.read_text(encoding="utf-8") for path in files]
    outlined = [source for source in sources if outline(source) is not None]
    assert len(outlined) > 0.95 * len(files) > 50
    for source in outlined:
        assert _dump(_put_together(source)) == _dump(_whole(source))


ODD = {
    "a header in a string": ('TEXT = """\ndef no(x):\n    return x\n"""\n\ndef yes(x):\n    return 1\n'),
    "a string with lines at the margin": (
        'def f():\n    x = """\nat the margin\ndef g():\n    """\n    return x\n\nY = 1\n'
    ),
    "both kinds of quotes": (
        'def f():\n    x = \'\'\'\n""" def\n\'\'\'\n    return x\n\nY = """\ndef g(): pass\n"""\n'
    ),
    "quotes in a comment": ('# it\'s """ odd\ndef f(x):  # don\'t\n    return x  # """\n\nY = 2\n'),
    "comments at the margin": (
        "class A:\n"
        "    def f(self):\n"
        "        x = 1\n"
        "# at the margin\n"
        "        return x\n"
        "    # behind\n"
        "# behind too\n"
        "    y = 2\n"
    ),
    "a comment that ends with a backslash": ("def f(x):\n    return x  # \\\ndef g(x):\n    return x\n"),
    "a line that goes on at the margin": ("def f(x):\n    return x + \\\n1\n\ndef g(x):\n    return x\n"),
    "a header of several lines": (
        "def f(\n"
        "    x: dict[str, int] = {1: 2},  # a:\n"
        "    *, y=lambda: (3),\n"
        ") -> (\n"
        "    int\n"
        "):\n"
        "    # first\n"
        "\n"
        "    return x\n"
    ),
    "strings in a header": ('def f(x: "A:" = \')\', y=""":""") -> \'B\':\n    return x\n'),
    "bodies on the header's line": (
        "def f(x): return x\n"
        "def g(x): pass; y = 1\n"
        "class A:\n"
        "    def h(self): ...\n"
        "    def i(self):\n"
        "        return 1\n"
    ),
    "in branches": (
        "if A:\n"
        "    def f(x):\n"
        "        return 1\n"
        "else:\n"
        "    async def f(x):\n"
        "        return await 2\n"
        "try:\n"
        "    def g(): \n"
        "        return 3\n"
        "except E:\n"
        "    pass\n"
        "match A:\n"
        "    case 1:\n"
        "        def h():\n"
        "            return 4\n"
    ),
    "decorated": ("@a(\n    lambda x: x\n)\n@b\ndef f(x):\n    @c\n    def g(y):\n        return y\n    return g\n"),
    "a comment behind a body's last line": (
        "class A:\n    def f(self):\n        return (1,\n                2)   # last # of all\n\n\nX = A()\n"
    ),
    "letters beyond ASCII": ("class Ä:\n    def ö(self):\n        return 'ü'\n    x = 'ß'\n"),
    "quotes in triples where a string goes on": (
        "def f(x):\n"
        "    s = 'a\\\n"
        '"""b\'\n'
        "    return s\n"
        "class A:\n"
        "    def g(self):\n"
        "        return 1\n"
        "def h(x):\n"
        "    s = 'a\\\n"
        '"""b\'\n'
        "    return 3\n"
    ),
    "what looks like a comment at the end of a body": ('def f(x):\n    s = "\\\n    #"; x.y = 1\n\nY = 1\n'),
    "no end of line at the end": ("def f(x):\n    if x:\n        return 1"),
}


@pytest.mark.parametrize("source", ODD.values(), ids=ODD.keys())
def test_trees_of_odd_texts(source: str) -> None:
    assert _dump(_put_together(source)) == _dump(_whole(source))


def test_an_outline_lacks_the_bodies() -> None:
    outlined = outline("import a\n\n\ndef f(x):\n    y = x\n    return y + 1  # that is it\n\n\nf(2)\n")
    assert outlined is not None
    assert outlined.source == f"import a\n\n\ndef f(x):\n\n {'_' * 15}\n\n\nf(2)\n"


@pytest.mark.parametrize(
    "source", ["def f():\n\treturn 1\n", "\f\ndef f():\n    return 1\n", "def f(x\n    return 1\n"]
)
def test_what_the_text_does_not_tell_has_no_outline(source: str) -> None:
    assert outline(source) is None


_CALLER = """\
import torch
from other import helper


def run(x):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = helper(x.cuda())
        if y is None:
            torch.cuda.synchronize()
        torch.zeros(3, device="cuda").sum().item()
"""


def test_a_wrong_body_that_is_needed_is_said_and_the_rest_is_checked(tmp_path: Path) -> None:
    Path(tmp_path, "run.py").write_text(_CALLER)
    Path(tmp_path, "other.py").write_text("def helper(x):\n    return x +\n\n\ndef other(x):\n    return x\n")
    result = check_paths(CheckOptions((tmp_path,), Config(), (), (), Confidence.LIKELY, tmp_path))
    assert [(Path(each.path).name, each.line) for each in result.diagnostics] == [("other.py", 2)]
    assert "invalid syntax" in result.diagnostics[0].message
    assert [(each.rule, each.span.line) for each in result.findings] == [("CG104", 10), ("CG101", 11)]


def test_a_body_whose_text_goes_beyond_it_is_not_taken() -> None:
    with pytest.raises(SyntaxError):
        parse_body("    x = 1\ny = 2\n", 4)
