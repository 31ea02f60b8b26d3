"""Bodies of functions that are put aside: what comes back is what was there, and who asks by name is told all."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from capturelint.errors import SourceError
from capturelint.lifecycle import indirect, replacing
from capturelint.project.forms import DROPPING, REBINDING, STORED_OR_REGISTERED
from capturelint.project.module import Module, parse_module
from capturelint.project.packed import packed
from capturelint.project.text import Text
from capturelint.project.uses import Uses, find_uses
from capturelint.source.files import SourceFile

ROOT = Path(__file__).resolve().parent.parent
_SOURCE = '''\
"""Ähnlich."""

import functools


def plain(x): return x + helper(x)


@functools.lru_cache(maxsize=helper(3))
def decorated(
    x: int = 3,
) -> int:
    """Two
lines, one of them without an indentation."""
    text = """
global nothing
"""
    # a comment without an indentation, too

    def inner(y):
        return lambda z: helper(y)(z)

    return inner(f"{x!r:>{helper(2)}} ä {helper('ü')}")


class Runner:
    def __init__(self):
        global COUNT
        COUNT = 1
        (
            self.first,
            self.second,
        ) = helper(1), 2
        self.register_buffer("table", None)

    if COUNT:

        async def step(self, other):
            async with other.lock as self.lock:
                self.items.append(await other)
            for self.i in range(3):
                other.table[self.i] = self.first = \\
                    helper \\
                    (self.i)

            class Within:
                def method(self): helper(2)
'''


def _unexpected(error: SourceError) -> None:
    raise error


@pytest.fixture
def module(tmp_path: Path) -> Module:
    path = tmp_path / "odd.py"
    path.write_text(_SOURCE, encoding="utf-8")
    file = SourceFile.at(path)
    return parse_module(file, file.read(), "odd", False, _unexpected)


def test_a_tree_whose_bodies_came_later_is_the_one_of_the_whole_text(module: Module) -> None:
    dumped = ast.dump(module.tree, include_attributes=True)
    assert dumped == ast.dump(packed(ast.parse(_SOURCE)), include_attributes=True)


def test_only_bodies_that_are_asked_for_are_parsed(module: Module) -> None:
    assert [(holder.qualname if holder else None) for holder, _ in module.calls_named("range")] == ["Runner.step"]
    loaded = [body.function.qualname for body in module.bodies.all if body.function.later is None]
    assert loaded == ["Runner.step"]


def test_calls_are_found_in_the_order_of_a_walk_over_the_whole_module(module: Module) -> None:
    found = module.calls_named("helper")
    walked = find_uses([module.tree], None, module.functions)
    assert len(found) == 9
    assert [part.calls["helper"] for part in walked if isinstance(part, Uses)] == [found]


@pytest.mark.parametrize("name", ["first", "second", "lock", "i", "table"])
def test_what_binds_an_attribute_is_found_before_its_method_is_parsed(module: Module, name: str) -> None:
    runner = next(iter(module.classes.values()))
    assert runner.attribute_stores(name)


def test_what_changes_a_container_or_a_global_is_found_before_it_is_parsed(module: Module) -> None:
    runner = next(iter(module.classes.values()))
    assert [method.name for method, _ in runner.attribute_mutations("items")] == ["step"]
    assert [info.name for info in module.uses.globals("COUNT")] == ["__init__"]
    assert [item.slice.lineno for _, _, item in module.uses.attribute_items("table")] == [42]
    assert [cls.qualname for cls in module.all_classes()] == ["Runner", "Runner.step.<locals>.Within"]


REBINDS = [
    "self.x = y",
    "self.a, b = y",
    "b, self.a[i + 1].c, d = f(x)",
    "(\n    self.a,\n    b,\n) = y",
    "[\n    self.a[0],\n    b,\n] = y",
    "x = self.y = z",
    "if x: self.y = z",
    "table[key] = y",
    "self.tables[f(1)][2] = y",
    "self.inputs |= y",
    "x.data = y",
    "setattr(self, 'x', y)",
    "self.register_buffer(\n    'x', y)",
    "x.set_(y)",
    "self\\\n.update(y)",
    "model.half()",
    "model.to (device)",
]
BINDS_NO_OTHER = [
    "x = y",
    "f(self.x, y)",
    "x == self.y",
    "return self.x[1]",
    "if self.x >= y: pass",
    "x += 1",
    "self.to",
]


@pytest.mark.parametrize("text", REBINDS)
def test_texts_that_may_bind_something_elsewhere(text: str) -> None:
    assert Text(text).find("", REBINDING, 0) >= 0


@pytest.mark.parametrize("text", BINDS_NO_OTHER)
def test_texts_that_bind_nothing_elsewhere(text: str) -> None:
    assert Text(text).find("", REBINDING, 0) == -1


def test_no_statement_that_a_rule_looks_at_is_missed() -> None:
    looked_at = 0
    for path in sorted((ROOT / "fixtures").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            if any(indirect._stores(node)) or (isinstance(node, (ast.Assign, ast.Call)) and _is_looked_at(node)):
                assert Text(ast.get_source_segment(source, node) or "").find("", REBINDING, 0) >= 0, (path, node.lineno)
                looked_at += 1
    assert looked_at > 500


def _is_looked_at(node: ast.Assign | ast.Call) -> bool:
    """Calls of plain names but ``setattr`` come to nothing later on."""
    plain = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id != "setattr"
    return replacing._may_replace(node) and not plain


def test_an_empty_name_is_found_nowhere(module: Module) -> None:
    assert module.calls_named("") == []
    assert next(iter(module.classes.values())).attribute_stores("") == []
    assert Text("x.y = 1").find("", STORED_OR_REGISTERED, 0) == -1


def test_functions_that_drop_something_are_found_before_they_are_parsed(tmp_path: Path) -> None:
    path = tmp_path / "drops.py"
    path.write_text(_DROPS, encoding="utf-8")
    file = SourceFile.at(path)
    module = parse_module(file, file.read(), "drops", False, _unexpected)
    assert [info.name for info in module.all_functions("", form=DROPPING)] == ["a", "b", "c", "d"]
    assert not module.looked.listed
    assert [info.name for info in module.all_functions("gräph")] == list("abcdef")
    assert module.looked.listed


_DROPS = """\
def a(x):
    x.graph = None
def b(x):
    x = y = (
        None)
def c(x):
    del x.graph
def d(x):
    x \\
        =\\
        None
def e(x):
    if x == 1 or x is None: x = "None"
def f(x):
    x.delete(model)
"""
