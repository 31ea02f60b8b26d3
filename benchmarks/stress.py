"""Time and memory against size, on generated code: what grows faster than its input shows here.

    python benchmarks/stress.py                 all families
    python benchmarks/stress.py repository wide only these
    python benchmarks/stress.py --quick         the two smaller sizes of each

Each family is written to a temporary folder in three sizes and checked by a process of its own, without a cache.
Printed are seconds of processor time beyond those of an empty project, peak memory, and the exponent of growth from the
size before (1 is linear). The exit status is 1 when an exponent is above the limit, or a run fails or is killed at the
time limit.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from generated import Files, region
from long_code import LONG
from measured import Measured, run
from nested_code import NESTED
from tangled_code import TANGLED

ROOT = Path(__file__).resolve().parent.parent
#: steeper growth than this is reported; what is below a second is too noisy to ask for 1.0
LIMIT = 1.5
#: growth is only judged where the larger size takes this many seconds more than an empty project
WORTH_JUDGING = 1.0
SECONDS = 240


def layered(modules: int, regions: int) -> Files:
    """A repository: most modules are captured by nobody; each region reaches 20 that call each other, some in rings."""
    yield "pkg/__init__.py", ""
    for index in range(modules - regions):
        following = min((index + 1) % 20 + index // 20 * 20, modules - regions - 1)
        yield (
            f"pkg/m{index}.py",
            (
                f"import torch\nfrom pkg import m{following} as after\n\n\n"
                f"class Layer{index}(torch.nn.Module):\n"
                f"    def __init__(self, size{index}):\n        super().__init__()\n        self.scale{index} = 2\n\n"
                f"    def forward(self, x):\n        return step{index}(x * self.scale{index}, 3)\n\n\n"
                f"def step{index}(x, depth):\n    if depth:\n"
                f"        return after.step{following}(x + {index}, depth - 1)\n    return x\n\n\n"
                f"def report{index}(rows):\n    return [row.total for row in rows if row.kind == {index}]\n"
            ),
        )
    reached = max(1, (modules - regions) // 20)
    for index in range(regions):
        first = index % reached * 20
        yield (
            f"pkg/run{index}.py",
            region(
                f"y = Layer{first}(4)(x)\nz = step{first}(y, 5)\nself.out = z.max().item() if flag else z",
                f"from pkg.m{first} import Layer{first}, step{first}\n",
                str(index),
            ),
        )


def repository(size: int) -> Files:
    """A repository of ``size`` modules, with a region for each hundred."""
    return layered(size, max(2, size // 100))


def regions(size: int) -> Files:
    """``size`` regions in a repository of ten times as many modules."""
    return layered(size * 10, size)


def one_file(size: int) -> Files:
    """``size`` regions in one file."""
    parts = [region("y = helper(x)\nself.out = y.max().item()", name=str(index)) for index in range(size)]
    yield "run.py", "import torch\n\n\ndef helper(x):\n    return x + 1\n\n\n" + "\n".join(parts)


def deep(size: int) -> Files:
    """A chain of ``size`` calls."""
    steps = [f"def step{i}(x):\n    return step{i + 1}(x + 1)\n" for i in range(size)]
    yield "steps.py", "\n\n".join([*steps, f"def step{size}(x):\n    return x.item()\n"])
    yield "run.py", region("self.out = step0(x)", "from steps import step0\n")


def wide(size: int) -> Files:
    """``size`` calls of ``size`` functions from one."""
    yield "steps.py", "\n\n".join(f"def step{i}(x):\n    return x + {i}\n" for i in range(size))
    yield "run.py", region("\n".join(f"x = steps.step{i}(x)" for i in range(size)), "import steps\n")


def methods(size: int) -> Files:
    """A base class with ``size`` subclasses, each in a module of its own, and a region that calls the base's method."""
    yield "base.py", "class Base:\n    def work(self, x):\n        return x\n"
    for i in range(size):
        yield (
            f"sub{i}.py",
            (f"from base import Base\n\n\nclass Sub{i}(Base):\n    def work(self, x):\n        return x + {i}\n"),
        )
    yield (
        "run.py",
        region("self.out = other.work(x)", "from base import Base\n").replace("flag, other)", "flag, other: Base)"),
    )


def heirs(size: int) -> Files:
    """A line of ``size`` classes, each derived from the one before."""
    parts = ["class C0:\n    def work(self, x):\n        return x.item()\n"]
    parts += [
        f"class C{i}(C{i - 1}):\n    def own{i}(self, x):\n        return super().work(x)\n" for i in range(1, size)
    ]
    yield "classes.py", "\n\n".join(parts)
    yield "run.py", region(f"self.out = C{size - 1}().work(x)", f"from classes import C{size - 1}\n")


def long_function(size: int) -> Files:
    """A function of ``size`` statements."""
    yield "run.py", region("\n".join(f"y{i} = x * {i} + (y{i - 1} if {i} > 1 else x)" for i in range(1, size)))


def branches(size: int) -> Files:
    """``size`` branches one after another, each of which binds what the next one reads."""
    body = "y = x\n" + "\n".join(f"if other.get({i}):\n    y = y + {i}\nelse:\n    y = y.clone()" for i in range(size))
    yield "run.py", region(body)


def elifs(size: int) -> Files:
    """One ``if`` with ``size`` ``elif``."""
    arms = "\n".join(f"elif other == {i}:\n    y = x + {i}" for i in range(size))
    yield "run.py", region(f"if flag:\n    y = x\n{arms}\nelse:\n    y = x\nself.out = y.max().item()")


def sums(size: int) -> Files:
    """``x + x + ...`` with ``size`` terms."""
    yield "run.py", region(f"self.out = {' + '.join(['x'] * size)}")


def chains(size: int) -> Files:
    """``x.abs().abs()...`` with ``size`` calls."""
    yield "run.py", region(f"self.out = x{'.abs()' * size}")


def nested(size: int) -> Files:
    """Loops and branches within each other: ``size`` blocks, eight deep."""
    lines = []
    for i in range(size):
        depth = i % 8
        lines.append("    " * depth + (f"for i{i} in range(4):" if depth % 2 else f"if other.get({i}):"))
        if depth == 7 or i == size - 1:
            lines.append("    " * (depth + 1) + f"x = x + {i}")
    yield "run.py", region("\n".join(lines))


def loops(size: int) -> Files:
    """``size`` loops in each other, the innermost of which does something."""
    lines = ["    " * i + f"for i{i} in other.rows({i}):" for i in range(size)]
    yield "run.py", region("\n".join([*lines, "    " * size + "x = x + 1"]) + "\nself.out = x.max().item()")


def literals(size: int) -> Files:
    """A list and a dictionary with ``size`` entries each, which the region reads."""
    yield (
        "tables.py",
        (
            f"ROWS = [{', '.join(str(i) for i in range(size))}]\n"
            f"NAMES = {{{', '.join(f'{i!r}: [{i}, {i}.5]' for i in range(size))}}}\n"
        ),
    )
    yield "run.py", region("self.out = x * tables.ROWS[3] + tables.NAMES[4][0]", "import tables\n")


def strings(size: int) -> Files:
    """A line of ``size`` characters beside the region."""
    yield "run.py", region("self.out = x.max().item()") + f"\nTEXT = {'a' * size!r}\n"


def recursive(size: int) -> Files:
    """``size`` functions in modules that import each other in a ring, each of which calls the next two."""
    for i in range(size):
        one, two = (i + 1) % size, (i + 2) % size
        yield (
            f"r{i}.py",
            (
                f"import r{one}, r{two}\n\n\ndef go(x, n):\n    if n:\n"
                f"        return r{one}.go(x, n - 1) + r{two}.go(x + 1, n - 2)\n    return x.item()\n"
            ),
        )
    yield "run.py", region("self.out = r0.go(x, other)", "import r0\n")


def attributes(size: int) -> Files:
    """An attribute that ``size`` modules assign, and ``size`` attributes that the region reads."""
    for i in range(size):
        yield f"set{i}.py", f"def change(runner):\n    runner.level = {i}\n    runner.level{i} = {i}\n"
    yield (
        "run.py",
        region("y = x * self.level\n" + "\n".join(f"y = y * self.level{i}" for i in range(size)) + "\nself.out = y"),
    )


FAMILIES: dict[Callable[[int], Files], tuple[int, int, int]] = {
    repository: (1000, 5000, 20_000),
    regions: (50, 100, 200),
    one_file: (125, 250, 500),
    deep: (50, 100, 200),
    wide: (250, 500, 1000),
    methods: (250, 500, 1000),
    heirs: (50, 100, 200),
    long_function: (500, 1000, 2000),
    branches: (100, 200, 400),
    elifs: (100, 200, 400),
    sums: (200, 400, 800),
    chains: (100, 200, 400),
    nested: (80, 160, 320),
    loops: (5, 10, 20),
    literals: (5000, 10_000, 20_000),
    strings: (250_000, 500_000, 1_000_000),
    recursive: (50, 100, 200),
    attributes: (100, 200, 400),
    **LONG,
    **NESTED,
    **TANGLED,
}


def measure(files: Files, jobs: int) -> Measured:
    """One check of some files, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files:
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        check = ("check", "--no-cache", "--exit-zero", "--quiet", "--jobs", str(jobs), ".")
        command = [sys.executable, "-m", "capturelint", *check]
        return run(command, cwd=Path(folder), environment={"PYTHONPATH": str(ROOT)}, limit=SECONDS)


def fault(measured: Measured) -> str:
    if measured.timed_out:
        return f"killed after {SECONDS} s"
    return "" if measured.status == 0 else measured.err.strip().splitlines()[-1]


def growth(smaller: float, larger: float, ratio: float) -> float:
    """The exponent by which time grows with size."""
    return math.log(max(larger, 1e-3) / max(smaller, 1e-3)) / math.log(ratio)


def print_family(family: Callable[[int], Files], sizes: tuple[int, ...], empty: float, jobs: int) -> bool:
    """Prints a line a size; whether all went well and growth stayed below the limit."""
    beyond: list[float] = []
    well = True
    print(f"{family.__name__}: {(family.__doc__ or '').splitlines()[0]}")
    for size in sizes:
        measured = measure(family(size), jobs)
        beyond.append(max(measured.busy - empty, 0.01))
        why = fault(measured)
        exponent = growth(beyond[-2], beyond[-1], size / sizes[len(beyond) - 2]) if len(beyond) > 1 else None
        steep = exponent is not None and exponent > LIMIT and beyond[-1] > WORTH_JUDGING
        well = well and not why and not steep
        shown = f"   growth {exponent:4.2f}{'  TOO STEEP' if steep else ''}" if exponent is not None else ""
        print(f"  {size:>9,}  {beyond[-1]:8.2f} s  {measured.mebibytes:7.0f} MiB{shown}{'  ' + why if why else ''}")
        if why:
            break
    return well


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", nargs="*", help=", ".join(family.__name__ for family in FAMILIES))
    parser.add_argument("--quick", action="store_true", help="the two smaller sizes")
    parser.add_argument("--jobs", type=int, default=1, help="processes of each check")
    given = parser.parse_args()
    known = {family.__name__ for family in FAMILIES}
    if set(given.family) - known:
        parser.error(f"no family {', '.join(sorted(set(given.family) - known))}")
    empty = min(measure(iter([("run.py", region("y = x + 1"))]), given.jobs).busy for _ in range(3))
    print(f"a project of one region takes {empty:.2f} s, which is taken off below")
    well = True
    for family, sizes in FAMILIES.items():
        if not given.family or family.__name__ in given.family:
            well = print_family(family, sizes[:2] if given.quick else sizes, empty, given.jobs) and well
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
