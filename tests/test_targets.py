"""What texts tell of targets before they are parsed: never that a target is none, and seldom that something else is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from capturelint.project.syntax import store_targets
from capturelint.project.targets import may_be_bound, may_set_item

ROOT = Path(__file__).parent.parent

BINDS = [
    "self.x = y",
    "self.x += y",
    "self.x //= y",
    "self.x \\\n    = y",
    "self.x: int",
    "self.x: int = y",
    "(self.x): int = y",
    "a = 1; self.x: int",
    "self.x, b = y",
    "b, self.x = y",
    "b = self.x, c = y",
    "(b, self.x) = y",
    "[b, (self.x, c)] = y",
    "(\n    self.x,\n    b,\n) = y",
    "(\n    b,  # first\n    self.x,  # second\n    c,\n) = y",
    "(\n    b\n    , self.x\n) = y",
    "a[i + 1], self.x, b[~c] = y",
    "self.x, b[i - 1], c = y",
    "self.x, *b = y",
    "if a: self.x, b = y",
    "f(a, b)\nself.x, b = y",
    "# of a, b,\nself.x, b = y",
    "table[f(a, 'b')], self.x = y",
    "for self.x in y: pass",
    "for a, self.x in y: pass",
    "for a[b:c], self.x in y: pass",
    "async def f():\n    async for a[b in c], self.x in y: pass",
    "for (\n    a,\n    self.x,\n) in y: pass",
    "with a as self.x: pass",
    "with a as (b, self.x): pass",
    "with (\n    a as self.x,\n    b as c,\n): pass",
    "with a as (\n    b,\n    self.x,\n): pass",
    "self.x,\\\n    b = y",
]
BINDS_NOT = [
    "if self.x: pass",
    "if self.x == y: pass",
    "if self.x in y: pass",
    "if f(self.x): pass",
    "while a and self.x: pass",
    "f(self.x, y=1)",
    "f(a, b=self.x, y=1)",
    "f(\n    self.x,\n    y=1,\n)",
    "f(\n    a,\n    self.x, y=1\n)",
    "f('a, b', self.x, y=1)",
    "a = {self.x: y}",
    "a = b[self.x : y]",
    "a = b[self.x]",
    "b[self.x] = y",
    "return self.x, y",
    "a = (self.x, y)\nb = 1",
    "a = self.x\nb = 1",
    "a = self.x  # = b",
    "for a in self.x: pass",
    "a = [f(self.x) for b in y]",
    "self.x.a = y",
    "self.x + a == b",
]
SETS = [
    "self.x[a] = y",
    "self.x[a, b[c]] = y",
    "self.x[f('a]')] = y",
    "self.x[a], b = y",
    "b, self.x [a] = y",
    "self.x[\n    a\n] = y",
    "self.x[a]: int = y",
    "(self.x)[a] = y",
    "(self.x\n    [a]) = y",
    "for self.x[a] in y: pass",
    "with b as self.x[a]: pass",
]
SETS_NOT = [
    "a = self.x[b]",
    "a = self.x['b'], c",
    "f(self.x[a], b=1)",
    "if self.x[a] == b: pass",
    "self.x[a].b = y",
    "self.x[a][b] = y",
    "a = f(self.x)",
    "a = self.x\nb = 1",
]


def _place(text: str) -> tuple[str, int, int]:
    assert text.count("self.x") == 1
    at = text.index("self.x") + len("self.")
    return text, at, at + 1


@pytest.mark.parametrize("text", BINDS)
def test_what_binds_an_attribute_may_bind_it(text: str) -> None:
    assert _is_target(text, ast.Attribute)
    assert may_be_bound(*_place(text))


@pytest.mark.parametrize("text", BINDS_NOT)
def test_what_reads_an_attribute_does_not_bind_it(text: str) -> None:
    assert not may_be_bound(*_place(text))


@pytest.mark.parametrize("text", SETS)
def test_what_sets_an_entry_may_set_it(text: str) -> None:
    assert _is_target(text, ast.Subscript)
    assert may_set_item(*_place(text))


@pytest.mark.parametrize("text", SETS_NOT)
def test_what_reads_an_entry_does_not_set_it(text: str) -> None:
    assert not may_set_item(*_place(text))


def test_no_target_in_the_sources_of_this_project_is_missed() -> None:
    seen = 0
    for path in [path for name in ("capturelint", "fixtures", "tests") for path in sorted((ROOT / name).rglob("*.py"))]:
        source = path.read_text(encoding="utf-8")
        starts = [0]
        for line in source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        for target in _targets(source):
            named = target.value if isinstance(target, ast.Subscript) else target
            assert isinstance(named, (ast.Attribute, ast.Name))
            line = source[starts[(named.end_lineno or 1) - 1] :]
            column = len(line.encode()[: named.end_col_offset].decode())
            end = starts[(named.end_lineno or 1) - 1] + column
            start = end - len(named.attr if isinstance(named, ast.Attribute) else named.id)
            asked = may_set_item if isinstance(target, ast.Subscript) else may_be_bound
            assert asked(source, start, end), (path, target.lineno)
            seen += 1
    assert seen > 1000


def _targets(source: str) -> Iterator[ast.Attribute | ast.Subscript]:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    for target in (target for node in ast.walk(tree) for target in store_targets(node)):
        named = target.value if isinstance(target, ast.Subscript) else target
        if isinstance(named, ast.Attribute) or (isinstance(named, ast.Name) and named is not target):
            assert isinstance(target, (ast.Attribute, ast.Subscript))
            yield target


def _is_target(text: str, kind: type[ast.AST]) -> bool:
    """Guards the tables above: that Python says so too."""
    return any(
        isinstance(target, kind) and "x" in ast.unparse(target)
        for node in ast.walk(ast.parse(text))
        for target in store_targets(node)
    )
