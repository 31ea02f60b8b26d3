"""Results that are taken over are those that would be worked out anew, whatever became of the files in between."""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import REPOSITORY, Ran, write_files

from capturelint.cache.codec import decode_result, encode_result
from capturelint.cache.store import Store
from capturelint.check import CheckOptions, check_paths
from capturelint.config import Config
from capturelint.model import CheckResult, Confidence
from capturelint.report.json import render_json, render_regions_json
from capturelint.reuse.added import CALLED_BY_LIBRARIES

PROJECT = {
    "pyproject.toml": "",
    "engine/__init__.py": "",
    "engine/run.py": """\
import torch

from engine.model import Model
from engine.steps import Base, step


class Runner:
    def __init__(self, base: Base, n: int):
        self.base = base
        self.limit = 4
        self.model = Model()
        self.static = torch.zeros(4, device="cuda")

    def capture(self):
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            y = step(self.static)
            z = self.base.work(y)
            w = z * self.limit
            self.out = self.model(w)
""",
    "engine/model.py": """\
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.ops.mine.scale(x) + 1
""",
    "engine/steps.py": """\
import torch


class Base:
    def work(self, x):
        '''Works.'''
        return x


def step(x):
    return x + 1


class Table:
    def __init__(self, rows):
        self.rows = rows

    def total(self):
        found = 0
        for row in self.rows:
            found += row
        return found


def last(x):
    return x
""",
    "engine/unrelated.py": "def nothing():\n    return 1\n",
    "engine/docs.py": '"""Prose."""\n',
}

STEPS = PROJECT["engine/steps.py"]
ITEM = "    return x.max().item()\n"
ITEM_STEPS = STEPS.replace("    return x + 1\n", ITEM)
DERIVES = """\
from engine import steps


class Other(steps.Base):
    def work(self, x):
        return x.cpu()
"""
CALLS = """\
from engine.run import Runner
from engine.steps import Base

Runner(Base(), 3).capture()
"""
REGISTERS = """\
import torch


@torch.library.custom_op('mine::scale', mutates_args=())
def scale(x: torch.Tensor) -> torch.Tensor:
    return x * x.sum().item()
"""
SECOND = """\
import torch


def go(g, x):
    with torch.cuda.graph(g):
        x.cpu()
"""
#: edits of a file that a region reaches, and whether what was found is taken over
WITHIN: list[tuple[str, str, bool]] = [
    ("another body that nobody looked at", STEPS.replace("found += row", "found = found + row"), True),
    ("a longer one", STEPS.replace("        found = 0\n", "        found = 0\n        rows = len(self.rows)\n"), True),
    ("its docstring", STEPS.replace("        found = 0\n", '        """All."""\n        found = 0\n'), True),
    ("a comment between functions", STEPS.replace("class Table", "# rows\n\n\nclass Table"), True),
    ("a comment above all", "# first\n" + STEPS, True),
    ("a comment in a function that is reached", STEPS.replace("    return x + 1", "    # one\n    return x + 1"), True),
    ("one behind its code", STEPS.replace("return x + 1", "return x + 1  # one"), True),
    ("one behind its header", STEPS.replace("def step(x):", "def step(x):  # one"), True),
    (
        "the documentation of another one",
        STEPS.replace("Works.'''", "Works,\n\n        and well.'''  # so it is said"),
        True,
    ),
    (
        "documentation where there was none",
        STEPS.replace("    return x + 1", '    """One."""\n    return x + 1'),
        False,
    ),
    ("what a reached function does", ITEM_STEPS, False),
    ("a header", STEPS.replace("def total(self)", "def total(self, start=0)"), False),
    ("a decorator", STEPS.replace("    def total", "    @property\n    def total"), False),
    ("another function", STEPS + "\n\ndef more(x):\n    return x\n", True),
    ("another one, in between", STEPS.replace("class Table", "def more(x): return x\n\n\nclass Table"), True),
    (
        "another one that calls itself",
        STEPS + "\n\nasync def more(x):\n    def f():\n        pass\n    more(x)\n",
        True,
    ),
    (
        "two of them, one of which calls the other",
        STEPS.replace("class Table", "def more(x):\n    return x\n\n\nclass Table") + "\n\ndef other(x): more(x)\n",
        True,
    ),
    ("two of the same name", STEPS + "\n\ndef more(x):\n    return x\n\n\ndef more(x):\n    return x\n", True),
    ("one that is spoken of", STEPS + "\n\ndef more(x):\n    return x\n\n\nX = more\n", False),
    ("one that is spoken of elsewhere", STEPS + "\n\ndef nothing(x):\n    return x\n", False),
    ("one that binds an attribute of a region's", STEPS + "\n\ndef more(x):\n    x.limit = 3\n", False),
    ("a decorated one", STEPS + "\n\n@more\ndef more(x):\n    return x\n", False),
    ("one that replaces another", STEPS + "\n\ndef last(x):\n    return x.cpu()\n", False),
    ("another method", STEPS.replace("class Table:", "class Table:\n    def more(self):\n        return 1\n"), True),
    (
        "another one behind others",
        STEPS.replace(
            "        return found",
            "        return found\n\n    async def more(\n        self,\n        x,\n    ):\n        return 1\n",
        ),
        True,
    ),
    ("a method on one line", STEPS.replace("class Table:", "class Table:\n    def more(self): return 1\n"), True),
    (
        "a decorated method",
        STEPS.replace("class Table:", "class Table:\n    @more(\n        1\n    )\n    def more(self): return 1\n"),
        False,
    ),
    (
        "a method that a library calls",
        STEPS.replace("class Table:", "class Table:\n    def run(self):\n        return 1\n"),
        False,
    ),
    (
        "a method that binds what a region reads",
        STEPS.replace("class Base:", "class Base:\n    def more(self):\n        self.limit = 1\n"),
        False,
    ),
    (
        "a method and a call of it that nobody looks at",
        STEPS.replace("class Table:", "class Table:\n    def more(self):\n        return 1\n").replace(
            "found += row", "found += self.more()"
        ),
        True,
    ),
    (
        "a function and a call of it that is looked at",
        STEPS.replace("return x + 1", "return more(x)") + "\n\ndef more(x):\n    return x\n",
        False,
    ),
    ("one less", STEPS[: STEPS.index("\n\ndef last")], False),
    ("a body that binds an attribute of a region's", STEPS.replace("found += row", "row.limit = 3"), False),
    ("a body that calls a reached function", STEPS.replace("found += row", "found += step(row)"), True),
    ("a body that defines a class", STEPS.replace("found = 0", "class Row: pass"), True),
    ("a class that derives from a region's", STEPS.replace("found = 0", "class Row(Base): pass"), False),
    ("a body that is wrong", STEPS.replace("found += row", "found +="), False),
    ("a suppression in it", STEPS.replace("found = 0", "found = 0  # capturelint: ignore[CG101] none"), False),
]
#: what is done to the project, one after another; ``None`` deletes, ``old>new`` renames
EDITS: list[tuple[str, dict[str, str | None]]] = [
    ("a hazard in a reached function", {"engine/steps.py": ITEM_STEPS}),
    ("and back", {"engine/steps.py": PROJECT["engine/steps.py"]}),
    ("a class that derives from one of the region's, in a new file", {"engine/more.py": DERIVES}),
    ("it derives no more", {"engine/more.py": DERIVES.replace("steps.Base", "object")}),
    ("and does again", {"engine/more.py": DERIVES}),
    ("the file is renamed", {"engine/more.py>engine/other.py": None}),
    ("the file is deleted", {"engine/other.py": None}),
    ("a file assigns an attribute", {"engine/unrelated.py": "def change(runner):\n    runner.limit += 1\n"}),
    ("and no longer", {"engine/unrelated.py": "def change(runner):\n    return runner.limit\n"}),
    ("a function of the same name", {"engine/unrelated.py": "def step(x):\n    return x\n"}),
    ("and a call of it", {"engine/unrelated.py": "def step(x):\n    return x\n\n\nstep(3)\n"}),
    ("an attribute of its own", {"engine/unrelated.py": "class A:\n    def go(self, x):\n        self.limit = 3\n"}),
    (
        "and of another object",
        {"engine/unrelated.py": "class A:\n    def go(self, x):\n        x.limit = 3\n"},
    ),
    ("prose alone", {"engine/docs.py": '"""Other prose."""\n'}),
    ("a caller that says what is given", {"engine/docs.py": CALLS}),
    ("an operator is registered", {"engine/unrelated.py": REGISTERS}),
    ("a second region", {"engine/second.py": SECOND}),
    ("a module shadows another", {"engine/steps/__init__.py": ITEM_STEPS}),
    ("and is gone", {"engine/steps/__init__.py": None}),
    ("a syntax error in a file of its own", {"engine/docs.py": "def (\n"}),
    ("another one", {"engine/docs.py": "\ndef (\n"}),
    ("a syntax error in a reached file", {"engine/model.py": "class\n"}),
    ("both are right again", {"engine/docs.py": "", "engine/model.py": PROJECT["engine/model.py"]}),
    ("an unused suppression", {"engine/docs.py": "x = 1  # capturelint: ignore[CG101] no reason\n"}),
    ("an ignore file", {".gitignore": "second.py\n"}),
    ("a file that is no text", {"engine/docs.py": "# -*- coding: nonsense -*-\n"}),
    ("the region is gone", {"engine/run.py": None}),
]


def make_edit(root: Path, edit: dict[str, str | None]) -> None:
    for name, text in edit.items():
        old, _, new = name.partition(">")
        if new:
            (root / old).rename(root / new)
        elif text is None:
            (root / old).unlink()
            if not any((root / old).parent.iterdir()):
                (root / old).parent.rmdir()
        else:
            write_files(root, {name: text})


def options_of(root: Path, store: Store | None = None) -> CheckOptions:
    return CheckOptions((root,), Config(), (), (), Confidence.POSSIBLE, root, cache=store)


def reports(result: CheckResult) -> tuple[str, str]:
    return render_json(result), render_regions_json(result)


def was_taken_over(result: CheckResult) -> bool:
    return "findings" not in result.timings


@pytest.fixture(autouse=True, params=["one process", "two processes"])
def _processes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a second process asked of the project counts as well."""
    if request.param == "two processes":
        monkeypatch.setattr("capturelint.analysis._FEW_CONTEXTS", 0)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    write_files(folder, PROJECT)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache")


def test_warm_is_cold_after_each_edit(root: Path, store: Store) -> None:
    check_paths(options_of(root, store))
    seen = set()
    for what, edit in EDITS:
        make_edit(root, edit)
        warm = check_paths(options_of(root, store))
        cold = check_paths(options_of(root))
        again = check_paths(options_of(root, store))
        assert reports(warm) == reports(cold), what
        assert warm.notes == cold.notes
        assert reports(again) == reports(cold), what
        assert was_taken_over(again), what
        seen.add(reports(cold))
    assert len(seen) > len(EDITS) // 2  # the edits do change what is found


def test_warm_is_cold_after_edits_in_any_order(root: Path, store: Store) -> None:
    chance = random.Random(20)
    applicable = [edit for _, edit in EDITS if all(">" not in name and text is not None for name, text in edit.items())]
    for _ in range(25):
        for edit in chance.sample(applicable, chance.randint(1, 3)):
            make_edit(root, edit)
        assert reports(check_paths(options_of(root, store))) == reports(check_paths(options_of(root)))


def test_an_edit_that_has_no_say_leaves_the_result(root: Path, store: Store) -> None:
    check_paths(options_of(root, store))
    make_edit(root, {"engine/docs.py": '"""Other prose, and more of it."""\n'})
    assert was_taken_over(check_paths(options_of(root, store)))
    make_edit(root, {"engine/steps.py": PROJECT["engine/steps.py"] + "X = 1\n"})
    assert not was_taken_over(check_paths(options_of(root, store)))


@pytest.mark.parametrize(("text", "taken_over"), [each[1:] for each in WITHIN], ids=[each[0] for each in WITHIN])
def test_an_edit_of_a_reached_file(root: Path, store: Store, text: str, taken_over: bool) -> None:
    check_paths(options_of(root, store))
    make_edit(root, {"engine/steps.py": text})
    warm = check_paths(options_of(root, store))
    assert reports(warm) == reports(check_paths(options_of(root)))
    assert was_taken_over(warm) == taken_over


@pytest.mark.parametrize("names", [["steps.py"], ["run.py", "model.py"], ["docs.py"], ["unrelated.py", "steps.py"]])
def test_files_that_are_named_share_what_is_known_of_the_project(root: Path, store: Store, names: list[str]) -> None:
    make_edit(root, EDITS[0][1])
    named = tuple(root / "engine" / name for name in names)
    cold = check_paths(replace(options_of(root), paths=named))
    check_paths(options_of(root, store))
    warm = check_paths(replace(options_of(root, store), paths=named))
    assert was_taken_over(warm)
    assert reports(warm) == reports(cold)
    assert cold.files == len(names)
    assert {each.path for each in cold.findings} == {"engine/steps.py"} & {f"engine/{name}" for name in names}
    assert bool(cold.regions) == (set(names) != {"docs.py"})


def test_it_does_not_matter_how_the_project_is_named(root: Path, store: Store) -> None:
    check_paths(replace(options_of(root, store), paths=(Path(),)))
    assert was_taken_over(check_paths(options_of(root, store)))
    assert was_taken_over(check_paths(replace(options_of(root, store), paths=(Path("engine/run.py"),))))
    assert was_taken_over(check_paths(replace(options_of(root, store), paths=(root / "engine" / "steps.py",))))


def test_a_named_file_is_parsed_whatever_is_known(root: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capturelint.check._PARSE_ALL", 0)
    check_paths(options_of(root, store))
    write_files(root, {"engine/docs.py": "def (\n"})
    options = replace(options_of(root, store), paths=(root / "engine" / "docs.py",))
    for _ in range(2):
        assert [(each.path, each.line) for each in check_paths(options).diagnostics] == [("engine/docs.py", 1)]


def test_edits_of_what_nobody_looked_at_add_up(root: Path, store: Store) -> None:
    check_paths(options_of(root, store))
    text = STEPS
    for each in ("# first\n", "X = 1\n", "# second\n\n# third\n"):
        text = each + text
        make_edit(root, {"engine/steps.py": text})
        assert reports(check_paths(options_of(root, store))) == reports(check_paths(options_of(root)))


def test_going_back_and_on_starts_from_what_is_there(root: Path, store: Store) -> None:
    check_paths(options_of(root, store))
    make_edit(root, {"engine/steps.py": ITEM_STEPS})
    check_paths(options_of(root, store))
    make_edit(root, {"engine/steps.py": STEPS})
    check_paths(options_of(root, store))
    make_edit(root, {"engine/model.py": "# first\n" + PROJECT["engine/model.py"]})
    assert was_taken_over(check_paths(options_of(root, store)))


def test_an_edit_within_the_clock_and_of_the_same_size_counts(root: Path, store: Store) -> None:
    file = root / "engine" / "steps.py"
    make_edit(
        root, {"engine/steps.py": PROJECT["engine/steps.py"].replace("    return x + 1\n", "    return x.cpu()\n")}
    )
    before = file.stat()
    first = check_paths(options_of(root, store))
    file.write_text(file.read_text(encoding="utf-8").replace("x.cpu()", "x.abs()"), encoding="utf-8")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    second = check_paths(options_of(root, store))
    assert reports(first) != reports(second)


@pytest.mark.parametrize(
    "change",
    [
        lambda options: replace(options, select=("CG101",)),
        lambda options: replace(options, ignore=("CG101",)),
        lambda options: replace(options, min_confidence=Confidence.CERTAIN),
        lambda options: replace(options, config=Config(regions=("**:nothing",))),
        lambda options: replace(options, config=Config(torch_version="2.1")),
        lambda options: replace(options, paths=(options.root / "engine",)),
    ],
)
def test_other_options_are_another_result(
    root: Path, store: Store, change: Callable[[CheckOptions], CheckOptions]
) -> None:
    make_edit(root, EDITS[0][1])
    check_paths(options_of(root, store))
    changed = check_paths(change(options_of(root, store)))
    assert not was_taken_over(changed)
    assert reports(changed) == reports(check_paths(change(options_of(root))))


def test_a_preset_of_the_users_counts_by_content(root: Path, store: Store) -> None:
    preset = "version: 1\nname: mine\nsummary: ours\n"
    config = Config(presets=("mine.yaml",))
    write_files(root, {"mine.yaml": preset})
    assert len(check_paths(replace(options_of(root, store), config=config)).regions) == 1
    write_files(root, {"mine.yaml": preset + "regions: ['**:nothing']\n"})
    assert len(check_paths(replace(options_of(root, store), config=config)).regions) == 2


def test_another_working_directory_is_another_result(root: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    check_paths(options_of(root, store))
    monkeypatch.chdir(root / "engine")
    assert check_paths(options_of(root, store)).regions[0].path == "run.py"


def test_the_tools_own_faults_are_not_kept(root: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("capturelint.analysis.enter", lambda *_: 1 / 0)
        assert "internal error" in check_paths(options_of(root, store)).diagnostics[0].message
    assert check_paths(options_of(root, store)).diagnostics == ()


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"result":[],"rests":{}}', '{"result":5}', "\0"])
def test_an_entry_of_another_form_is_none(root: Path, store: Store, content: str) -> None:
    first = check_paths(options_of(root, store))
    for file in [file for file in store.folder.rglob("*") if len(file.name) == 64]:
        store.put(file.name, content.encode())
    assert reports(check_paths(options_of(root, store))) == reports(first)


def test_results_survive_the_way_to_disk_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    for name in ("decode_runner", "static_buffers"):
        folder = REPOSITORY / "fixtures" / "programs" / name
        result = check_paths(options_of(folder if folder.is_dir() else REPOSITORY / "fixtures" / "programs"))
        assert result.findings
        kept = decode_result(encode_result(result))
        assert kept == replace(result, timings={}, behind=None)


def test_the_command_line_keeps_and_takes_over(run_tool: Callable[..., Ran], root: Path, tmp_path: Path) -> None:
    make_edit(root, EDITS[0][1])
    folder = tmp_path / "named"
    check = ("check", "--timings", "--cache-dir", folder)
    cold = run_tool(*check, cwd=root)
    warm = run_tool(*check, cwd=root)
    without = run_tool(*check, "--no-cache", cwd=root)
    assert (warm.status, warm.out) == (cold.status, cold.out) == (without.status, without.out)
    assert "evaluate" in cold.err
    assert "evaluate" not in warm.err
    assert "evaluate" in without.err

    def cache(*arguments: str) -> str:
        return run_tool("cache", "--cache-dir", folder, *arguments, cwd=root).out

    assert cache("dir") == f"{folder}\n"
    assert cache("size").startswith("2 entries, ")
    assert cache("prune") == "0 entries dropped\n"
    assert cache("prune", "--max-size", "0") == "2 entries dropped\n"
    run_tool(*check, cwd=root)
    assert cache("clean") == "2 entries deleted\n"
    assert not folder.exists()


def test_the_configuration_names_the_folder(run_tool: Callable[..., Ran], root: Path) -> None:
    write_files(root, {"capturelint.toml": 'cache-dir = ".kept"\n'})
    run_tool("check", cwd=root, CAPTURELINT_CACHE_DIR="")
    assert run_tool("cache", "dir", cwd=root, CAPTURELINT_CACHE_DIR="").out == f"{root / '.kept'}\n"
    assert run_tool("cache", "size", cwd=root, CAPTURELINT_CACHE_DIR="").out.startswith("2 entries")


def test_a_folder_that_cannot_be_written_is_no_error(run_tool: Callable[..., Ran], root: Path) -> None:
    shutil.copy(root / "engine" / "run.py", root / "blocked")
    plain = run_tool("check", "--no-cache", cwd=root)
    blocked = run_tool("check", "--cache-dir", "blocked", cwd=root)
    assert (blocked.status, blocked.out, blocked.err) == (plain.status, plain.out, plain.err)


def test_files_that_nobody_asked_any_more_have_no_say(root: Path, store: Store) -> None:
    """An attribute that very many files bind is looked for in the first of them alone."""
    write_files(root, {f"engine/s{number}.py": "def change(x):\n    x.limit = 3\n" for number in range(80)})
    write_files(root, {"engine/z.py": "def show(x):\n    print(x.limit)\n"})
    check_paths(options_of(root, store))
    make_edit(root, {"engine/z.py": "def show(x):\n    print(x.limit)\n# edited\n"})
    assert was_taken_over(check_paths(options_of(root, store)))
    make_edit(root, {"engine/docs.py": "def show(x):\n    print(x.limit)\n"})
    assert not was_taken_over(check_paths(options_of(root, store)))


def test_methods_that_the_analysis_asks_for_by_name_are_known_to_be_called() -> None:
    asked = re.compile(r"""find_method\([^()"]*(?:\([^()]*\)[^()"]*)*"(\w+)\"""")
    names = {
        name
        for path in (REPOSITORY / "capturelint").rglob("*.py")
        for name in asked.findall(path.read_text(encoding="utf-8"))
    }
    assert "forward" in names
    assert {name for name in names if not name.startswith("__")} <= CALLED_BY_LIBRARIES
