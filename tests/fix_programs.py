"""The programs under ``fixtures/fixes`` before and after ``--fix``, and how to run them on any device.

A file there holds regions (``@capture_region(inputs=...)``), or functions that capture and replay by themselves, each
with one that says what must come out: ``program`` and ``expected``, ``twice`` and ``expected_twice``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

FIXES = Path(__file__).resolve().parents[1] / "fixtures" / "fixes"
_SPEC = re.compile(r"(?P<dtype>\w+)\[(?P<sizes>[^\]]*)\](?: in (?P<low>\d+)\.\.(?P<high>\d+))?")


@dataclass(frozen=True)
class Case:
    """A region with the specs of its inputs, or (without) a program with the name of what it is compared to."""

    file: Path
    name: str
    inputs: Mapping[str, str]
    expected: str = ""

    @property
    def id(self) -> str:
        return f"{self.file.stem}.{self.name}"


def files(kind: str) -> list[Path]:
    return sorted((FIXES / kind).glob("*.py"))


def cases(files: Iterable[Path]) -> Iterator[Case]:
    for file in files:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        for node in tree.body:
            if not isinstance(node, ast.FunctionDef):
                continue
            inputs = _inputs(node)
            expected = "expected" if node.name == "program" else f"expected_{node.name}"
            if inputs is not None:
                yield Case(file, node.name, inputs)
            elif expected in names:
                yield Case(file, node.name, {}, expected)


def _inputs(node: ast.FunctionDef) -> Mapping[str, str] | None:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name):
            if decorator.func.id == "capture_region":
                given = next((each.value for each in decorator.keywords if each.arg == "inputs"), None)
                return ast.literal_eval(given) if given is not None else {}
    return None


def loaded(text: str, device: str) -> dict[str, Any]:
    """The names of a module that does on ``device`` what the text says of CUDA."""
    if device != "cuda":
        text = re.sub(r"([\"'])cuda\1", rf"\1{device}\1", text).replace(".cuda()", f".to('{device}')")
    space: dict[str, Any] = {"__name__": "program"}
    exec(compile(text, "program.py", "exec"), space)
    return space


def made(inputs: Mapping[str, str], seed: int, device: str) -> dict[str, torch.Tensor]:
    """Inputs by their specs, the same for the same seed."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    found = {}
    for name, spec in inputs.items():
        match = _SPEC.fullmatch(spec)
        assert match is not None, spec
        sizes = [int(size) for size in match["sizes"].split(",") if size.strip()]
        dtype = getattr(torch, match["dtype"])
        if dtype.is_floating_point:
            tensor = torch.randn(sizes, generator=generator).to(dtype)
        else:
            low, high = int(match["low"] or 0), int(match["high"] or (2 if dtype is torch.bool else 8))
            tensor = torch.randint(low, high, sizes, generator=generator, dtype=dtype)
        found[name] = tensor.to(device)
    return found


def tensors(result: Any) -> list[torch.Tensor]:
    return [result] if not isinstance(result, (list, tuple)) else [each for part in result for each in tensors(part)]


def differences(left: list[torch.Tensor], right: list[torch.Tensor], tolerance: float = 0.0) -> list[str]:
    """What is not the same, dtype and shape included; NaN is NaN."""
    import torch

    if len(left) != len(right):
        return [f"{len(left)} tensors and {len(right)}"]
    found = []
    for number, (one, other) in enumerate(zip(left, right, strict=True)):
        try:
            torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)
        except AssertionError as error:
            found.append(f"{number}: {' '.join(str(error).split())}"[:200])
    return found


def ran(function: Callable[..., Any], inputs: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
    """What a region gives for copies of its inputs, and what it leaves in them."""
    given = {name: tensor.clone() for name, tensor in inputs.items()}
    return [each.clone() for each in [*tensors(function(**given)), *given.values()]]
