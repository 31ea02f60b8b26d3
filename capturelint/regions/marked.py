"""``@capture_region`` and ``# capturelint: region``: functions that say themselves that they are captured."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from capturelint.model import Span
from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import last_name
from capturelint.regions.declaration import Declaration
from capturelint.source.layout import Layout, Statement
from capturelint.values.domain import Function
from capturelint.values.engine import Engine

_COMMENT = re.compile(r"#\s*capturelint:\s*region\b")


def find(engine: Engine, module: Module) -> Iterator[Declaration]:
    marks = _marks(module.source)
    name = _marker_name(module)
    for info in module.all_functions() if marks else module.all_functions(name):
        if info.is_lambda:
            continue
        marker = next((d for d in info.decorators if last_name(d) == name), None)
        if marker is not None:
            yield _declare(engine, info, "capture_region", _inputs(marker))
        elif any(mark.is_about(info) for mark in marks):
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


@dataclass(frozen=True, slots=True)
class _Mark:
    """A comment that says that a function is captured, and the statement that it is about."""

    span: Span
    statement: Statement | None

    def is_about(self, info: FunctionInfo) -> bool:
        """Before the function, in its header, or beside one of its decorators."""
        if self.statement is not None and self.statement.word == "def" and self.statement.first == info.line:
            return True
        first = min([info.line, *(decorator.lineno for decorator in info.decorators)])
        return first <= self.span.line < info.line


def _marks(source: str) -> list[_Mark]:
    if not _COMMENT.search(source):
        return []
    layout = Layout(source)
    found = ((comment, _COMMENT.search(comment.text)) for comment in layout.comments)
    return [_Mark(comment.span(*match.span()), layout.target(comment)) for comment, match in found if match is not None]


def idle_comments(module: Module) -> Iterator[tuple[Span, str]]:
    """Comments that are about no function and so mark nothing, with what to do about each."""
    marks = _marks(module.source)
    functions = [info for info in module.all_functions() if marks and not info.is_lambda]
    for mark in marks:
        if not any(mark.is_about(info) for info in functions):
            yield mark.span, f"this comment marks no region: {_what_to_mark(mark.statement, module)}"


def marked_classes(module: Module) -> Iterator[tuple[ast.expr, ClassInfo]]:
    """Decorators that mark a class, which does nothing."""
    for cls in module.all_classes():
        for decorator in cls.decorators:
            if last_name(decorator) == _marker_name(module):
                yield decorator, cls


def _what_to_mark(statement: Statement | None, module: Module) -> str:
    if statement is None:
        return "no function follows it"
    if statement.word == "class":
        return "it is about a class; mark the method that is captured"
    lines = range(statement.first, statement.last + 1)
    if any(re.search(r"\blambda\b", module.line_text(line)) for line in lines):
        return "a lambda has no place for it; make it a function with `def`, and mark that"
    return f"it is about `{statement.word}`, and only functions can be marked; put it on or above a `def`"
