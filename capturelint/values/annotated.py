"""What annotations say about values."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from capturelint.model import Confidence
from capturelint.project.definitions import FunctionInfo
from capturelint.values import identity, specs
from capturelint.values.domain import (
    NONE,
    ClassValue,
    Device,
    DeviceValue,
    DType,
    External,
    ExternalInstance,
    Host,
    Mapping,
    Sequence,
    Tensor,
    Value,
    is_none,
    join,
    options,
)

if TYPE_CHECKING:
    from capturelint.values.engine import Engine
    from capturelint.values.lazy import LazyScope
    from capturelint.values.scope import Scope

_SCALARS = {"int", "float", "bool", "str", "bytes", "complex"}
_SEQUENCES = {
    "list",
    "List",
    "Sequence",
    "Iterable",
    "Iterator",
    "set",
    "Set",
    "MutableSequence",
    "Collection",
    "deque",
}
_MAPPINGS = {"dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict"}
_TENSORS = {
    "torch.Tensor", "torch.FloatTensor", "torch.LongTensor", "torch.IntTensor", "torch.BoolTensor", "torch.HalfTensor",
    "torch.nn.Parameter", "torch.nn.Buffer", "torch.autograd.Variable",
    "torch.cuda.FloatTensor", "torch.cuda.LongTensor", "torch.cuda.IntTensor",
}  # fmt: skip
_TENSOR_DTYPES = {"LongTensor": "int", "IntTensor": "int", "BoolTensor": "bool", "FloatTensor": "float"}
_OPAQUE = {"Any", "object", "Callable", "TypeVar", "Protocol"}


def value_of(
    engine: Engine, node: ast.expr | None, scope: LazyScope | Scope, name: str = "", *, device: Device | None = None
) -> Value | None:
    """A value of the annotated type, or None where the annotation says nothing useful.

    A tensor's device is ``device`` where given; a name such as ``seq_lens_cpu`` makes it unknown.
    """
    if node is None:
        return None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = _moved(ast.parse(node.value, mode="eval").body, node)
        except SyntaxError:
            return None
    if isinstance(node, ast.Constant) and node.value is None:
        return NONE
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union(engine, [node.left, node.right], scope, name, device)
    if isinstance(node, ast.Subscript):
        return _subscript(engine, node, scope, name, device)
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _named(engine, node, scope, name, device)
    return None


def _moved(parsed: ast.expr, quoted: ast.expr) -> ast.expr:
    """A quoted annotation stands where its string stands."""
    for each in ast.walk(parsed):
        ast.copy_location(each, quoted)
    return parsed


def _union(
    engine: Engine, parts: list[ast.expr], scope: LazyScope | Scope, name: str, device: Device | None
) -> Value | None:
    values = [value_of(engine, part, scope, name, device=device) for part in parts]
    if any(value is None for value in values):
        return None
    if sum(1 for value in values if value is not None and not is_none(value)) > 1:
        # `int | torch.Tensor`: which of them a captured call passes is not said
        values = [replace(v, confidence=Confidence.POSSIBLE) if isinstance(v, Tensor) else v for v in values]
    return join(*values)


def _subscript(
    engine: Engine, node: ast.Subscript, scope: LazyScope | Scope, name: str, device: Device | None
) -> Value | None:
    head = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
    inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    specified = specs.from_annotation(annotated_tensor(name, device), node)
    if specified is not None:
        return specified
    if head == "Optional":
        return _union(engine, [inner[0], ast.Constant(value=None)], scope, name, device)
    if head == "Union":
        return _union(engine, list(inner), scope, name, device)
    if head in ("Annotated", "Final", "ClassVar", "Required", "NotRequired", "Type"):
        return value_of(engine, inner[0], scope, name, device=device) if head != "Type" else None
    if head == "Literal":
        return Host()
    if head in _SEQUENCES:
        return Sequence("list", None, value_of(engine, inner[0], scope, name, device=device))
    if head in ("tuple", "Tuple"):
        if len(inner) == 2 and isinstance(inner[1], ast.Constant) and inner[1].value is Ellipsis:
            return Sequence("tuple", None, value_of(engine, inner[0], scope, name, device=device))
        values = [value_of(engine, part, scope, name, device=device) for part in inner]
        return Sequence("tuple", tuple(value if value is not None else _unknown() for value in values))
    if head in _MAPPINGS and len(inner) == 2:
        return Mapping((), value_of(engine, inner[1], scope, name, device=device))
    return value_of(engine, node.value, scope, name, device=device)


def _unknown() -> Value:
    from capturelint.values.domain import UNKNOWN

    return UNKNOWN


def _named(
    engine: Engine, node: ast.Name | ast.Attribute, scope: LazyScope | Scope, name: str, device: Device | None
) -> Value | None:
    if isinstance(node, ast.Name) and node.id in _SCALARS:
        return Host(kind=node.id)
    found: list[Value] = []
    for option in options(engine.evaluate_in(engine.module_scope(scope.module), node)):
        value = _instance(engine, option, name, device)
        if value is None:
            return None
        found.append(identity.declared(value, scope.module, node) or value)
    return join(*found) if found else None


def _instance(engine: Engine, option: Value, name: str, device: Device | None) -> Value | None:
    if isinstance(option, ClassValue):
        bases = [entry for entry in engine.mro(option.info) if isinstance(entry, str)]
        if any(base.rpartition(".")[2] in ("Enum", "IntEnum", "IntFlag", "StrEnum", "Flag") for base in bases):
            return Host(kind="enum")
        if any(base in _TENSORS for base in bases):
            return annotated_tensor(name, device)
        if any(base.rpartition(".")[2] == "Protocol" for base in bases):
            return None  # whoever calls says what it is
        return engine.passed_instance(option.info)
    if isinstance(option, External):
        path, last = option.path, option.path.rpartition(".")[2]
        if path in _TENSORS or (last == "Tensor" and path.startswith("torch")):
            tensor = annotated_tensor(name, device)
            return (
                tensor
                if last not in _TENSOR_DTYPES
                else Tensor(device=tensor.device, confidence=tensor.confidence, dtype=_TENSOR_DTYPES[last])
            )
        if last in _SCALARS:
            return Host(kind=last)
        if path == "torch.device":
            return DeviceValue(Device.UNKNOWN)
        if path == "torch.dtype":
            return DType()
        if path == "numpy.ndarray":
            return ExternalInstance("numpy.ndarray")
        if path == "torch.nn.Module" or path in _OPAQUE or last in _OPAQUE:
            return None
        if last in ("list", "dict", "tuple", "set", "List", "Dict", "Tuple"):
            return Mapping() if last in ("dict", "Dict") else Sequence(last)
        if path.startswith("torch."):
            return ExternalInstance(engine.canonical(path))
    return None


def annotated_tensor(name: str, device: Device | None) -> Tensor:
    """A tensor that an annotation speaks of. Naming makes a host tensor likely enough not to call it a device one."""
    if device is not None and not says_host(name):
        return Tensor(device=device, why=f"`{name}` is annotated as a tensor")
    if says_host(name):
        return Tensor(device=Device.UNKNOWN, why=f"`{name}` is named as a host tensor")
    return Tensor(device=Device.DEVICE, confidence=Confidence.LIKELY, why=f"`{name}` is annotated as a tensor")


def says_host(name: str) -> bool:
    """Whether a name follows the convention for host tensors (``seq_lens_cpu``, ``host_ids``, ``ids_np``)."""
    parts = name.lower().split("_")
    return any(part in ("cpu", "host", "np", "numpy", "pinned", "pin", "list") for part in parts)


def returned(engine: Engine, info: FunctionInfo, scope: LazyScope | Scope) -> Value | None:
    """What a function's return annotation promises."""
    if isinstance(info.node, ast.Lambda) or info.node.returns is None:
        return None
    return value_of(engine, info.node.returns, scope, info.name)
