"""Whether two tensors are seen to have one shape, dtype and device: both made by factories that are told the same."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from capturelint.fixes.code import torch_name
from capturelint.project.module import Module
from capturelint.project.syntax import dotted_name, last_name, store_targets, walk_own

#: factories that are told sizes alone, and functions whose result is laid out as what they are given
_FACTORIES = frozenset(("zeros", "ones", "empty", "rand", "randn"))
_SAME_LAYOUT = frozenset(("clone", "zeros_like", "ones_like", "empty_like", "rand_like", "randn_like", "full_like"))
_MAX_STEPS = 4


@dataclass(frozen=True, slots=True)
class _Layout:
    sizes: tuple[str, ...]
    dtype: str
    device: str


def same_layout(module: Module, scope: ast.AST, name: str, assignment: ast.Assign) -> bool:
    """Whether ``assignment`` gives ``name`` a tensor like the one that it was given before, in the same function."""
    others = [each for each in _bindings(scope, name) if each is not assignment]
    values = [each.value for each in others if isinstance(each, ast.Assign) and len(each.targets) == 1]
    if not others or len(values) < len(others):
        return False
    torch = torch_name(module)
    layouts = [_layout(value, scope, torch) for value in (assignment.value, *values)]
    return layouts[0] is not None and all(layout == layouts[0] for layout in layouts)


def _bindings(scope: ast.AST, name: str) -> list[ast.AST]:
    return [
        node
        for node in walk_own(scope)
        if any(isinstance(target, ast.Name) and target.id == name for target in store_targets(node))
        and not isinstance(node, ast.AugAssign)
    ]


def _layout(value: ast.expr, scope: ast.AST, torch: str | None, steps: int = 0) -> _Layout | None:
    if isinstance(value, ast.Name) and steps < _MAX_STEPS:
        found = _bindings(scope, value.id)
        if len(found) == 1 and isinstance(found[0], ast.Assign) and len(found[0].targets) == 1:
            return _layout(found[0].value, scope, torch, steps + 1)
        return None
    if not isinstance(value, ast.Call) or torch is None:
        return None
    called = last_name(value.func)
    if called in _SAME_LAYOUT and not value.keywords and steps < _MAX_STEPS:
        of_method = called == "clone" and isinstance(value.func, ast.Attribute)
        source = value.func.value if of_method else value.args[0] if value.args else None  # type: ignore[attr-defined]
        return _layout(source, scope, torch, steps + 1) if source is not None else None
    if called not in _FACTORIES or dotted_name(value.func) != f"{torch}.{called}":
        return None
    keywords = {keyword.arg: keyword.value for keyword in value.keywords}
    if not keywords.keys() <= {"device", "dtype"}:
        return None
    sizes = value.args
    if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
        sizes = sizes[0].elts
    if not all(isinstance(size, ast.Constant) and type(size.value) is int for size in sizes):
        return None
    device = keywords.get("device")
    if not isinstance(device, ast.Constant):
        return None
    dtype = keywords.get("dtype")
    return _Layout(
        tuple(ast.unparse(size) for size in sizes), ast.unparse(dtype) if dtype is not None else "", str(device.value)
    )
