"""Regions that config names: ``pkg.mod:Class.method`` with ``*`` within a name and ``**`` across dots."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from capturelint.project.definitions import FunctionInfo
from capturelint.regions.declaration import Declaration
from capturelint.values.domain import Function
from capturelint.values.engine import Engine


def find(engine: Engine, patterns: Sequence[str], kind: str = "config") -> Iterator[Declaration]:
    for pattern in patterns:
        yield from _matching(engine, pattern, kind)


def _matching(engine: Engine, pattern: str, kind: str) -> Iterator[Declaration]:
    module_part, _, name_part = pattern.rpartition(":")
    module_pattern = _regex(module_part or "**")
    name_pattern = _regex(name_part)
    literal = name_part.rpartition(".")[2]
    plain = re.fullmatch(r"\w+", literal) is not None
    files = engine.project.search.defining(literal) if plain else engine.project.files
    for module in engine.project.modules(files):
        if module_pattern.fullmatch(module.name) is None:
            continue
        for info in module.all_functions(*((literal,) if plain else ())):
            if info.is_lambda or name_pattern.fullmatch(info.qualname) is None:
                continue
            yield declare(engine, info, kind)


def matches(pattern: str, module: str, name: str) -> bool:
    """Whether a pattern means the function ``name`` of ``module``."""
    module_part, _, name_part = pattern.rpartition(":")
    return bool(_regex(module_part or "**").fullmatch(module)) and bool(_regex(name_part).fullmatch(name))


def declare(engine: Engine, info: FunctionInfo, kind: str) -> Declaration:
    receiver = next(iter(engine.receiver_of(info).values()), None)
    return Declaration(kind, info.module, info.node, info.qualname, info, target=Function(info, bound=receiver))


def _regex(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*|\*)", pattern)
    return re.compile("".join({"**": ".*", "*": r"[^.]*"}.get(part, re.escape(part)) for part in parts))
