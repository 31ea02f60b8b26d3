"""The arguments of calls outside regions: whoever asks for one of them makes nobody work out the others."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from capturelint.project.project import Project
from capturelint.rulebook.ops import load_ops
from capturelint.source.files import SourceFile
from capturelint.values.domain import Function, Host, Value, options
from capturelint.values.engine import Engine
from capturelint.values.given import Wanted, wanted_arguments

CALLED = """
PAIR = (1, 2)
NAMED = {"b": 5}


def called(a, b=7, *, c=None):
    return b
"""

#: how ``called`` is called, and what its ``b`` then is
CALLS = {
    "called(1, 2)": 2,
    "called(1, b=3)": 3,
    "called(*PAIR)": 2,
    "called(*PAIR, c=1)": 2,
    "called(9, *PAIR)": 1,
    "called(1, **NAMED)": 5,
    "called(1, c=4, **NAMED)": 5,
    "called(1)": 7,
    "called(c=1, a=2)": 7,
}


def engine_for(text: str, folder: Path) -> tuple[Engine, Project, Path]:
    path = folder / "program.py"
    project = Project(folder, [SourceFile(path, "program.py", content=text.encode())])
    return Engine(project, load_ops()), project, path


def constants(value: Value) -> set[object]:
    return {option.const for option in options(value) if isinstance(option, Host)}


@pytest.mark.parametrize("call", CALLS)
def test_a_parameter_is_what_its_own_argument_says(call: str, tmp_path: Path) -> None:
    engine, project, path = engine_for(f"{CALLED}\n\n{call}\n", tmp_path)
    module = project.module_at(path)
    assert module is not None
    value = engine.global_name(module, "called")
    assert isinstance(value, Function)
    found = engine.function_scope(value.info).lookup("b")
    assert found is not None and constants(found) == {CALLS[call]}


@pytest.mark.parametrize(("wanted", "asked"), [(Wanted(1, 2, "b"), {"second"}), (Wanted(0, 0, "c"), {"third"})])
def test_other_arguments_are_not_worked_out(
    wanted: Wanted, asked: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("first", "second", "third")
    text = CALLED + "".join(f"\n\ndef {name}():\n    return 1\n" for name in names)
    engine, project, path = engine_for(text, tmp_path)
    module = project.module_at(path)
    assert module is not None
    call = ast.parse("called(first(), second(), c=third())", mode="eval").body
    assert isinstance(call, ast.Call)
    looked_up: set[str] = set()
    name_of = Engine.name
    monkeypatch.setattr(Engine, "name", lambda self, name, frame: (looked_up.add(name), name_of(self, name, frame))[1])
    given = wanted_arguments(call, engine.frame_for(engine.module_scope(module)), wanted)
    assert looked_up & set(names) == asked
    assert constants(given.get(1, "c" if wanted.keyword == "c" else "b") or Host()) == {1}
