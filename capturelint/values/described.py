"""Abstract values in words, for people who ask where one comes from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from capturelint.values.domain import (
    MISSING,
    BoundExternal,
    ClassValue,
    Device,
    DeviceValue,
    DType,
    External,
    ExternalInstance,
    Function,
    Host,
    Instance,
    Mapping,
    ModuleValue,
    Read,
    Sequence,
    Tensor,
    Unknown,
    Value,
    options,
)


def describe(value: Value | None) -> str:
    """``a device tensor [likely] (a module's buffer)``; alternatives are joined by ``or``."""
    return " or ".join(dict.fromkeys(_one(option) for option in options(value))) or "nothing is known of it"


def _one(value: Value) -> str:
    words = _WORDS.get(type(value))
    text = words(value) if words is not None else "nothing is known of it"
    return f"{text} ({value.why})" if value.why else text


def _tensor(value: Tensor) -> str:
    place = {
        Device.DEVICE: "a device tensor",
        Device.HOST: "a pinned host tensor" if value.pinned else "a host tensor",
        Device.UNKNOWN: "a tensor on a device that is not known",
    }[value.device]
    changing = f", which changes: {value.changing}" if value.changing else ""
    return f"{place} [{value.confidence.value}]{changing}"


def _host(value: Host) -> str:
    if value.changing:
        return f"a host value that changes: {value.changing}"
    if value.const is not MISSING:
        return f"the constant {value.const!r}"
    if value.shape:
        return "a size, which is fixed for each graph"
    return f"a host value of type {value.kind}" if value.kind else "a host value"


def _unknown(value: Unknown) -> str:
    known = ", used as a tensor" if value.tensor_like else ""
    if value.parameter:
        return f"what is passed as `{value.parameter}`{known}"
    return f"nothing is known of it{known}"


def _instance(value: Instance) -> str:
    return f"an object of `{value.site.cls.qualname}`" + ("" if value.exact else " or of a class below it")


_WORDS: dict[type[Value], Callable[[Any], str]] = {
    Tensor: _tensor,
    Read: lambda value: f"a number that was read from the device [{value.confidence.value}]",
    Host: _host,
    Unknown: _unknown,
    DeviceValue: lambda value: f"a device ({value.device.value})",
    DType: lambda value: "a dtype",
    Sequence: lambda value: f"a {value.kind}",
    Mapping: lambda value: "a dictionary",
    Instance: _instance,
    ExternalInstance: lambda value: f"an object of `{value.cls}`",
    External: lambda value: f"`{value.path}`",
    BoundExternal: lambda value: f"the method `{value.path.removeprefix('?.')}`",
    ModuleValue: lambda value: f"the module `{value.module.name}`",
    ClassValue: lambda value: f"the class `{value.info.qualname}`",
    Function: lambda value: f"the function `{value.info.qualname}`",
}
