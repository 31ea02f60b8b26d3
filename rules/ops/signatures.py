"""Signatures as torch describes them itself: type stubs, function annotations, operator schemas."""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

TORCH = Path(torch.__file__).parent
INT_TYPES = {"int", "SymInt", "size", "Sequence[int]", "Sequence[SymInt]", "list[int]", "tuple[int, ...]"}
NUMBER_TYPES = {"Number", "complex", "float", "Sequence[Number]", "Sequence[complex]", "Sequence[float]", "list[float]"}
#: parameters of type int that say nothing about a size or a dimension
PLAIN_NUMBERS = {"ignore_index", "padding_idx", "blank", "correction", "decimals", "n_bins", "max_norm"}
DROPPED_PARAMETERS = {"layout", "pin_memory", "requires_grad", "memory_format", "names", "_stacklevel"}


@dataclass
class Signature:
    """Parameters over all overloads: positional ones of the longest overload first. Types as in the stubs."""

    order: list[str] = field(default_factory=list)
    types: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    tensor_positions: set[int] = field(default_factory=set)
    returns: set[str] = field(default_factory=set)
    longest: int = -1
    starred: int = 0

    def add(self, positional: list[tuple[str, str]], keywords: list[tuple[str, str]], returns: str) -> None:
        names = [name for name, _ in positional]
        self.starred = next((i for i, name in enumerate(names) if name.startswith("*")), self.starred)
        if len(names) > self.longest:
            self.longest, rest = len(names), [name for name in self.order if name not in names]
            self.order = names + rest
        self.order += [name for name, _ in positional + keywords if name not in self.order]
        for name, kind in positional + keywords:
            self.types[name] |= split_type(kind)
        self.tensor_positions |= {i for i, (_, kind) in enumerate(positional) if "Tensor" in kind}
        self.returns.add(returns)

    def render(self, unmarked: set[str]) -> str:
        words: list[str] = []
        for index, name in enumerate(self.order):
            if name in DROPPED_PARAMETERS or "*" + name in self.order:
                continue
            suffix = "" if index in self.tensor_positions and index < self.longest else scalar_suffix(self.types[name])
            if (index and name in ("dtype", "self")) or name in unmarked:
                suffix = ""
            if suffix == ":int" and name in PLAIN_NUMBERS:
                suffix = ":number"
            if name.startswith("*"):
                words.insert(self.starred, name + suffix)
            else:
                words.append(name + suffix)
        return " ".join(words)

    @property
    def only_tensor(self) -> bool:
        """Whether the first parameter alone decides the result's dtype and rank."""
        others = [self.types[name] for name in self.order[1:] if name != "out"]
        return "dtype" not in self.order and not any("Tensor" in kind for kinds in others for kind in kinds)


def split_type(text: str) -> set[str]:
    """``"_int | SymInt | None"`` -> {"int", "SymInt"}."""
    text = re.sub(r"\b_(?=[a-z])", "", text.strip("'\"")).replace("typing.", "")
    text = (
        re.sub(r"Optional\[(.*)\]$", r"\1 | None", text)
        .replace("int | SymInt]", "int]")
        .replace("Number | complex]", "Number]")
    )
    return {part.strip() for part in text.split(" | ")} - {"None", ""}


def scalar_suffix(kinds: set[str]) -> str:
    if kinds and kinds <= INT_TYPES:
        return ":int"
    return ":number" if kinds and kinds <= NUMBER_TYPES | {"int"} else ""


def stub_functions(path: str, owner: str | None = None) -> dict[str, Signature]:
    body: list[ast.stmt] = ast.parse((TORCH / path).read_text()).body
    if owner is not None:
        body = next(node.body for node in body if isinstance(node, ast.ClassDef) and node.name == owner)
    found: dict[str, Signature] = defaultdict(Signature)
    for node in body:
        if not isinstance(node, ast.FunctionDef) or any("property" in ast.unparse(d) for d in node.decorator_list):
            continue
        positional = [(a.arg, text_of(a.annotation)) for a in node.args.posonlyargs + node.args.args]
        if owner is None and not node.name.startswith("_") and any(name == "self" for name, _ in positional):
            continue  # deprecated argument orders
        if node.args.vararg:
            positional.append(("*" + node.args.vararg.arg, text_of(node.args.vararg.annotation)))
        keywords = [(a.arg, text_of(a.annotation)) for a in node.args.kwonlyargs]
        found[node.name].add(positional, keywords, text_of(node.returns))
    return found


def text_of(node: ast.expr | None) -> str:
    return ast.unparse(node) if node is not None else ""


def python_signature(function: Any) -> Signature | None:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    signature, positional, keywords = Signature(), [], []
    for parameter in parameters:
        kind = parameter.annotation
        text = "" if kind is parameter.empty else kind if isinstance(kind, str) else inspect.formatannotation(kind)
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY:
            keywords.append((parameter.name, text))
        else:
            positional.append(("*" * (parameter.kind is parameter.VAR_POSITIONAL) + parameter.name, text))
    result = getattr(function, "__annotations__", {}).get("return", "")
    signature.add(positional, keywords, result if isinstance(result, str) else inspect.formatannotation(result))
    return signature


@functools.cache
def schemas() -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for schema in torch._C._jit_get_all_schemas():
        if schema.name.startswith("aten::") and any(
            "Tensor" in str(a.type) for a in (*schema.arguments, *schema.returns)
        ):
            found[schema.name.removeprefix("aten::")].append(schema)
    return found


def schema_signature(name: str) -> Signature | None:
    signature = Signature()
    kinds = {"Tensor": "Tensor", "int": "int", "float": "float", "number": "Number", "List[int]": "Sequence[int]"}
    for schema in schemas().get(name, []):
        parts: tuple[list[tuple[str, str]], list[tuple[str, str]]] = ([], [])
        for argument in schema.arguments:
            plain = re.sub(r"Optional\[(.*)\]$", r"\1", str(argument.type))
            label = "input" if argument.name == "self" else argument.name
            parts[argument.kwarg_only].append((label, kinds.get(plain, plain)))
        results = [str(item.type) for item in schema.returns]
        returns = "None" if not results else results[0] if len(results) == 1 else f"tuple[{', '.join(results)}]"
        signature.add(*parts, returns.replace("List[Tensor]", "list[Tensor]"))
    return signature if signature.returns else None
