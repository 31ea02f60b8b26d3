"""The lines of a text that hold code, without comments and documentation."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from capturelint.project.code_lines import code_lines
from capturelint.reuse.cut import cut

ROOT = Path(__file__).parent.parent
SOURCES = [path for name in ("capturelint", "tests") for path in sorted((ROOT / name).rglob("*.py"))]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("# a\n\nx = 1  # b\n  # c\ny = 2\n\n", {3: "x = 1", 5: "y = 2"}),
        ("x = 1 \\\n\n-1\n", {1: "x = 1 \\", 2: "", 3: "-1"}),
        ("x = 1 \\\n# a\n-1\n", {1: "x = 1 \\", 2: "# a", 3: "-1"}),
        ("# a \\\n\nx = 1\n", {3: "x = 1"}),
        ('x = "\\\n#"; y = 1\n', {1: 'x = "\\', 2: '#"; y = 1'}),
        ("x = '#'  # a\n", {1: "x = '#'"}),
        ('x = """\n# a\n\n"""\n# b\n', {1: 'x = """', 2: "# a", 3: "", 4: '"""'}),
        ('"""One.\n\nTwo."""  # a\nx = 1\n', {1: '""', 4: "x = 1"}),
        ('x = 1\n"""One."""\n', {1: "x = 1", 2: '"""One."""'}),
        ('def f(x):  # a\n    """One."""\n    return 1', {1: "def f(x):", 2: '""', 3: "    return 1"}),
        ('class A:\n\n    # a\n    r"""One.\n    """\n', {1: "class A:", 4: '""'}),
        ('def f(\n    x,\n) -> int:\n    """One."""\n', {1: "def f(", 2: "    x,", 3: ") -> int:", 4: '""'}),
        ('def f():\n    """One.""".strip()\n', {1: "def f():", 2: '    """One.""".strip()'}),
        ('def f():\n    """One.""" """Two."""\n', {1: "def f():", 2: '    """One.""" """Two."""'}),
        ('def f():\n    x = """One."""\n', {1: "def f():", 2: '    x = """One."""'}),
        ('x = {\n    1:\n    """One."""\n}', {1: "x = {", 2: "    1:", 3: '    """One."""', 4: "}"}),
        (
            'x = {\n    f(1\n    ):\n    """One."""\n}',
            {1: "x = {", 2: "    f(1", 3: "    ):", 4: '    """One."""', 5: "}"},
        ),
    ],
)
def test_lines_that_mean_something_are_kept(text: str, kept: dict[int, str]) -> None:
    found = code_lines(text)
    assert dict(zip(found.numbers, found.texts, strict=True)) == kept


def test_what_a_body_begins_with_is_documentation() -> None:
    text = 'def f(\n    x\n):\n    # a\n    """One.\n    """\n    return 1\n'
    assert code_lines(text).numbers == [1, 2, 3, 5, 6, 7]
    assert code_lines(text, [4]).numbers == [1, 2, 3, 5, 7]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_code_is_left_out(path: Path) -> None:
    """Put together again, what is kept parses to the same tree, but for documentation."""
    source = path.read_text(encoding="utf-8")
    whole = cut(source)
    if whole is None:
        return
    lines = source.split("\n")
    kept = dict(zip(whole.lines.numbers, whole.lines.texts, strict=True))
    text = "\n".join(_put_back(lines[at], kept.get(at + 1)) for at in range(len(lines)))
    assert _without_documentation(text) == _without_documentation(source)
    assert set(whole.lines.numbers) >= {each.lineno for each in ast.walk(ast.parse(text)) if isinstance(each, ast.stmt)}


def _put_back(line: str, kept: str | None) -> str:
    if kept is None:
        return ""
    return line[: len(line) - len(line.lstrip(" "))] + kept if kept == '""' else kept


def _without_documentation(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if ast.get_docstring(node, clean=False) is not None:
                del node.body[0]
    return ast.dump(tree)
