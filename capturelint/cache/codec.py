"""A check's result as JSON and back. Not pickle: what is read from a cache must not be able to run anything."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from capturelint.model import CheckResult

#: what belongs to one run of the tool and not to what it found
_OF_THE_RUN = ("timings", "behind")


def encode_result(result: CheckResult) -> list[Any]:
    fields = (field.name for field in dataclasses.fields(result) if field.name not in _OF_THE_RUN)
    return [_encode(getattr(result, name)) for name in fields]


def decode_result(data: Any) -> CheckResult:
    """Raises TypeError, ValueError or another error of plain Python for what ``encode_result`` did not make."""
    hints = typing.get_type_hints(CheckResult)
    names = [field.name for field in dataclasses.fields(CheckResult) if field.name not in _OF_THE_RUN]
    return CheckResult(**{name: _decoder(hints[name])(each) for name, each in zip(names, data, strict=True)})


def _encode(value: Any) -> Any:
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, tuple):
        return [_encode(each) for each in value]
    kind: Any = type(value)
    return [_encode(getattr(value, name)) for name in _names(kind)]


@lru_cache(maxsize=64)
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


@lru_cache(maxsize=64)
def _decoder(hint: Any) -> Callable[[Any], Any]:
    """What turns JSON into a value of the type that a field of the model has."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            each = _decoder(arguments[0])
            return lambda data: tuple([each(item) for item in data])
        several = [_decoder(argument) for argument in arguments]
        return lambda data: tuple([decode(item) for decode, item in zip(several, data, strict=True)])
    if origin in (typing.Union, types.UnionType):
        (some,) = (_decoder(argument) for argument in arguments if argument is not type(None))
        return lambda data: None if data is None else some(data)
    if dataclasses.is_dataclass(hint):
        return _record(hint)
    if issubclass(hint, enum.Enum):
        return typing.cast("Callable[[Any], Any]", hint)
    return lambda data: data


def _record(kind: Any) -> Callable[[Any], Any]:
    hints = typing.get_type_hints(kind)
    decoders = [_decoder(hints[name]) for name in _names(kind)]
    return lambda data: kind(*[decode(item) for decode, item in zip(decoders, data, strict=True)])
