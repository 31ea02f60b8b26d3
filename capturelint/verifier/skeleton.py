"""``capturelint verify --init``: a harness file to fill in, with specs from annotations where these say enough."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from capturelint.model import Region
from capturelint.verifier.harness import FILE_NAME, Harness
from capturelint.verifier.plan import MARKED

_HEAD = f"""\
# How `capturelint verify` and `capturelint check --verify-on-gpu` call the captured regions ({FILE_NAME}).
# They run this code. `run` drives a program that captures and replays graphs by itself; without it the region is
# called: `inputs` holds a tensor spec for each parameter, or names a function of a seed; `setup` makes `self`;
# `vary` changes host state between capture and replay.
harness:
"""
_TENSOR_WORDS = ("Tensor",)
#: jaxtyping and torchtyping style annotations: Float[Tensor, "8 16"]
_SHAPED = re.compile(r"""(?P<kind>\w+)\[\s*(?:torch\.)?Tensor\s*,\s*['"](?P<shape>[\d ]+)['"]\s*\]""")
_KINDS = {
    "Float": "float32", "Float32": "float32", "Float16": "float16", "BFloat16": "bfloat16", "Float64": "float64",
    "Int": "int32", "Int32": "int32", "Int64": "int64", "Bool": "bool", "UInt8": "uint8",
}  # fmt: skip


def skeleton(regions: Sequence[Region], root: Path, base: Path, known: Sequence[Harness] = ()) -> str:
    """The text of a harness file for every region that has none yet."""
    parts = [_HEAD]
    for region in regions:
        path = (base / region.path).resolve()
        relative = path.relative_to(root.resolve()).as_posix() if path.is_relative_to(root.resolve()) else str(path)
        if region.kind in MARKED or any(entry.matches(relative, region.name) for entry in known):
            continue
        parts.append(_entry(region, relative, path))
    if len(parts) == 1:
        parts.append("  []\n")
    return "".join(parts)


def _entry(region: Region, relative: str, path: Path) -> str:
    text = f"  # {region.kind} at {region.path}:{region.line}\n  - region: {relative}:{region.name}\n"
    if region.kind in ("torch.cuda.graph", "capture_begin", "make_graphed_callables", "torch.compile"):
        return text + "    run: tests.harness:drive  # captures, then feeds and replays a few times\n"
    function = _function(path, region.name)
    if "." in region.name:
        text += "    setup: tests.harness:make  # returns the object\n"
    parameters = _parameters(function) if function is not None else []
    if not parameters:
        return text + "    inputs: tests.harness:make_inputs  # a function of a seed\n"
    text += "    inputs:\n"
    return text + "".join(f"      {name}: {spec}\n" for name, spec in parameters)


def _function(path: Path, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    try:
        body: Iterable[ast.AST] = ast.parse(path.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return None
    found: ast.AST | None = None
    for part in name.split("."):
        found = next((node for node in body if getattr(node, "name", None) == part), None)
        body = getattr(found, "body", [])
    return found if isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef)) else None


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[tuple[str, str]]:
    specs = []
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    for argument in arguments:
        if argument.arg not in ("self", "cls"):
            specs.append((argument.arg, _spec(argument.annotation)))
    return specs


def _spec(annotation: ast.expr | None) -> str:
    if annotation is None:
        return '"float32[8, 16]"  # a guess: no annotation'
    text = ast.unparse(annotation)
    shaped = _SHAPED.search(text)
    if shaped is not None and shaped["kind"] in _KINDS:
        sizes = ", ".join(shaped["shape"].split())
        return f'"{_KINDS[shaped["kind"]]}[{sizes}]"'
    plain = {"int": '"8"', "float": '"0.5"', "bool": '"true"', "str": "\"'text'\""}
    if text in plain:
        return plain[text] + "  # a guess"
    if any(word in text for word in _TENSOR_WORDS):
        return '"float32[8, 16]"  # a guess: the annotation says no shape'
    return f'"none"  # {text}: no spec can make one; use a function of a seed'
