"""Edits that give a call one more keyword argument, laid out as its other arguments are."""

from __future__ import annotations

import ast

import libcst as cst

from capturelint.fixes.code import code, parsed, replacement
from capturelint.model import Edit
from capturelint.passes.unit import characters
from capturelint.project.module import Module
from capturelint.values.facts import span_of

_TIGHT = cst.AssignEqual(whitespace_before=cst.SimpleWhitespace(""), whitespace_after=cst.SimpleWhitespace(""))


def with_keyword(module: Module, node: ast.AST, name: str, value: str) -> Edit | None:
    """``f(x)`` to ``f(x, name=value)``; a keyword that is there gets the value.

    None for what is no call, and where what the keyword gets is decided elsewhere.
    """
    if not isinstance(node, ast.Call):
        return None
    call = parsed(module.text_of(node))
    if not isinstance(call, cst.Call):
        return None
    changed = keyword_set(call, name, cst.parse_expression(value))
    if changed is None or changed.deep_equals(call):
        return None
    return replacement(module, characters(module, span_of(node)), code(changed))


def keyword_set(call: cst.Call, name: str, value: cst.BaseExpression) -> cst.Call | None:
    """The call with a keyword argument more, or with another value for it.

    None where ``**options`` may hold it, and where its value comes from elsewhere.
    """
    for index, argument in enumerate(call.args):
        if argument.keyword is not None and argument.keyword.value == name:
            if not _is_written_out(argument.value):
                return None  # somebody decides elsewhere
            there = list(call.args)
            there[index] = argument.with_changes(value=value)
            return call.with_changes(args=there)
        if argument.star == "**":
            return None
    new = cst.Arg(value=value, keyword=cst.Name(name), equal=_TIGHT)
    if not call.args:
        return call.with_changes(args=[new])
    *others, last = call.args
    separator = _separator(call)
    if isinstance(last.comma, cst.Comma):
        ending = last.comma.with_changes(whitespace_after=_without_comment(last.comma.whitespace_after))
        separator = separator.with_changes(
            whitespace_after=_with_comment_of(last.comma.whitespace_after, separator.whitespace_after)
        )
        return call.with_changes(args=[*others, last.with_changes(comma=separator), new.with_changes(comma=ending)])
    new = new.with_changes(whitespace_after_arg=_without_comment(last.whitespace_after_arg))
    separator = separator.with_changes(
        whitespace_after=_with_comment_of(last.whitespace_after_arg, separator.whitespace_after)
    )
    last = last.with_changes(comma=separator, whitespace_after_arg=cst.SimpleWhitespace(""))
    return call.with_changes(args=[*others, last, new])


def _is_written_out(value: cst.BaseExpression) -> bool:
    names = ("True", "False", "None")
    return isinstance(value, (cst.BaseNumber, cst.BaseString)) or (isinstance(value, cst.Name) and value.value in names)


def _separator(call: cst.Call) -> cst.Comma:
    """The comma between two arguments of the call."""
    if len(call.args) > 1 and isinstance(comma := call.args[-2].comma, cst.Comma):
        return comma.with_changes(whitespace_after=_without_comment(comma.whitespace_after))
    if isinstance(call.whitespace_before_args, cst.ParenthesizedWhitespace):
        return cst.Comma(whitespace_after=_without_comment(call.whitespace_before_args))
    return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def _without_comment(space: cst.BaseParenthesizableWhitespace) -> cst.BaseParenthesizableWhitespace:
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return space
    first = space.first_line.with_changes(comment=None, whitespace=cst.SimpleWhitespace(""))
    return space.with_changes(first_line=first, empty_lines=[])


def _with_comment_of(
    source: cst.BaseParenthesizableWhitespace, space: cst.BaseParenthesizableWhitespace
) -> cst.BaseParenthesizableWhitespace:
    """A comment stays on the line of the argument that it is about."""
    if not isinstance(source, cst.ParenthesizedWhitespace) or source.first_line.comment is None:
        return space
    if isinstance(space, cst.ParenthesizedWhitespace):
        return space.with_changes(first_line=source.first_line)
    return source
