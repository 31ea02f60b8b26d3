"""Sources that are no plain UTF-8 of moderate size: what is found in them, and where."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import write_files

from capturelint.check import CheckOptions, check_paths
from capturelint.config import Config
from capturelint.model import CheckResult, Confidence
from capturelint.report.diagnostics import message_of
from capturelint.source.newer_syntax import newer_version

Check = Callable[[bytes], CheckResult]

REGION = (
    "import torch\nfrom capturelint import capture_region\n\n\n"
    '@capture_region(inputs={"x": "float32[8]"})\ndef f(x: torch.Tensor):\n    return x.item()\n'
)


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    monkeypatch.chdir(tmp_path)

    def run(data: bytes) -> CheckResult:
        (tmp_path / "a.py").write_bytes(data)
        return check_paths(CheckOptions((tmp_path,), Config(), (), (), Confidence.LIKELY, tmp_path))

    return run


def places(result: CheckResult) -> list[tuple[int, int]]:
    assert result.diagnostics == ()
    return [(finding.span.line, finding.span.column) for finding in result.findings]


@pytest.mark.parametrize(
    ("lines", "column"),
    [
        ("    y = 1\n\f    return x.item()\n", 13),
        ("    y = 1\n  \f\f    return x.item()\n", 16),
        ("\f    return x.item()\n", 13),
        ("\f    y = 1\n    return x.item()\n", 12),
        ("\f\n    return x.item()\n", 12),
        ("    return f(\n\f  x.item())\n", 4),
        ("    y = 'ä'\n\f    return ('ä', x.item())\n", 19),
    ],
)
def test_a_form_feed_before_an_indent_hides_nothing(check: Check, lines: str, column: int) -> None:
    result = check(REGION.replace("    return x.item()\n", lines).encode())
    assert places(result) == [(6 + lines.count("\n"), column)]
    assert result.findings[0].text == "x.item()"


#: what ``str.splitlines`` ends a line at and Python does not
NO_LINE_ENDS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"


@pytest.mark.parametrize(
    "line",
    [
        "    a = '?'; y = x.item()  # ?\n",
        "    # ?\n    y = x.item()\n",
        '    a = """?\n?"""; y = x.item()\n',
        "    a = f('?',\n      '?'), x.item()\n",
        "    y = x.item()  # why ? not\n",
    ],
)
def test_what_ends_no_line_moves_nothing(check: Check, line: str) -> None:
    plain = REGION.replace("    return", line + "    return")
    expected = places(check(plain.replace("?", "_" * len(NO_LINE_ENDS)).encode()))
    assert len(expected) == 2
    assert places(check(plain.replace("?", NO_LINE_ENDS).encode())) == expected


def test_nor_does_it_part_a_comment_from_its_statement(check: Check) -> None:
    line = f"return '{NO_LINE_ENDS}', x.item()  # capturelint: ignore[CG101] why {NO_LINE_ENDS} not\n"
    result = check(REGION.replace("return x.item()\n", line).encode())
    assert [(f.rule, f.suppressed is not None) for f in result.findings] == [("CG101", True)]


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (REGION.encode(), (7, 12)),
        (REGION.replace("\n", "\r\n").encode(), (7, 12)),
        (REGION.replace("\n", "\r").encode(), (7, 12)),
        (b"\xef\xbb\xbf" + REGION.encode(), (7, 12)),
        (REGION.replace("    return", "\treturn").encode(), (7, 9)),
        (REGION.replace("    return", "\treturn\t'\t',").encode(), (7, 14)),
        (REGION.replace("\n\n\n", "\n\x0c\n\n").encode(), (7, 12)),
        (REGION.replace("\n@", "\n\x0c@").encode(), (7, 12)),
        (REGION.replace("    return", "\x0c    return").encode(), (7, 13)),
        (REGION.replace("return x", "return 'äöü\U0001f600', x").encode(), (7, 20)),
        (b"# coding: latin-1\n" + REGION.replace("return x", "return 'äöü', x").encode("latin-1"), (8, 19)),
        (b"#!python\n# vim: set fileencoding=cp1252 :\n" + REGION.encode(), (9, 12)),
        (REGION.rstrip("\n").encode(), (7, 12)),
        (REGION.encode() + b"\x0c\n \t\n", (7, 12)),
    ],
)
def test_places_count_lines_and_characters_from_1(check: Check, data: bytes, place: tuple[int, int]) -> None:
    assert places(check(data)) == [place]


def test_a_very_long_line(check: Check) -> None:
    before = "['" + "0" * 2_000_000 + "', " + "0, " * 5_000 + "]"
    start = time.perf_counter()
    assert places(check(REGION.replace("return x", f"return {before}, x").encode())) == [(7, 12 + len(before) + 2)]
    assert time.perf_counter() - start < 60


def test_a_file_of_fifty_thousand_lines(check: Check) -> None:
    filler = "".join(f"def g{n}(a, b):\n    c = a + b  # noqa: E501\n    return c\n\n\n" for n in range(10_000))
    start = time.perf_counter()
    result = check((filler + REGION + "# capturelint: ignore[CG101] why\n" * 100).encode())
    assert [(f.rule, f.span.line) for f in result.findings if f.rule == "CG101"] == [("CG101", 50_007)]
    assert sum(finding.rule == "CG001" for finding in result.findings) == 100
    assert time.perf_counter() - start < 60


def test_a_long_function(check: Check) -> None:
    body = "    y = x * 2\n" * 5_000
    assert places(check(REGION.replace("    return", body + "    return").encode())) == [(5_007, 12)]


# -- links -----------------------------------------------------------------------------------------------------------


def test_loops_of_links_end_and_no_file_is_checked_twice(tmp_path: Path, check: Check) -> None:
    write_files(tmp_path, {"sub/b.py": REGION})
    (tmp_path / "sub" / "up").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "again").symlink_to("sub", target_is_directory=True)
    (tmp_path / "sub" / "self.py").symlink_to("self.py")
    (tmp_path / "twin.py").symlink_to("sub/b.py")
    result = check(b"")
    assert [(finding.path, finding.span.line) for finding in result.findings] == [("sub/b.py", 7)]
    assert (result.files, len(result.regions)) == (2, 1)


# -- newer syntax ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "version"),
    [
        ("try:\n    f()\nexcept* ValueError:\n    pass\n", (3, 11)),
        ("def f(*args: *Ts):\n    return args[*a]\n", (3, 11)),
        ("type Pair[T] = tuple[T, T]\n", (3, 12)),
        ("def f[T](x: T) -> T:\n    return x\n", (3, 12)),
        ("class A[*Ts]:\n    pass\n", (3, 12)),
        ("class A[T = int]:\n    pass\n", (3, 13)),
        ("try:\n    f()\nexcept ValueError, TypeError:\n    pass\n", (3, 14)),
        ('x = t"{y}"\n', (3, 14)),
    ],
)
def test_syntax_of_a_newer_python_is_called_so(check: Check, source: str, version: tuple[int, int]) -> None:
    assert newer_version(source, (3, 10)) == version
    assert newer_version(source, version) is None
    said = [message_of(diagnostic) for diagnostic in check(source.encode()).diagnostics]
    running = sys.version_info[:2]
    expected = f": this is syntax of Python 3.{version[1]} (read as Python 3.{running[1]})"
    assert [text.endswith(expected) for text in said] == ([True] if running < version else [])


def test_quotes_within_the_braces_of_an_f_string(check: Check) -> None:
    said = [message_of(diagnostic) for diagnostic in check(b'x = f"{a["b"]}"\n').diagnostics]
    running = sys.version_info[:2]
    expected = f": this is syntax of Python 3.12 (read as Python 3.{running[1]})"
    assert [text.endswith(expected) for text in said] == ([True] if running < (3, 12) else [])


@pytest.mark.parametrize("source", ["x = = 1\n", "type X = int\nx = = 1\n", "x = f'{y}'\ny = '\\U'\n", "def f(:\n"])
def test_what_is_wrong_in_any_python_is_not_called_newer(check: Check, source: str) -> None:
    assert newer_version(source, (3, 10)) in (None, (3, 12) if source.startswith("x = f") else None)
    (diagnostic,) = check(source.encode()).diagnostics
    assert "syntax of Python" not in message_of(diagnostic)


def test_brackets_that_no_python_nests_so_deeply_are_an_error(check: Check) -> None:
    (diagnostic,) = check(b"x = " + b"(" * 3000 + b")" * 3000 + b"\n").diagnostics
    assert message_of(diagnostic).startswith("too many nested parentheses")


@pytest.mark.parametrize("text", ['x = "a" b"c"\n', 'x = b"a" f"c"\n'])
def test_what_libcst_refuses_in_another_way_is_wrong_in_any_python(check: Check, text: str) -> None:
    (diagnostic,) = check(text.encode()).diagnostics
    assert "newer" not in message_of(diagnostic)
    assert "internal error" not in message_of(diagnostic)


_DECORATED = """\
import torch


@(
    torch.no_grad()
)
def go(g):
    with torch.cuda.graph(g):
        torch.ones(3, device="cuda").item()
"""


def test_a_decorator_behind_a_parenthesis(check: Check) -> None:
    result = check(_DECORATED.encode())
    assert result.diagnostics == ()
    assert places(result) == [(9, 9)]


def test_what_libcst_does_not_take_is_said_so(check: Check) -> None:
    text = (
        "import torch\n\n\ndef go(g):\n    \\\nx = torch.ones(3, device='cuda')\n"
        "    with torch.cuda.graph(g):\n        y = x.item()\n"
    )
    (diagnostic,) = check(text.encode()).diagnostics
    assert diagnostic.line == 4
    assert "LibCST cannot read this function" in diagnostic.message
