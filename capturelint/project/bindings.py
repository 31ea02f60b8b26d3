"""What a module's top level binds its names to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from capturelint.project.definitions import ClassInfo, FunctionInfo


@dataclass(frozen=True, slots=True)
class ImportedName:
    """``from module import name``, or ``import module`` when ``name`` is None. ``level`` counts leading dots."""

    module: str
    name: str | None
    level: int = 0


@dataclass(frozen=True, slots=True)
class AssignedName:
    """A module-level name bound to an expression; ``target`` is the whole target (it may be a tuple)."""

    target: ast.expr
    value: ast.expr


Definition = FunctionInfo | ClassInfo | ImportedName | AssignedName


def imported_names(statement: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, ImportedName]]:
    """The names that an import statement binds."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            if alias.asname:
                yield alias.asname, ImportedName(alias.name, None)
            else:
                top = alias.name.partition(".")[0]
                yield top, ImportedName(top, None)
        return
    for alias in statement.names:
        yield alias.asname or alias.name, ImportedName(statement.module or "", alias.name, statement.level)
