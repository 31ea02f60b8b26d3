"""Attribute access: on objects of the project, on classes and modules, on tensors and third-party things."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from capturelint.model import Confidence, Hardware
from capturelint.values import hierarchy, identity, memo
from capturelint.values.domain import (
    NONE,
    SIZE,
    UNKNOWN,
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
    Partial,
    Sequence,
    Tensor,
    Union,
    Unknown,
    Value,
    element_of,
    join,
    on_several_devices,
    options,
    tensors,
)
from capturelint.values.frame import Arguments

if TYPE_CHECKING:
    from capturelint.values.engine import Engine
    from capturelint.values.frame import Frame

from capturelint.values.instances import of_class, of_instance


def get(value: Value, name: str, frame: Frame, node: ast.AST | None = None) -> Value:
    """``value.name``; a property read inside a region (at ``node``) runs there."""
    if name in ("is_cuda", "is_cpu") and frame.in_region and _is_on_device(value):
        return Host(const=name == "is_cuda", kind="bool")
    if value.__class__ is not Union:
        return _get(value, name, frame, node)
    return join(*(_get(option, name, frame, node) for option in _alternatives(value)))


def _is_on_device(value: Value) -> bool:
    """Whether every tensor that ``value`` may be, as far as is known, is on the device."""
    found = [option for option in options(value) if isinstance(option, Tensor) or type(option) is Unknown]
    return bool(found) and all(
        option.tensor_like
        if isinstance(option, Unknown)
        else option.on_device and option.confidence > Confidence.POSSIBLE
        for option in found
    )


def _alternatives(value: Value) -> list[Value]:
    """A value's options; a tensor is one possible receiver among others where its device depends on the way here."""
    found = list(options(value))
    if not on_several_devices(found):
        return found
    return [replace(each, confidence=Confidence.POSSIBLE) if isinstance(each, Tensor) else each for each in found]


def _get(value: Value, name: str, frame: Frame, node: ast.AST | None) -> Value:
    engine = frame.engine
    if isinstance(value, Instance):
        if frame.in_region and node is not None:
            method = hierarchy.find_method(engine, value.site.cls, name)
            if method is not None and method.is_property:
                sure = frame.sure
                if method.has_decorator("cached_property"):
                    sure = sure.at_most(Confidence.POSSIBLE, memo.RAN_BEFORE)
                return engine.enter(Function(method, bound=value), Arguments(), node, frame, sure)
        return of_instance(engine, value, name)
    if isinstance(value, Tensor):
        return (
            BoundExternal(f"torch.Tensor.{name}", value)
            if not _is_attribute(engine, name)
            else value_attribute(engine, value, name)
        )
    if isinstance(value, External):
        return _external(engine, value, name, frame)
    if isinstance(value, ModuleValue):
        return (
            engine.global_name(value.module, name) if _defined(engine, value, name) else _submodule(engine, value, name)
        )
    if isinstance(value, ClassValue):
        return of_class(engine, value.info, name)
    if isinstance(value, ExternalInstance):
        return _external_instance(engine, value, name, frame)
    if isinstance(value, Sequence) and (named := _named_field(value, name)) is not None:
        return named
    if isinstance(value, (Sequence, Mapping, Host)):
        return BoundExternal(f"builtins.{_builtin_kind(value)}.{name}", value)
    if isinstance(value, Partial) and name == "func":
        return value.function
    if isinstance(value, DeviceValue) and name == "type":
        return _device_type(value)
    if isinstance(value, Unknown) and name in _TENSOR_FACTS:
        return _TENSOR_FACTS[name]
    if isinstance(value, (Unknown, BoundExternal, Function)):
        return BoundExternal(f"?.{name}", value)
    return UNKNOWN


#: what only tensors (and arrays) are asked for: host facts, whatever the tensor is
_TENSOR_FACTS: dict[str, Value] = {
    "device": DeviceValue(Device.UNKNOWN),
    "dtype": DType(),
    "shape": Sequence("tuple", None, SIZE),
    # of the context of an autograd function
    "saved_tensors": Sequence(
        "tuple", None, Tensor(device=Device.DEVICE, confidence=Confidence.LIKELY, why="saved for backward")
    ),
}


def _device_type(value: DeviceValue) -> Value:
    """``device.type``: the GPU is "cuda" (code for other devices is not what is captured here)."""
    if value.device is Device.UNKNOWN or value.confidence is Confidence.POSSIBLE:
        return Host(kind="str")
    return Host(const="cuda" if value.device is Device.DEVICE else "cpu", kind="str")


def _named_field(value: Sequence, name: str) -> Value | None:
    """``t.topk(k).indices``: torch's named tuples."""
    if name not in ("values", "indices") or value.kind != "tuple":
        return None
    if value.items is not None and len(value.items) == 2:
        return value.items[0 if name == "values" else 1]
    return element_of(value) if any(True for _ in tensors(element_of(value))) else None


def _builtin_kind(value: Value) -> str:
    if isinstance(value, Sequence):
        return "list" if value.kind == "generator" else value.kind
    if isinstance(value, Mapping):
        return "dict"
    assert isinstance(value, Host)
    if isinstance(value.const, (str, bytes)):
        return "str"
    return value.kind or "object"


def _is_attribute(engine: Engine, name: str) -> bool:
    spec = engine.ops.lookup(f"torch.Tensor.{name}")
    return spec is not None and spec.attribute


def value_attribute(engine: Engine, tensor: Tensor, name: str) -> Value:
    """A property of a tensor: ``.shape``, ``.device``, ``.T``, ``.grad``."""
    from capturelint.values.results import result_of

    spec = engine.ops.lookup(f"torch.Tensor.{name}")
    assert spec is not None
    if (
        name in ("is_cuda", "is_cpu")
        and tensor.device is not Device.UNKNOWN
        and tensor.confidence > Confidence.POSSIBLE
    ):
        return Host(const=tensor.on_device is (name == "is_cuda"), kind="bool")
    return result_of(spec, tensor, (tensor,))


#: the machine that a capture runs on, as far as code asks about it
_PLATFORM: dict[str, Value] = {
    "sys.platform": Host(const="linux", kind="str"),
    "os.name": Host(const="posix", kind="str"),
}


#: versions that are None but for builds of torch for this hardware
_BUILT_FOR = {"torch.version.hip": Hardware.ROCM, "torch.version.xpu": Hardware.XPU}


def _platform_fact(path: str, frame: Frame) -> Value | None:
    """What code finds when it asks for the machine that captures, or how torch was built there."""
    if path in _PLATFORM:
        return _PLATFORM[path]
    predicate = frame.engine.ops.predicate(path)
    if predicate is None or not predicate.attribute:
        return None
    if _BUILT_FOR.get(path) is frame.engine.hardware:
        return Host(const="built", kind="str")
    known = predicate.outside
    if frame.context is not None:
        known = predicate.in_compile if frame.context.compiled else predicate.in_region
    if known is None:
        return None
    return NONE if known.value is None else Host(const=known.value, kind="bool")


def _external(engine: Engine, value: External, name: str, frame: Frame) -> Value:
    path = engine.canonical(f"{value.path}.{name}")
    if (known := _platform_fact(path, frame)) is not None:
        return known
    found = engine.project.find_module(path) if not path.startswith(("torch.", "builtins.")) else None
    if found is not None:
        module = engine.project.module_at(found)
        if module is not None:
            return ModuleValue(module)
    return External(path)


def _defined(engine: Engine, value: ModuleValue, name: str) -> bool:
    return engine.module_scope(value.module).binds(name) or bool(value.module.star_imports)


def _submodule(engine: Engine, value: ModuleValue, name: str) -> Value:
    path = value.module.file.path.parent
    for candidate in (path / name / "__init__.py", path / f"{name}.py"):
        if candidate in engine.project._by_path and value.module.is_package:
            module = engine.project.module_at(candidate)
            if module is not None:
                return ModuleValue(module)
    return UNKNOWN


def _external_instance(engine: Engine, value: ExternalInstance, name: str, frame: Frame) -> Value:
    if value.cls == "super":
        from capturelint.values.special_forms import super_attribute

        return super_attribute(value, name, frame)
    if name in ("cuda_stream", "native_handle") and value.cls in identity.STREAMS:
        return identity.handle_of(value)
    spec = engine.ops.lookup(f"{value.cls}.{name}")
    if spec is not None and spec.attribute:
        from capturelint.values.results import result_of

        return result_of(spec, value, (value,))
    if spec is None and hierarchy.is_module_name(engine, value.cls):
        if name in ("weight", "bias", "running_mean", "running_var", "in_proj_weight"):
            return Tensor(device=Device.DEVICE, confidence=Confidence.LIKELY, stored=True, why="a module's parameter")
        return BoundExternal(f"torch.nn.Module.{name}", value)
    if spec is None and value.cls.startswith("torch.optim."):
        return BoundExternal(f"torch.optim.Optimizer.{name}", value)
    given = value.argument(name)
    if given is not None:
        return given
    return BoundExternal(f"{value.cls}.{name}", value)
