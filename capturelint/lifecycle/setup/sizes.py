"""Whether what a loop goes through are sizes: numbers that say how large the captured tensors are."""

from __future__ import annotations

import ast
import re

from capturelint.lifecycle.setup.parameters import passed_to
from capturelint.lifecycle.setup.points import Loop, Path
from capturelint.project.syntax import last_name

_SIZE_WORDS = re.compile(r"^(bs|bsz|b)$|batch|size|tokens?|len|bucket|shape|rows|seqs?|width|height|resolution")
_SIZED = frozenset(
    (
        *("zeros", "ones", "empty", "full", "rand", "randn", "randint", "arange", "empty_strided"),
        *("new_zeros", "new_empty", "new_ones", "new_full", "expand", "narrow", "repeat", "view", "reshape"),
    )
)


def names_in(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def sizes_something(path: Path, index: int, loop: Loop) -> bool:
    """Whether the loop's variable becomes the size of a tensor, by its name or by what it is used for."""
    names = names_in(loop.target)
    if any(_SIZE_WORDS.search(name.lower()) for name in names):
        return True
    node: ast.AST = path[index].root if isinstance(loop, ast.comprehension) else loop
    while True:
        if _used_as_size(node, names):
            return True
        call = path[index].node
        index -= 1
        function = path[index].function if index >= 0 else None
        if function is None or not isinstance(call, ast.Call):
            return False
        received = set()
        for each in function.parameters():
            given = passed_to(call, function, each.arg)
            if given is not None and names_in(given) & names:
                received.add(each.arg)
        names, node = received, function.node


def _used_as_size(node: ast.AST, names: set[str]) -> bool:
    for each in ast.walk(node):
        if isinstance(each, ast.Slice):
            bounds = [bound for bound in (each.lower, each.upper) if bound is not None]
            if any(names_in(bound) & names for bound in bounds):
                return True
        if isinstance(each, ast.Call) and last_name(each.func) in _SIZED:
            if any(names_in(argument) & names for argument in each.args):
                return True
    return False
