"""Packed trees: the same nodes in the same places, in less memory."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from capturelint.project.packed import by_class, packed
from capturelint.project.syntax import children, walk_all

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "capturelint" / "project").glob("*.py"))


def _same(left: object, right: object) -> bool:
    if isinstance(left, ast.AST) and isinstance(right, ast.AST):
        names = left._fields + left._attributes
        return left.__class__.__name__ == right.__class__.__name__ and all(
            _same(getattr(left, name, None), getattr(right, name, None)) for name in names
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return type(left) is type(right) and left == right


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_a_packed_tree_is_the_same_tree(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    made = packed(ast.parse(source))
    assert _same(made, ast.parse(source))
    assert ast.unparse(made) == ast.unparse(ast.parse(source))


def test_nodes_of_packed_trees_are_what_they_were_and_hold_no_dictionary() -> None:
    statement = packed(ast.parse("x.y = f('z', *a, k=1)")).body[0]
    assert isinstance(statement, ast.Assign)
    assert isinstance(statement.targets[0], ast.Attribute)
    assert [each.__dict__ for each in walk_all(statement)] == [{}] * 10


def test_children_are_the_same_for_both() -> None:
    for path in SOURCES:
        plain = ast.parse(path.read_text(encoding="utf-8"))
        names = [each.__class__.__name__ for each in walk_all(plain)]
        assert names == [each.__class__.__name__ for each in walk_all(packed(plain))]


def test_children_come_in_the_order_of_their_fields() -> None:
    silent = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
    for path in SOURCES:
        nodes = ast.walk(packed(ast.parse(path.read_text(encoding="utf-8"))))
        for node in (each for each in nodes if not isinstance(each, silent)):
            expected = [each for each in ast.iter_child_nodes(node) if not isinstance(each, silent)]
            assert children(node) == expected


def test_what_is_rare_is_kept() -> None:
    constant = packed(ast.parse("u'text'", mode="eval")).body
    assert isinstance(constant, ast.Constant)
    assert constant.kind == "u"
    other = packed(ast.parse("'text'", mode="eval")).body
    assert isinstance(other, ast.Constant)
    assert other.kind is None


def test_what_is_nested_too_deeply_stays_as_it_is() -> None:
    source = "x = " + " + ".join("ab"[at % 2] for at in range(900))
    limit = sys.getrecursionlimit()
    tree = ast.parse(source)
    sys.setrecursionlimit(400)
    try:
        made = packed(tree)
    finally:
        sys.setrecursionlimit(limit)
    assert isinstance(made, ast.Module)
    assert ast.unparse(made.body[0].targets[0]) == "x"  # type: ignore[attr-defined]
    assert sum(isinstance(node, ast.Name) for node in ast.walk(made)) == 901


def test_a_table_by_class_knows_nodes_of_both_kinds() -> None:
    table = by_class({ast.Name: "name"})
    assert [table.get(node.__class__) for node in (ast.Name("x"), packed(ast.parse("x", mode="eval")).body)] == [
        "name",
        "name",
    ]


def test_no_code_goes_by_the_very_class_of_plain_nodes() -> None:
    by_the_class = re.compile(r"(?:__class__|type\(\w+\)) (?:is|is not|==|!=|in|not in) \(?ast\.")
    for path in sorted((ROOT / "capturelint").rglob("*.py")):
        if path.name != "packed.py":
            assert not by_the_class.search(path.read_text(encoding="utf-8")), path
