"""Binding a call's arguments to a function's parameters."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from capturelint.model import Confidence
from capturelint.project.definitions import FunctionInfo
from capturelint.project.syntax import last_name
from capturelint.values import annotated
from capturelint.values.domain import (
    ClassValue,
    Device,
    Function,
    Host,
    Instance,
    Mapping,
    Sequence,
    Tensor,
    Unknown,
    Value,
    is_none,
    join,
    options,
)
from capturelint.values.frame import Arguments
from capturelint.values.sites import Site

if TYPE_CHECKING:
    from capturelint.values.engine import Engine


def bind(engine: Engine, function: Function, given: Arguments) -> dict[str, Value]:
    """Parameter names to values: arguments, else defaults; an unknown argument takes what its annotation says."""
    info = function.info
    node = info.head.args
    positional = [*node.posonlyargs, *node.args]
    if function.bound is not None and not info.is_static:
        receiver = function.bound
        if info.is_class_method:
            receiver = class_of(receiver)
        given = given.after(receiver)
    bound: dict[str, Value] = {}
    for index, parameter in enumerate(positional):
        value = given.positional[index] if index < len(given.positional) else given.keyword(parameter.arg)
        if value is None and given.rest is not None:
            value = given.rest
        bound[parameter.arg] = _refined(engine, function, parameter, value, _default_at(node, positional, index), given)
    if node.vararg is not None:
        extra = given.positional[len(positional) :]
        bound[node.vararg.arg] = (
            Sequence("tuple", extra) if given.rest is None else Sequence("tuple", None, join(given.rest, *extra))
        )
    for parameter, default in zip(node.kwonlyargs, node.kw_defaults, strict=False):
        value = given.keyword(parameter.arg)
        bound[parameter.arg] = _refined(engine, function, parameter, value, default, given)
    if node.kwarg is not None:
        names = {each.arg for each in [*positional, *node.kwonlyargs]}
        extra_keywords = tuple((key, value) for key, value in given.keywords if key not in names)
        bound[node.kwarg.arg] = Mapping(extra_keywords, None, complete=not given.open_keywords)
    return bound


def _default_at(node: ast.arguments, positional: list[ast.arg], index: int) -> ast.expr | None:
    offset = index - (len(positional) - len(node.defaults))
    return node.defaults[offset] if offset >= 0 else None


def _refined(
    engine: Engine,
    function: Function,
    parameter: ast.arg,
    value: Value | None,
    default: ast.expr | None,
    given: Arguments,
) -> Value:
    scope = engine.module_scope(function.info.module)

    def as_annotated() -> Value | None:
        return annotated.value_of(engine, parameter.annotation, scope, parameter.arg)

    if value is not None and parameter.annotation is not None and _doubtful_tensor(value):
        declared = as_annotated()
        if declared is not None and all(isinstance(option, Host) for option in options(declared)):
            return declared  # `n: int` says more than a guess that a tensor comes in
    if value is None and default is not None and not given.open_keywords:
        return engine.evaluate_in(scope, default)
    if value is None or _says_little(value):
        declared = as_annotated()
        if declared is not None and not (isinstance(value, Tensor) and not isinstance(declared, Tensor)):
            return value if isinstance(value, Tensor) else declared
    if value is not None and parameter.annotation is not None and (known := _tensor_or_nothing_known(value)):
        declared = as_annotated()
        if isinstance(declared, Tensor) and declared.on_device:
            return join(*known)
    return value if value is not None else Unknown(parameter=parameter.arg)


def _says_little(value: Value) -> bool:
    """Nothing, a tensor somewhere, or one of several things of which none is likely: the annotation says more."""
    if isinstance(value, Tensor):
        return value.device is Device.UNKNOWN
    found = list(options(value))
    return any(type(option) is Unknown for option in found) and all(
        type(option) is Unknown or _is_possible_tensor(option) for option in found
    )


def _tensor_or_nothing_known(value: Value) -> list[Value]:
    """The device tensors that a value is on some ways here, where nothing is known of it on the others.

    An annotation as a tensor takes the doubt away: on those other ways it is what it would be for a value of which
    nothing is known at all.
    """
    known: list[Value] = []
    doubtful = False
    for option in options(value):
        if isinstance(option, Tensor) and option.on_device and option.confidence is not Confidence.POSSIBLE:
            likely = option.confidence is Confidence.LIKELY
            known.append(option if likely else replace(option, confidence=Confidence.LIKELY))
        elif type(option) is Unknown or is_none(option) or _is_possible_tensor(option):
            doubtful = True
        else:
            return []
    return known if doubtful else []


def _is_possible_tensor(value: Value) -> bool:
    return isinstance(value, Tensor) and value.confidence is Confidence.POSSIBLE


def _doubtful_tensor(value: Value) -> bool:
    return any(
        (isinstance(option, Tensor) and option.confidence is not Confidence.CERTAIN)
        or (isinstance(option, Unknown) and option.tensor_like)
        for option in options(value)
    )


def class_of(value: Value) -> Value:
    found = [ClassValue(each.site.cls) if isinstance(each, Instance) else each for each in options(value)]
    return join(*found)


def widened(engine: Engine, function: Function, bound: dict[str, Value]) -> dict[str, Value]:
    """The context that stands for all further ones: parameters as declared, the receiver as any of its class."""
    info = function.info
    wide: dict[str, Value] = {}
    scope = engine.module_scope(info.module)
    for parameter in info.parameters():
        value = bound.get(parameter.arg)
        if isinstance(value, Instance):
            wide[parameter.arg] = engine.widened_instance(value)
            continue
        if isinstance(value, Host) and (
            value.const is None or isinstance(value.const, (bool, str)) or _is_literal(parameter.annotation)
        ):
            wide[parameter.arg] = value  # flags choose branches: there are few of them, and they matter
            continue
        declared = annotated.value_of(engine, parameter.annotation, scope, parameter.arg)
        if declared is not None:
            wide[parameter.arg] = declared
        elif isinstance(value, Tensor):
            wide[parameter.arg] = Tensor(device=value.device, confidence=value.confidence)
        elif isinstance(value, (ClassValue, Function)):
            wide[parameter.arg] = value
        else:
            wide[parameter.arg] = Unknown(parameter=parameter.arg)
    for extra in (info.head.args.vararg, info.head.args.kwarg):
        if extra is not None:
            wide[extra.arg] = Sequence("tuple") if extra is info.head.args.vararg else Mapping()
    return wide


def _is_literal(annotation: ast.expr | None) -> bool:
    """``ratio: Literal[4, 128]``: a flag, whatever its type."""
    return isinstance(annotation, ast.Subscript) and last_name(annotation.value) == "Literal"


def widen_site(site: Site, given: Arguments) -> None:
    """The same constructor call seen with other arguments: they are joined, and attributes are worked out anew."""
    if len(site.arguments) == len(given.positional):
        site.arguments = tuple(join(a, b) for a, b in zip(site.arguments, given.positional, strict=False))
    for name, value in given.keywords:
        site.keywords[name] = join(site.keywords[name], value) if name in site.keywords else value
    site.version += 1


def constructor_arguments(engine: Engine, site: Site, init: FunctionInfo) -> dict[str, Value]:
    receiver = Instance(site, exact=not site.generic)
    given = Arguments(site.arguments, tuple(site.keywords.items()))
    return bind(engine, Function(init, bound=receiver), given)
