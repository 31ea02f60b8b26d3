"""Source text in and out of LibCST: pieces that are parsed, changed and written back as edits."""

from __future__ import annotations

import libcst as cst

from capturelint.model import Edit, Fix, Span
from capturelint.project.bindings import ImportedName
from capturelint.project.module import Module

_EMPTY = cst.Module(body=[])


def code(node: cst.CSTNode) -> str:
    """A node's source as it stands, its own parentheses too."""
    return _EMPTY.code_for_node(node)


def bare(node: cst.BaseExpression) -> str:
    """An expression's source without the parentheses around it, which positions leave out as well."""
    return code(node.with_changes(lpar=[], rpar=[]))


def argument(node: cst.BaseExpression) -> str:
    """An expression's source where commas separate it from others."""
    text = bare(node) if not isinstance(node, (cst.Tuple, cst.GeneratorExp, cst.NamedExpr, cst.Yield)) else code(node)
    return text if "\n" not in text else code(node)


def receiver(node: cst.BaseExpression) -> str:
    """An expression's source in front of a dot or a bracket."""
    kinds = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)
    return code(node) if node.lpar or isinstance(node, kinds) else f"({code(node)})"


def parsed(text: str) -> cst.BaseExpression:
    """An expression by its source, which may go over lines that only its surroundings hold together."""
    try:
        return cst.parse_expression(text)
    except cst.ParserSyntaxError:
        return cst.parse_expression(f"({text})").with_changes(lpar=[], rpar=[])


def replacement(module: Module, span: Span, text: str) -> Edit:
    """The smallest edit that puts ``text`` where ``span`` is."""
    old = text_at(module, span)
    head = 0
    while head < min(len(old), len(text)) and old[head] == text[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(text)) - head and old[-1 - tail] == text[-1 - tail]:
        tail += 1
    start = _after(span, old[:head])
    end = _after(span, old[: len(old) - tail])
    return Edit(Span(*start, *end), text[head : len(text) - tail])


def text_at(module: Module, span: Span) -> str:
    lines = [module.line_text(line) for line in range(span.line, span.end_line + 1)]
    lines[-1] = lines[-1][: span.end_column - 1]
    lines[0] = lines[0][span.column - 1 :]
    return "\n".join(lines)


def loses_comment(module: Module, fix: Fix) -> bool:
    """Whether a comment stands in what is taken out, and in nothing that is put in."""
    before = "".join(text_at(module, edit.span) for edit in fix.edits)
    after = "".join(edit.text for edit in fix.edits)
    return before.count("#") > after.count("#")


def _after(span: Span, text: str) -> tuple[int, int]:
    """The place behind ``text``, which begins where the span does."""
    lines = text.split("\n")
    column = span.column + len(text) if len(lines) == 1 else len(lines[-1]) + 1
    return span.line + len(lines) - 1, column


def torch_name(module: Module) -> str | None:
    """What the module calls ``torch``."""
    for name, definitions in module.names.items():
        if all(isinstance(each, ImportedName) and each == ImportedName("torch", None) for each in definitions):
            return name
    return None
