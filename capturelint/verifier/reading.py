"""Whether anybody reads a piece of host state: looked up in the source, since reads leave no trace."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from capturelint.verifier.sites import Site, UserCode

_GROWING = frozenset(
    {"append", "add", "extend", "appendleft", "update", "insert", "setdefault", "pop", "remove", "clear"}
)


def where_read(word: str, site: Site, user: UserCode) -> tuple[str, int] | None:
    """A line that reads the attribute or variable ``word``, other than to change it; None where no line does.

    Looks in the file of ``site``, the line that changes it, and in the loaded modules of the user's that import it.
    """
    paths = [site.path]
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if path and path not in paths and user.owns(path) and Path(site.path).stem in _imports(path):
            paths.append(path)
    for path in paths:
        for line in _reads(path, word):
            if (path, line) != (site.path, site.line):
                return path, line
    return None


@lru_cache(maxsize=4096)
def _reads(path: str, word: str) -> tuple[int, ...]:
    try:
        tree = ast.parse(Path(path).read_bytes(), path)
    except (OSError, SyntaxError, ValueError):
        return ()
    return tuple(sorted(_loads(tree, word)))


@lru_cache(maxsize=4096)
def _imports(path: str) -> frozenset[str]:
    """The last parts of the names of all modules that a file imports, or imports from."""
    try:
        tree = ast.parse(Path(path).read_bytes(), path)
    except (OSError, SyntaxError, ValueError):
        return frozenset()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.update((node.module or "", *(alias.name for alias in node.names)))
    return frozenset(name.rsplit(".", 1)[-1] for name in names)


def _loads(tree: ast.Module, word: str) -> Iterator[int]:
    changed = {id(node) for node in _changed(tree)}
    for node in ast.walk(tree):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None
        if name == word and isinstance(node.ctx, ast.Load) and id(node) not in changed:  # type: ignore[attr-defined]
            yield node.lineno  # type: ignore[attr-defined]


def _changed(tree: ast.Module) -> Iterator[ast.expr]:
    """Nodes that are read only to change what they name: ``x[k] = v``, ``x[k] += v``, ``x.append(v)``."""
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AugAssign):
            targets = [node.target]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            function = node.value.func
            if isinstance(function, ast.Attribute) and function.attr in _GROWING:
                targets = [function.value]
        for target in targets:
            while isinstance(target, (ast.Subscript, ast.Starred)):
                target = target.value
            yield target


def cached_function(path: str, line: int) -> tuple[int, str] | None:
    """The decorator line and name of the memoized function (``lru_cache`` and its like) that ``line`` stands in."""
    try:
        tree = ast.parse(Path(path).read_bytes(), path)
    except (OSError, SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno <= line <= (node.end_lineno or 0):
            for decorator in node.decorator_list:
                if "cache" in ast.unparse(decorator).split("(")[0]:
                    return decorator.lineno, node.name
    return None
