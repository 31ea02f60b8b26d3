"""Times capturelint and its peers on the same trees, in one run.

    python benchmarks/speed.py TREE [TREE ...] [--rounds 5] [--peers BIN] [--jobs N]

TREE is a folder with Python code, such as an unpacked wheel; the work is done on a copy of it. Whole processes are
timed, from start to end, one after another in rounds, so that what else the machine does falls on all of them alike;
printed are medians, the peak memory of the largest process, and the ratio to ``ruff check --no-cache``. What is run:

  ruff      the whole tree, without a cache
  cold      the whole tree, without a cache
  warm      the whole tree, nothing changed since
  leaf      the whole tree, after a statement was added to a function of a file that no region reaches
  remark    the whole tree, after a comment was added to the file that most regions reach (the hub)
  added     the whole tree, after a function was added to the hub
  beside    the whole tree, after a statement was added to a function of the hub that nothing looked at
  hub       the whole tree, after a statement was added to a function of the hub that regions reach
  one file  that file alone, as pre-commit hands it over, without a cache
  again     that file alone, nothing changed since

The verifier is no part of this. TorchFix and Fixit need minutes for a large tree: with ``--peers`` (a ``bin`` folder
that holds them) each is timed once, on the first files of the tree up to so many lines, and its rate is scaled to the
whole.
"""

from __future__ import annotations

import argparse
import ast
import json
import shutil
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from measured import Measured, run

#: functions of the hub that are tried to find one that nothing looked at
_TRIES = 4
ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Tree:
    """A copy of a tree, and what is known of it."""

    folder: Path
    files: list[Path]
    lines: dict[Path, int]
    regions: int = 0
    reached_lines: int = 0
    leaf: Path = field(default_factory=Path)
    hub: Path = field(default_factory=Path)
    reaching_hub: int = 0
    #: functions of the hub, by the lines that they begin at: one that is reached, and one that was not looked at
    reached: str = ""
    beside: str = ""
    others: list[str] = field(default_factory=list)
    edits: int = 0

    def remark(self, file: Path) -> None:
        self.edits += 1
        with file.open("a", encoding="utf-8") as opened:
            opened.write(f"\n# edited {self.edits} times\n")

    def add_function(self, file: Path) -> None:
        self.edits += 1
        with file.open("a", encoding="utf-8") as opened:
            opened.write(f"\n\ndef added_by_an_edit_{self.edits}():\n    return {self.edits}\n")

    def add_statement(self, file: Path, name: str) -> None:
        """Puts a statement before the first one of a function, which ``name`` names within the file."""
        self.edits += 1
        source = file.read_text(encoding="utf-8")
        first = functions_of(source)[name].body[0]
        lines = source.split("\n")
        lines.insert(first.lineno - 1, f"{' ' * first.col_offset}edited = {self.edits}")
        file.write_text("\n".join(lines), encoding="utf-8")


def functions_of(source: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of a module and the methods of its classes, in order; of several with one name the last one."""
    found: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return {}
    for node in body:
        for each in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)) and each.body[0].lineno > each.lineno:
                found[f"{node.name}.{each.name}" if isinstance(node, ast.ClassDef) else each.name] = each
    return found


def read_tree(source: Path, target: Path) -> Tree:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"), symlinks=True)
    (target / "pyproject.toml").touch()  # where the project begins, for a file that is checked alone
    files = sorted(path for path in target.rglob("*.py") if path.is_file())
    return Tree(target, files, {path: path.read_bytes().count(b"\n") for path in files})


def capturelint(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "capturelint", *arguments]


def check(tree: Tree, *arguments: str, jobs: int | None) -> Measured:
    command = capturelint("check", "--exit-zero", "--quiet", "--timings", *arguments)
    command += ["--jobs", str(jobs)] if jobs else []
    done = run(command, cwd=tree.folder, environment={"PYTHONPATH": str(ROOT)})
    if done.status != 0:
        raise SystemExit(f"capturelint failed: {done.err[-2000:]}")
    return done


def look_at_regions(tree: Tree, cache: Path) -> None:
    """Counts what the regions reach, and chooses the files to edit."""
    command = capturelint("regions", "--format", "json", "--cache-dir", str(cache), ".")
    report = json.loads(run(command, cwd=tree.folder, environment={"PYTHONPATH": str(ROOT)}).out)
    reaching: Counter[str] = Counter()
    functions: set[tuple[str, int]] = set()
    names: dict[str, set[int]] = {}
    for region in report["regions"]:
        tree.regions += 1
        reached = region["reached"]
        functions.update((each["path"], each["line"]) for each in reached)
        reaching.update({region["path"], *(each["path"] for each in reached)})
        for each in reached:
            names.setdefault(each["path"], set()).add(each["line"])
    tree.reached_lines = sum(_lines_of(tree.folder, functions))
    hub, tree.reaching_hub = max(reaching.items(), key=lambda each: (each[1], each[0]))
    tree.hub = tree.folder / hub
    own = functions_of(tree.hub.read_text(encoding="utf-8"))
    tree.reached = next((name for name, node in own.items() if node.lineno in names.get(hub, ())), "")
    tree.others = [name for name, node in own.items() if node.lineno not in names.get(hub, ())]
    away = [file for file in tree.files if file.relative_to(tree.folder).as_posix() not in reaching]
    away = [file for file in away if functions_of(file.read_text(encoding="utf-8"))]
    tree.leaf = sorted(away, key=lambda file: (tree.lines[file], file))[len(away) // 2]


def _lines_of(folder: Path, functions: set[tuple[str, int]]) -> list[int]:
    """How long each function is that begins at a place."""
    found = []
    for path in {path for path, _ in functions}:
        wanted = {line for each, line in functions if each == path}
        for node in ast.walk(ast.parse((folder / path).read_bytes())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and node.lineno in wanted:
                found.append((node.end_lineno or node.lineno) - node.lineno + 1)
    return found


def time_rounds(tree: Tree, rounds: int, ruff: str, cache: Path, jobs: int | None) -> dict[str, list[Measured]]:
    kept = ("--cache-dir", str(cache))
    hub = tree.hub.relative_to(tree.folder).as_posix()

    def after(edit: Callable[[], None]) -> Measured:
        edit()
        return check(tree, *kept, ".", jobs=jobs)

    runs: dict[str, Callable[[], Measured]] = {
        "ruff": lambda: run([ruff, "check", "--no-cache", "--quiet", "."], cwd=tree.folder),
        "cold": lambda: check(tree, "--no-cache", ".", jobs=jobs),
        "hub": lambda: after(lambda: tree.add_statement(tree.hub, tree.reached)),
        "warm": lambda: check(tree, *kept, ".", jobs=jobs),
        "leaf": lambda: after(
            lambda: tree.add_statement(tree.leaf, next(iter(functions_of(tree.leaf.read_text(encoding="utf-8")))))
        ),
        "remark": lambda: after(lambda: tree.remark(tree.hub)),
        "added": lambda: after(lambda: tree.add_function(tree.hub)),
        "beside": lambda: after(lambda: tree.add_statement(tree.hub, tree.beside)),
        "one file": lambda: check(tree, "--no-cache", hub, jobs=jobs),
        "again": lambda: check(tree, *kept, hub, jobs=jobs),
    }
    check(tree, *kept, ".", jobs=jobs)
    tree.beside = _beside(tree, lambda: check(tree, *kept, ".", jobs=jobs))
    check(tree, *kept, hub, jobs=jobs)
    runs = {name: time for name, time in runs.items() if name != "beside" or tree.beside}
    found: dict[str, list[Measured]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, time in runs.items():
            if name == "again":
                check(tree, *kept, hub, jobs=jobs)  # the tree was edited in this round
            found[name].append(time())
    return found


def _beside(tree: Tree, time: Callable[[], Measured]) -> str:
    """A function of the hub after whose edit nothing is worked out anew; empty where a few tries give none."""
    for name in tree.others[-_TRIES:]:
        tree.add_statement(tree.hub, name)
        if "evaluate" not in time().err:
            return name
    return ""


def print_table(tree: Tree, found: dict[str, list[Measured]]) -> None:
    ruff = statistics.median(each.seconds for each in found["ruff"])
    for name, runs in found.items():
        seconds = [each.seconds for each in runs]
        median, peak = statistics.median(seconds), max(each.mebibytes for each in runs)
        print(
            f"  {name:<9} {median:8.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"
            f"  {peak:6.0f} MiB  {median / ruff:6.2f} times ruff"
        )
    cold = statistics.median(each.seconds for each in found["cold"])
    if tree.regions and tree.reached_lines:
        print(f"  cold: {1000 * cold / tree.regions:.1f} ms a region, "
              f"{1e6 * cold / tree.reached_lines:.0f} µs a reached line")  # fmt: skip
    stages = (line.split() for line in found["cold"][-1].err.splitlines())
    print(
        "  cold by stage:", ", ".join(f"{part[0]} {part[1]} s" for part in stages if len(part) == 3 and part[2] == "s")
    )


def print_peers(tree: Tree, folder: Path, scratch: Path, cold: float, most: int) -> None:
    """The slow peers on the first files of the tree."""
    sample = scratch / "sample"
    lines = 0
    for file in tree.files:
        if lines >= most:
            break
        target = sample / file.relative_to(tree.folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
        lines += tree.lines[file]
    whole = sum(tree.lines.values())
    commands = {
        "TorchFix": [str(folder / "torchfix"), "--select", "ALL", "."],
        "Fixit": [str(folder / "fixit"), "--quiet", "lint", "."],
    }
    for name, command in commands.items():
        done = run(command, cwd=sample)
        scaled = done.seconds * whole / lines
        print(
            f"  {name:<9} {scaled:8.0f} s, scaled: {done.seconds:.1f} s once for {lines:,} lines,"
            f" {lines / done.seconds:,.0f} lines/s; {done.mebibytes:.0f} MiB; {scaled / cold:.1f} times cold"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", type=Path, help="the bin folder of an environment with torchfix and fixit")
    parser.add_argument("--sample", type=int, default=40_000, help="lines that the peers are timed on")
    parser.add_argument("--jobs", type=int, help="processes of each check")
    given = parser.parse_args()
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or shutil.which("ruff")
    if ruff is None:
        parser.error("ruff is not installed")
    for source in given.tree:
        with tempfile.TemporaryDirectory() as scratch:
            tree = read_tree(source, Path(scratch, "tree"))
            cache = Path(scratch, "cache")
            look_at_regions(tree, cache)
            print(
                f"{source.name}: {len(tree.files):,} files, {sum(tree.lines.values()):,} lines; {tree.regions} regions"
                f" reach {tree.reached_lines:,} lines; the hub is {tree.hub.relative_to(tree.folder)},"
                f" which {tree.reaching_hub} of them reach"
            )
            found = time_rounds(tree, given.rounds, ruff, cache, given.jobs)
            print_table(tree, found)
            if given.peers is not None:
                cold = statistics.median(each.seconds for each in found["cold"])
                print_peers(tree, given.peers, Path(scratch), cold, given.sample)
    return 0


if __name__ == "__main__":
    sys.exit(main())
