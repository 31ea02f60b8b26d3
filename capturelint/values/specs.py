"""Tensor specs: ``float32[8, 16]`` as markers and annotations give them, and ``Float[Tensor, "batch width"]``."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from math import prod

from capturelint.values.domain import Tensor

_SPEC = re.compile(r"\s*(?P<dtype>\w+)\s*\[(?P<shape>[^\]]*)\]")
#: a dtype as torch spells it: nothing else in an annotation is one
_DTYPE = re.compile(r"\s*((float|bfloat|int|uint|complex)\d+\w*|bool)\s*\[")
#: how jaxtyping names dtypes: ``Float``, ``Float32``, ``Int64``, ``UInt8``, ``Bool``
_NAMED = re.compile(r"(?P<kind>Float|BFloat|Int|UInt|Integer|Bool|Complex)\d*")


def described(tensor: Tensor, spec: str) -> Tensor | None:
    """``tensor`` with the dtype, the rank and the number of elements that a spec gives; None where it is no spec."""
    match = _SPEC.match(spec)
    if match is None:
        return None
    sizes = [size.strip() for size in match["shape"].split(",") if size.strip()]
    return replace(
        tensor,
        dtype=_kind(match["dtype"]),
        rank=len(sizes),
        count=prod(int(size) for size in sizes) if all(size.isdecimal() for size in sizes) else None,
    )


def _kind(dtype: str) -> str:
    name = dtype.lower()
    if name.startswith("complex"):
        return "complex"
    if name == "uint8":
        return name
    return "bool" if name.startswith("bool") else "int" if name.startswith(("int", "uint", "long")) else "float"


def from_annotation(tensor: Tensor, node: ast.Subscript) -> Tensor | None:
    """What ``Annotated[Tensor, "int64[8]"]``, ``"int64[8]"`` or ``Int[Tensor, "rows"]`` adds to ``tensor``."""
    head = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
    texts = [
        each.value for each in ast.walk(node.slice) if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]
    if head == "Annotated":
        return next((described(tensor, text) for text in texts if _DTYPE.match(text)), None)
    named = _NAMED.fullmatch(head)
    if named is not None and texts:
        words = texts[-1].split()
        known = not any(word.startswith(("*", "...")) or word == "..." for word in words)
        return replace(tensor, dtype=_kind(named["kind"]), rank=len(words) if known else None)
    text = ast.unparse(node)
    return described(tensor, text) if _DTYPE.match(text) else None
