"""``@capture_region`` and ``# capturelint: region``: functions that say themselves that they are captured."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from capturelint.project.definitions import FunctionInfo, last_name
from capturelint.project.module import Module
from capturelint.regions.declaration import Declaration
from capturelint.values.domain import Function
from capturelint.values.engine import Engine

_COMMENT = re.compile(r"#\s*capturelint:\s*region\b")


def find(engine: Engine, module: Module) -> Iterator[Declaration]:
    commented = _commented_lines(module.source)
    for info in module.all_functions():
        if isinstance(info.node, ast.Lambda):
            continue
        marker = next((d for d in info.decorators if last_name(d) == _marker_name(module)), None)
        if marker is not None:
            yield _declare(engine, info, "capture_region", _inputs(marker))
        elif commented and _is_commented(info, commented):
            yield _declare(engine, info, "comment", {})


def _marker_name(module: Module) -> str:
    """The name under which the module imports the marker."""
    for alias, found in module.names.items():
        if any(getattr(definition, "name", None) == "capture_region" for definition in found):
            return alias
    return "capture_region"


def _declare(engine: Engine, info: FunctionInfo, kind: str, inputs: dict[str, str]) -> Declaration:
    receiver = next(iter(engine.receiver_of(info).values()), None)
    target = Function(info, bound=receiver)
    return Declaration(kind, info.module, info.node, info.qualname, info, target=target, inputs=inputs)


def _inputs(marker: ast.expr) -> dict[str, str]:
    """The literal tensor specs of ``inputs={...}``."""
    if not isinstance(marker, ast.Call):
        return {}
    for keyword in marker.keywords:
        if keyword.arg == "inputs" and isinstance(keyword.value, ast.Dict):
            return {
                key.value: value.value
                for key, value in zip(keyword.value.keys, keyword.value.values, strict=False)
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
                and isinstance(value, ast.Constant) and isinstance(value.value, str)
            }  # fmt: skip
    return {}


def _commented_lines(source: str) -> dict[int, bool]:
    """Lines with the comment, and whether it stands alone on its line."""
    if not _COMMENT.search(source):
        return {}
    found: dict[int, bool] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT and _COMMENT.match(token.string):
                found[token.start[0]] = token.line[: token.start[1]].strip() == ""
    except (tokenize.TokenError, SyntaxError):
        pass
    return found


def _is_commented(info: FunctionInfo, lines: dict[int, bool]) -> bool:
    """On a line of the header, or alone on the line above the ``def`` or its decorators."""
    first = min([info.line, *(decorator.lineno for decorator in info.decorators)])
    body = info.body[0].lineno if info.body else info.line
    if any(first <= line < max(body, info.line + 1) for line in lines):
        return True
    return bool(lines.get(first - 1))
