"""Edits that give a call one more keyword argument."""

from __future__ import annotations

import ast

from capturelint.lifecycle import around
from capturelint.model import Edit
from capturelint.project.module import Module


def with_keyword(module: Module, node: ast.AST, name: str, value: str) -> Edit | None:
    """``f(x)`` to ``f(x, name=value)``; a keyword that is there gets the value."""
    if not isinstance(node, ast.Call):
        return None
    for keyword in node.keywords:
        if keyword.arg == name:
            return Edit(around.span(module, keyword.value), value)
    text = module.text_of(node)
    if not text.endswith(")") or "\n" in text:
        return None
    inner = text[:-1].rstrip()
    separator = "" if inner.endswith("(") else " " if inner.endswith(",") else ", "
    return Edit(around.span(module, node), f"{inner}{separator}{name}={value})")
