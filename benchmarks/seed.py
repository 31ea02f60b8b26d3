"""Recall in depth: plants hazards in copies of real packages and counts those that are found on their line.

usage: python benchmarks/seed.py CORPUS [NAME ...]

CORPUS holds one folder a package (``sglang``, ``vllm``, ...) with its unpacked wheel. Every function that a region
reaches is a candidate, however unsure the way to it. One hazard is planted in each of ``--count`` functions chosen at
random, on a value that the source itself says is a tensor (an annotation, an operator of torch's on such a value, a
constructor with a ``device=``), so that the choice does not rest on what the linter knows of the value. What the linter
calls possible, and branches that it does not walk, count as not found; both have a column of their own. Nothing is
planted behind a test that asks for other hardware than CUDA by a name such as ``is_rocm``: no machine that captures for
CUDA comes there. Calls that presets keep from being followed (for other hardware, or no part of a capture) are counted
beside the functions.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from capturelint.check import CheckOptions, check_paths
from capturelint.config import Config
from capturelint.model import CheckResult, Confidence
from capturelint.reach import Evidence

_T = TypeVar("_T")

#: names that say of themselves that they are not on the device
_HOST_WORDS = ("cpu", "host", "np", "numpy", "list", "pinned", "pin")
_FACTORIES = {"empty", "zeros", "ones", "full", "arange", "rand", "randn", "tensor"}
_NOT_TENSORS = {"is_tensor", "numel", "is_floating_point", "finfo", "iinfo", "device", "Size", "dtype", "equal"}
#: names of tests that hold on other hardware
_OTHER_HARDWARE = {f"is_{name}" for name in ("cpu", "hip", "hpu", "musa", "npu", "rocm", "tpu", "xpu")}
_KEEPING = {
    "view", "reshape", "contiguous", "float", "half", "bfloat16", "clone", "detach", "transpose", "permute",
    "unsqueeze", "squeeze", "flatten", "expand", "new_empty", "new_zeros", "new_ones", "new_full",
    "sum", "mean", "softmax", "long",
    "int", "bool", "mul", "add", "sub", "div", "exp", "sqrt", "rsqrt", "pow", "abs", "clamp", "masked_fill", "gather",
    "index_select", "repeat", "t", "neg", "type_as", "cumsum", "argmax", "matmul", "mul_", "add_", "copy_", "fill_",
}  # fmt: skip
_HAZARDS = {
    "item": "{t}.sum().item()",
    "branch": "if {t}.any(): pass",
    "mask": "{t}[{t} != 0]",
    "tensor": "torch.tensor([1, 2], device={t}.device)",
    "cpu": "{t}.cpu()",
    "synchronize": "torch.cuda.synchronize()",
}


@dataclass(frozen=True)
class Point:
    """A place before a statement where names are known to be tensors."""

    line: int
    indent: str
    names: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Target:
    path: str
    line: int
    name: str
    depth: int
    sure: Confidence


@dataclass(frozen=True)
class Planted:
    target: Target
    line: int
    hazard: str
    known_by: str
    text: str


def targets(root: Path) -> list[Target]:
    """Every function that is reached, with the length of the shortest of the surest ways to it.

    Ways that a run at default confidence does not follow are possible ones, whatever the other run says of them.
    """
    (known, _), (possible, not_followed) = at_both(reached, root)
    for key, target in possible.items():
        known.setdefault(key, replace(target, sure=Confidence.POSSIBLE))
    print(f"{root.name}: {len(known)} functions reached", flush=True)
    for reason, count in sorted(not_followed.items()):
        print(f"  {count} calls not followed, {reason}", flush=True)
    return sorted(known.values(), key=lambda each: (each.path, each.line))


def reached(root: Path, confidence: Confidence) -> tuple[dict[tuple[str, int, str], Target], Counter[str]]:
    """The functions, and how many calls presets keep from being followed."""
    result = check(root, confidence)
    found: dict[tuple[str, int, str], Target] = {}
    calls = {(call.path, call.line, call.column, call.reason) for each in result.regions for call in each.unresolved}
    not_followed = Counter(reason for *_, reason in calls if reason.endswith("(preset)"))
    assert isinstance(result.behind, Evidence)
    for reach in result.behind.reaches:
        for context, step in reach.steps.items():
            info = context.function
            if info is None or isinstance(info.node, ast.Lambda) or step.caller is None:
                continue  # the function that holds a block is not the block
            key = (context.module.display, info.line, info.qualname)
            new = Target(*key, len(reach.trace(context)), step.confidence)
            old = found.get(key)
            if old is None or (new.sure.rank, -new.depth) > (old.sure.rank, -old.depth):
                found[key] = new
    return found, not_followed


class Points:
    """The places of one function, by a walk over its statements that knows only what the source says."""

    def __init__(self, function: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> None:
        self.function, self.lines, self.found = function, lines, list[Point]()
        names = {}
        for parameter in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs):
            how = _annotation(parameter.annotation)
            if how is not None and not _says_host(parameter.arg):
                names[parameter.arg] = how
        self._block(function.body, names)

    def _block(self, body: list[ast.stmt], names: dict[str, str]) -> None:
        for index, statement in enumerate(body):
            text = self.lines[statement.lineno - 1]
            indent = text[: len(text) - len(text.lstrip())]
            alone = len(indent.encode()) == statement.col_offset
            docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            first = statement.lineno
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                first = min([first, *(each.lineno for each in statement.decorator_list)])
            if (
                alone
                and not (docstring and index == 0)
                and names
                and not isinstance(statement, (ast.Global, ast.Raise))
            ):
                self.found.append(Point(first, indent, tuple(names.items())))
            self._statement(statement, names)

    def _statement(self, statement: ast.stmt, names: dict[str, str]) -> None:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.pop(statement.name, None)
            return
        value = getattr(statement, "value", None)
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                how = _tensor(value, names) if value is not None else None
                if isinstance(target, ast.Name) and how is not None and not _says_host(target.id):
                    names[target.id] = how
                else:
                    _forget(target, names)
            return
        for block in _blocks(statement):
            if isinstance(statement, ast.If) and block is statement.body and _asks_for_others(statement.test):
                continue
            inner = dict(names)
            if isinstance(statement, (ast.For, ast.AsyncFor)):
                _forget(statement.target, inner)
            if isinstance(statement, ast.If) and _is_rejecting(statement.test):
                for name in _names(statement.test):
                    inner.pop(name, None)
            self._block(block, inner)
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
                names.pop(node.id, None)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block


def _asks_for_others(test: ast.expr) -> bool:
    """``is_rocm()``, ``flag and _is_hip``: true on other hardware than CUDA alone."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_asks_for_others(each) for each in test.values)
    while isinstance(test, ast.Call):
        test = test.func
    name = test.attr if isinstance(test, ast.Attribute) else test.id if isinstance(test, ast.Name) else ""
    return name.lstrip("_") in _OTHER_HARDWARE


def _is_rejecting(test: ast.expr) -> bool:
    """``is None``, ``isinstance``: in such a branch the name may be something else than a tensor."""
    return any(
        isinstance(node, (ast.Is, ast.IsNot)) or (isinstance(node, ast.Name) and node.id in ("isinstance", "hasattr"))
        for node in ast.walk(test)
    )


def _names(node: ast.AST) -> Iterator[str]:
    return (each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def _forget(target: ast.expr, names: dict[str, str]) -> None:
    if isinstance(target, (ast.Name, ast.Tuple, ast.List, ast.Starred)):
        for name in _names(target):
            names.pop(name, None)


def _says_host(name: str) -> bool:
    return any(word in _HOST_WORDS for word in name.lower().split("_"))


def _annotation(node: ast.expr | None) -> str | None:
    text = ast.unparse(node).strip("'\"") if node is not None else ""
    if text in ("torch.Tensor", "Tensor"):
        return "annotated parameter"
    return None


def _tensor(node: ast.expr, names: dict[str, str]) -> str | None:
    """How the source says that an expression is a tensor on the device."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner, name = node.func.value, node.func.attr
        if isinstance(owner, ast.Name) and owner.id in ("torch", "F"):
            device = next((each.value for each in node.keywords if each.arg == "device"), None)
            if device is not None or name in _FACTORIES:
                host = device is None or "cpu" in ast.unparse(device)
                return None if host else "made with device="
            if name in _NOT_TENSORS or name.endswith("_like"):
                return None
            single = name not in ("split", "chunk", "topk", "max", "min", "sort", "unbind", "aminmax", "meshgrid")
            return "operator" if single and any(_tensor(each, names) for each in node.args) else None
        return "operator" if name in _KEEPING and _tensor(owner, names) else None
    if isinstance(node, ast.BinOp):
        return "operator" if _tensor(node.left, names) or _tensor(node.right, names) else None
    if isinstance(node, ast.Subscript):
        return "operator" if _tensor(node.value, names) else None
    return None


def plant(root: Path, copy: Path, chosen: list[Target], count: int, rng: random.Random) -> list[Planted]:
    """Writes the copy's changed files; gives what was planted, with its line there."""
    inserts: dict[str, list[tuple[Point, Target, str, str, str]]] = defaultdict(list)
    trees: dict[str, tuple[ast.Module, list[str]]] = {}
    planted = 0
    for target in chosen:
        if planted >= count:
            break
        if target.path not in trees:
            source = (root / target.path).read_text(encoding="utf-8", errors="replace")
            trees[target.path] = (ast.parse(source), source.splitlines())
        tree, lines = trees[target.path]
        function = _function(tree, target)
        if function is None or not _imports_torch(tree):
            continue
        points = Points(function, lines).found
        if not points:
            continue
        point = rng.choice(points)
        name, how = rng.choice(point.names)
        hazard = list(_HAZARDS)[planted % len(_HAZARDS)]
        planted += 1
        inserts[target.path].append((point, target, hazard, how, _HAZARDS[hazard].format(t=name)))
    done: list[Planted] = []
    for path, entries in inserts.items():
        lines = list(trees[path][1])
        for shift, (point, target, hazard, how, text) in enumerate(sorted(entries, key=lambda each: each[0].line)):
            lines.insert(point.line - 1 + shift, point.indent + text)
            done.append(Planted(target, point.line + shift, hazard, how, text))
        (copy / path).unlink()
        (copy / path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return done


def _function(tree: ast.Module, target: Target) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno == target.line:
            decorators = " ".join(ast.unparse(each) for each in node.decorator_list)
            if "jit" in decorators or "overload" in decorators:
                return None
            return node
    return None


def _imports_torch(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.Import) and any(a.name == "torch" and not a.asname for a in node.names)
               for node in tree.body)  # fmt: skip


def check(root: Path, confidence: Confidence) -> CheckResult:
    os.chdir(root)
    return check_paths(CheckOptions((Path(),), Config(), (), (), confidence, root.resolve()))


def at_both(work: Callable[[Path, Confidence], _T], root: Path) -> tuple[_T, _T]:
    """``work`` at default confidence and at the lowest, each in a process of its own."""
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        first, second = pool.map(work, [root, root], [Confidence.LIKELY, Confidence.POSSIBLE])
    return first, second


def reported(root: Path, confidence: Confidence) -> set[tuple[str, int]]:
    return {(each.path, each.span.line) for each in check(root, confidence).findings}


def outcomes(copy: Path, planted: list[Planted]) -> dict[Planted, str]:
    """``found``, ``possible`` or ``missed``."""
    shown, hidden = at_both(reported, copy)
    result = {}
    for each in planted:
        place = (each.target.path, each.line)
        result[each] = "found" if place in shown else "possible" if place in hidden else "missed"
    return result


def table(title: str, rows: dict[str, Counter[str]]) -> None:
    print(f"\n{title:<24} planted  found  possible  missed")
    for name, row in rows.items():
        total = sum(row.values())
        share = 100 * row["found"] / total if total else 0.0
        print(f"{name:<24} {total:>7} {row['found']:>6} {row['possible']:>9} {row['missed']:>7}  {share:5.1f}%")


def survey(root: Path, count: int, seed: int, keep: Path | None) -> dict[Planted, str]:
    rng = random.Random(seed)
    chosen = targets(root)
    rng.shuffle(chosen)
    with tempfile.TemporaryDirectory() as folder:
        copy = (keep or Path(folder)) / root.name
        shutil.copytree(root, copy, copy_function=_link, symlinks=True)
        return outcomes(copy, plant(root, copy, chosen, count, rng))


def _link(source: str, to: str) -> None:
    try:
        os.link(source, to)
    except OSError:
        shutil.copy2(source, to)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("names", nargs="*", default=["sglang", "vllm", "nemo-toolkit"])
    parser.add_argument("--count", type=int, default=200, help="hazards a package (default: 200)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave the changed copies in DIR")
    parser.add_argument("--list", action="store_true", help="list what is not found")
    arguments = parser.parse_args()
    everything: dict[Planted, str] = {}
    by_package: dict[str, Counter[str]] = {}
    for name in arguments.names:
        result = survey((arguments.corpus / name).resolve(), arguments.count, arguments.seed, arguments.keep)
        by_package[name] = Counter(result.values())
        everything |= result
        if arguments.list:
            for each, outcome in result.items():
                if outcome != "found":
                    where = f"{each.target.path}:{each.line}"
                    print(
                        f"  {outcome:<8} {each.target.sure.value:<8} depth {each.target.depth:<2} {where} {each.text}"
                    )
    table("package", by_package)
    for title, key in (
        ("hazard", lambda each: each.hazard),
        ("call depth", lambda each: f"{each.target.depth // 4 * 4:>2} to {each.target.depth // 4 * 4 + 3}"),
        ("value known by", lambda each: each.known_by),
        ("the way there is", lambda each: each.target.sure.value),
    ):
        rows: dict[str, Counter[str]] = defaultdict(Counter)
        for each, outcome in sorted(everything.items(), key=lambda pair: key(pair[0])):
            rows[key(each)][outcome] += 1
        table(title, rows)
    table("all", {"": Counter(everything.values())})


if __name__ == "__main__":
    main()
