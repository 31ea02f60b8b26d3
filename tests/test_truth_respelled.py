"""The measured constructs in other words: parameters renamed, and regions around wrappers that call them.

What a construct does hangs on none of this, so the findings must be the same, on the same lines.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from scoring import TRUTH, Found, check, lines_of

#: constructs that say something by the name or the place of what is renamed or wrapped: none so far
Edit = Callable[[str], str]


def region_of(tree: ast.Module) -> ast.FunctionDef:
    """The construct's own function; a few mark a method or hold their region otherwise and are left as they are."""
    return next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list)


def renamed(source: str) -> str:
    """Each parameter of the region under another name, in its body and in the specs of its inputs."""
    tree = ast.parse(source)
    function = region_of(tree)
    names = {each.arg: f"{each.arg}_of_step_{index}" for index, each in enumerate(function.args.args)}
    edits: list[tuple[int, int, int, str]] = []
    for node in ast.walk(function):
        if isinstance(node, ast.arg) and node.arg in names:
            edits.append((node.lineno, node.col_offset, len(node.arg), names[node.arg]))
        elif isinstance(node, ast.Name) and node.id in names:
            edits.append((node.lineno, node.col_offset, len(node.id), names[node.id]))
    for decorator in function.decorator_list:
        for node in ast.walk(decorator):
            if isinstance(node, ast.Dict):
                for key in node.keys:
                    if isinstance(key, ast.Constant) and key.value in names:
                        edits.append((key.lineno, key.col_offset + 1, len(key.value), names[key.value]))
    lines = [line.encode() for line in source.split("\n")]
    for line, column, length, text in sorted(edits, reverse=True):
        old = lines[line - 1]
        lines[line - 1] = old[:column] + text.encode() + old[column + length :]
    return b"\n".join(lines).decode()


def wrapped(source: str) -> str:
    """The region as an unmarked function, and a marked one that calls it with inputs of the same specs."""
    return _wrapped(source, annotate=False)


def annotated(source: str) -> str:
    """The same with the specs in the annotations of the wrapper."""
    return _wrapped(source, annotate=True)


def _wrapped(source: str, *, annotate: bool) -> str:
    tree = ast.parse(source)
    function = region_of(tree)
    decorator = function.decorator_list[0]
    lines = source.split("\n")
    for index in range(decorator.lineno - 1, function.lineno - 1):
        lines[index] = ""
    names = [each.arg for each in function.args.args]
    specs = _specs(decorator)
    given = [f"given_{name}" for name in names]
    marker = ["", "", "from typing import Annotated", "from capturelint import capture_region", "", ""]
    if annotate:
        typed = [
            f'{new}: Annotated[torch.Tensor, "{specs[old]}"]' if old in specs else f"{new}: torch.Tensor"
            for old, new in zip(names, given, strict=True)
        ]
        marker += ["@capture_region"]
    else:
        typed = [f"{new}: torch.Tensor" for new in given]
        inputs = ", ".join(f'"{new}": "{specs[old]}"' for old, new in zip(names, given, strict=True) if old in specs)
        marker += [f"@capture_region(inputs={{{inputs}}})"]
    marker += [f"def captured({', '.join(typed)}):", f"    return {function.name}({', '.join(given)})", ""]
    return "\n".join(lines + marker)


def _specs(decorator: ast.expr) -> dict[str, str]:
    for node in ast.walk(decorator):
        if isinstance(node, ast.keyword) and node.arg == "inputs":
            found: dict[str, str] = ast.literal_eval(node.value)
            return found
    return {}


def findings(root: Path) -> dict[str, Found]:
    table: dict[str, Found] = {}
    for path, line, finding in lines_of(check(root, root), root):
        table.setdefault(Path(path).stem, {}).setdefault(str(line), []).append(finding.rule)
    return {name: {spot: sorted(rules) for spot, rules in found.items()} for name, found in table.items()}


@pytest.fixture(scope="module")
def original() -> dict[str, Found]:
    found: dict[str, Found] = json.loads((TRUTH / "found.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("edit", [renamed, wrapped, annotated], ids=lambda edit: edit.__name__)
def test_the_same_is_found(
    edit: Edit, original: dict[str, Found], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    changed = 0
    for file in sorted(TRUTH.glob("*.py")):
        source = file.read_text(encoding="utf-8")
        text = edit(source)
        compile(text, file.name, "exec")
        changed += text != source
        (tmp_path / file.name).write_text(text, encoding="utf-8")
    assert changed > 150
    found = findings(tmp_path)
    assert {name: rows for name, rows in found.items() if rows != original.get(name)} == {}
    assert {name: rows for name, rows in original.items() if rows != found.get(name)} == {}
