"""Syntax that is newer than the Python that runs: LibCST has a grammar of its own, and reads all versions' at once."""

from __future__ import annotations

import ast
import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import libcst as cst

_Version = tuple[int, int]


def newer_version(source: str, running: _Version = sys.version_info[:2]) -> _Version | None:
    """The Python that ``source``, which ``running`` refuses, is written for; None for what is wrong in any."""
    import libcst as cst

    try:
        module = cst.parse_module(source)
    except (cst.ParserSyntaxError, cst.CSTValidationError, RecursionError):
        return None
    needed = max((_version_of(node) for node in _nodes(module)), default=(0, 0))
    return needed if needed > running else None


def _nodes(module: cst.Module) -> list[cst.CSTNode]:
    found: list[cst.CSTNode] = [module]
    for node in found:
        found.extend(node.children)
    return found


def _version_of(node: cst.CSTNode) -> _Version:
    """The first Python whose grammar has what a node is, as far as it is newer than 3.10."""
    import libcst as cst

    if isinstance(node, cst.TemplatedString):
        return (3, 14)
    if isinstance(node, cst.ExceptHandler) and isinstance(node.type, cst.Tuple) and not node.type.lpar:
        return (3, 14)
    if isinstance(node, cst.TypeParam) and node.default is not None:
        return (3, 13)
    if isinstance(node, (cst.TypeAlias, cst.TypeParameters)):
        return (3, 12)
    if isinstance(node, cst.FormattedString):
        return (3, 12) if _is_refused(cst.Module([]).code_for_node(node)) else (0, 0)
    if isinstance(node, (cst.TryStar, cst.StarredElement)):
        return (3, 11)
    return (0, 0)


def _is_refused(text: str) -> bool:
    """Whether an expression is wrong for the Python that runs; what is wrong in the text of a string is so for all."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(f"({text})")
    except SyntaxError as error:
        return not error.msg.startswith("(unicode error)")
    return False
