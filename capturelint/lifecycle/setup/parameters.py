"""What a call passes for a parameter, and what the parameter is without."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.project.definitions import FunctionInfo
from capturelint.project.syntax import walk_own


def binds(function: FunctionInfo, name: str) -> bool:
    if name in function.assigned or name in {each.arg for each in function.parameters()}:
        return True
    return any(
        isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name
        for node in walk_own(function.node)
    )


def passed_to(call: ast.Call, function: FunctionInfo, name: str) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    names = [each.arg for each in function.parameters()]
    if function.owner is not None and not function.is_static:
        names = names[1:]
    index = names.index(name) if name in names else len(call.args)
    given = call.args[index] if index < len(call.args) else None
    return None if isinstance(given, ast.Starred) else given


def default_of(function: FunctionInfo, name: str) -> ast.expr | None:
    node = function.node.args
    positional = [*node.posonlyargs, *node.args]
    pairs: Iterator[tuple[ast.arg, ast.expr | None]] = iter(
        [
            *zip(positional[len(positional) - len(node.defaults) :], node.defaults, strict=True),
            *zip(node.kwonlyargs, node.kw_defaults, strict=True),
        ]
    )
    return next((default for each, default in pairs if each.arg == name), None)
