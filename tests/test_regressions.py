"""The programs under ``fixtures/regressions`` are reported exactly as their comments say; nothing breaks the tool."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from expectations import FIXTURES, Mark, differences, python_files, read_labels, root_of
from scoring import check, lines_of

from capturelint.model import CheckResult

REGRESSIONS = FIXTURES / "regressions"
#: programs that are right as they stand and still reported; they move up once they are not
PENDING = "pending"


def regressions() -> list[Path]:
    """Every program: a file that stands alone, or a folder of modules."""
    return sorted(
        p
        for p in REGRESSIONS.iterdir()
        if p.suffix == ".py" or (p.is_dir() and p.name.isidentifier() and p.name != PENDING)
    )


EVERY = pytest.mark.parametrize("program", regressions(), ids=lambda program: program.stem)


@pytest.fixture
def alone(program: Path, tmp_path: Path) -> Path:
    """A copy of the program with no other beside it: who calls what is asked of the program alone."""
    if program.is_dir():
        return Path(shutil.copytree(program, tmp_path / program.name))
    return Path(shutil.copy(program, tmp_path))


def marks(program: Path) -> list[Mark]:
    root = root_of(program)
    return [Mark(path, line, finding.rule) for path, line, finding in lines_of(check(program, root), root)]


@EVERY
def test_regression_is_reported_as_labelled(alone: Path) -> None:
    assert "\n".join(differences(read_labels(alone), marks(alone), root_of(alone))) == ""


@EVERY
def test_regression_compiles_and_says_its_kind(program: Path) -> None:
    sources = [file.read_text(encoding="utf-8") for file in python_files(program)]
    trees = [ast.parse(source) for source in sources]
    assert any((ast.get_docstring(tree) or "").startswith("Kind: ") for tree in trees)


HEAD = """\
import torch

def capture(x: torch.Tensor, graph: torch.cuda.CUDAGraph):
    with torch.cuda.graph(graph):
        return step(x)
"""
#: a file beside the heavy one: whatever happens there, this one is checked
BESIDE = HEAD + "\ndef step(x: torch.Tensor):\n    return x * x.max().item()\n"


def chained(calls: int) -> str:
    """One expression of many chained calls, with a read at its end."""
    return f"def step(x: torch.Tensor):\n    return x{'.relu()' * calls}.sum().item()\n"


def added(terms: int) -> str:
    return f"def step(x: torch.Tensor):\n    return ({' + '.join(['x'] * terms)}).sum().item()\n"


def nested_calls(depth: int) -> str:
    return f"def step(x: torch.Tensor):\n    return {'torch.relu(' * depth}x{')' * depth}.sum().item()\n"


def call_chain(length: int) -> str:
    """Functions that call one another, the last of which reads."""
    defs = [f"def step{i or ''}(x: torch.Tensor):\n    return step{i + 1}(x * 2)\n" for i in range(length)]
    return "\n".join([*defs, f"def step{length}(x: torch.Tensor):\n    return x.sum().item()\n"])


def nested_blocks(depth: int) -> str:
    lines = ["def step(x: torch.Tensor, flags: list):", "    y = x"]
    lines += ["    " * (i + 1) + f"if flags[{i}]:" for i in range(depth)]
    return "\n".join([*lines, "    " * (depth + 1) + "y = y * y.max().item()", "    return y", ""])


RECURSION = {
    "itself": """\
def step(x: torch.Tensor, depth: int = 4):
    if depth == 0:
        return x
    return step(x * 2, depth - 1) + x.max().item()
""",
    "each other": """\
def step(x: torch.Tensor):
    return other(x * 2) if x.shape[0] > 2 else x

def other(x: torch.Tensor):
    return step(x[1:]) + x.max().item()
""",
    "growing arguments": """\
def step(x: torch.Tensor, seen: tuple = ()):
    if len(seen) > 100:
        return x
    return step(x * 2, (*seen, (x, seen))) + x.max().item()
""",
    "a closure that grows": """\
def step(x: torch.Tensor, then=lambda y: y):
    if x.shape[0] < 2:
        return then(x)
    return step(x[1:], lambda y: then(y) + y.max().item())
""",
    "a class that holds itself": """\
class Node:
    def __init__(self, next=None):
        self.next = next or Node(self)

    def run(self, x: torch.Tensor):
        return self.next.run(x) * x.max().item()

def step(x: torch.Tensor):
    return Node().run(x)
""",
}
#: what is read is what the recursive call returned
RECURSIVE_RESULT = """\
def step(x: torch.Tensor):
    if x.shape[0] < 2:
        return x
    y = step(x[1:])
    return y + y.max().item()
"""


def heavy() -> Iterator[tuple[str, str]]:
    yield from (("200 chained calls", chained(200)), ("2000 chained calls", chained(2000)))
    yield from (("2000 terms", added(2000)), ("80 nested calls", nested_calls(80)))
    yield from (("30 functions deep", call_chain(30)), ("18 nested blocks", nested_blocks(18)))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "beside.py").write_text(BESIDE, encoding="utf-8")
    return tmp_path


def check_heavy(project: Path, source: str) -> CheckResult:
    (project / "heavy.py").write_text(HEAD + "\n" + source, encoding="utf-8")
    return check(project, project)


def found_in(project: Path, source: str) -> tuple[list[Mark], list[str]]:
    """The findings in the heavy file and the paths of all diagnostics; the file beside it must have its own finding."""
    result = check_heavy(project, source)
    reported = [Mark(path, line, finding.rule) for path, line, finding in lines_of(result, project)]
    beside = len(BESIDE.splitlines())
    assert [mark for mark in reported if mark.path == "beside.py"] == [Mark("beside.py", beside, "CG101")]
    return [mark for mark in reported if mark.path == "heavy.py"], [str(d.path) for d in result.diagnostics]


@pytest.mark.parametrize("source", [pytest.param(source, id=name) for name, source in heavy()])
def test_deep_code_is_found_or_said_to_be_too_deep(project: Path, source: str) -> None:
    """Never a crash, and never silence: what is too deep for Python's parser is a diagnostic for that file."""
    reported, diagnostics = found_in(project, source)
    if diagnostics:
        assert reported == []
        assert [Path(path).name for path in diagnostics] == ["heavy.py"]
    else:
        assert [mark.rule for mark in reported] == ["CG101"]


@pytest.mark.parametrize("source", list(RECURSION.values()), ids=list(RECURSION))
def test_recursion_ends_and_is_looked_into(project: Path, source: str) -> None:
    line = next(n for n, text in enumerate((HEAD + "\n" + source).splitlines(), 1) if ".item()" in text)
    assert found_in(project, source) == ([Mark("heavy.py", line, "CG101")], [])


@pytest.mark.parametrize(
    "source", [pytest.param(call_chain(100), id="100 deep"), pytest.param(RECURSIVE_RESULT, id="own result")]
)
def test_what_was_not_followed_is_said(project: Path, source: str) -> None:
    """The read may be found; where it is not, the region counts the call that was not followed."""
    result = check_heavy(project, source)
    found = [finding.rule for finding in result.findings if Path(finding.path).name == "heavy.py"]
    unfollowed = [
        call for region in result.regions if Path(region.path).name == "heavy.py" for call in region.unresolved
    ]
    assert result.diagnostics == ()
    assert found in ([], ["CG101"])
    assert found or unfollowed


def test_a_function_of_3000_statements(project: Path) -> None:
    lines = ["def step(x: torch.Tensor):", "    y0 = x"]
    lines += [f"    y{i} = y{i - 1} * 2 + {i}" for i in range(1, 3000)]
    source = "\n".join([*lines, "    return y2999 * y2999.max().item()", ""])
    last = len((HEAD + "\n" + source).splitlines())
    assert found_in(project, source) == ([Mark("heavy.py", last, "CG101")], [])
