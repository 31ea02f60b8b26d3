"""Operators on objects of the project: they call the class's own methods."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from capturelint.values import hierarchy
from capturelint.values.domain import Function, Instance, Value, join, options
from capturelint.values.frame import Arguments, Frame

_BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "lshift", ast.RShift: "rshift",
}  # fmt: skip
_COMPARE = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
_UNARY = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}


def call_method(
    value: Value | None, name: str, arguments: Iterable[Value], node: ast.AST, frame: Frame
) -> Value | None:
    """Calls ``name`` of every project object among ``value``'s alternatives; None where none has it."""
    from capturelint.values.calls import call

    found: list[Value] = []
    for option in options(value):
        if isinstance(option, Instance):
            method = hierarchy.find_method(frame.engine, option.site.cls, name)
            if method is not None:
                bound = Function(method, bound=option)
                given = Arguments(tuple(arguments))
                if frame.in_region:
                    found.append(call(bound, given, ast.copy_location(ast.Pass(), node), frame))
                else:
                    found.append(frame.engine.host_call(bound, given))
    return join(*found) if found else None


def binary(op: ast.operator, left: Value, right: Value, node: ast.AST, frame: Frame) -> Value | None:
    name = _BINARY.get(type(op))
    if name is None:
        return None
    result = call_method(left, f"__{name}__", (right,), node, frame)
    return result if result is not None else call_method(right, f"__r{name}__", (left,), node, frame)


def in_place(op: ast.operator, left: Value, right: Value, node: ast.AST, frame: Frame) -> Value | None:
    name = _BINARY.get(type(op))
    return call_method(left, f"__i{name}__", (right,), node, frame) if name is not None else None


def unary(op: ast.unaryop, value: Value, node: ast.AST, frame: Frame) -> Value | None:
    name = _UNARY.get(type(op))
    return call_method(value, f"__{name}__", (), node, frame) if name is not None else None


def comparison(op: ast.cmpop, left: Value, right: Value, node: ast.AST, frame: Frame) -> Value | None:
    name = _COMPARE.get(type(op))
    return call_method(left, f"__{name}__", (right,), node, frame) if name is not None else None


def truth(value: Value, node: ast.AST, frame: Frame) -> Value | None:
    """What ``if value:`` asks a project object."""
    asked = call_method(value, "__bool__", (), node, frame)
    return asked if asked is not None else call_method(value, "__len__", (), node, frame)
