"""What a test that holds says about names: ``x is None``, ``isinstance(x, C)``, plain truth."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from capturelint.model import Confidence
from capturelint.project.syntax import dotted_name
from capturelint.values import hierarchy
from capturelint.values.domain import (
    MISSING,
    NONE,
    UNKNOWN,
    ClassValue,
    Device,
    External,
    Function,
    Host,
    Instance,
    Mapping,
    Sequence,
    Tensor,
    Unknown,
    Value,
    element_of,
    join,
    options,
    says_nothing,
    without_none,
)
from capturelint.values.scope import Scope

if TYPE_CHECKING:
    from capturelint.values.frame import Frame


def key_of(node: ast.expr) -> str | None:
    """The name under which a plain attribute chain (``self.x``) is narrowed."""
    name = dotted_name(node)
    return name if name is not None and "." in name else None


def subject_of(node: ast.expr, frame: Frame) -> tuple[str, Value] | None:
    """The name that a test asks about, a plain or an attribute chain, and what is known of its value."""
    key = node.id if isinstance(node, ast.Name) else key_of(node)
    value = _current(node, key, frame) if key is not None else None
    return (key, value) if key is not None and value is not None else None


def identical(left: Value, right: Value) -> bool | None:
    """Whether ``left is right``, where that is known (mostly about None)."""
    for value, other in ((left, right), (right, left)):
        if isinstance(other, Host) and other.is_none:
            known = [_is_none(option) for option in options(value)]
            if all(each is True for each in known):
                return True
            return False if all(each is False for each in known) else None
    if isinstance(left, Host) and isinstance(right, Host) and MISSING not in (left.const, right.const):
        return left.const is right.const or (left.const == right.const and left.kind == "enum")
    if isinstance(left, (ClassValue, External)) and isinstance(right, (ClassValue, External)):
        return left == right
    return None


def _is_none(value: Value) -> bool | None:
    if isinstance(value, Unknown):
        return None
    if isinstance(value, Host):
        return value.is_none if value.const is not MISSING else (False if value.shape or value.kind else None)
    return False


def assume(test: ast.expr, holds: bool, frame: Frame) -> Callable[[], None]:
    """Narrows names by a test that holds (or fails); returns what undoes it."""
    if not isinstance(frame.scope, Scope) or frame.scope.names is None:
        return lambda: None
    before: dict[str, Value | None] = {}
    names = frame.scope.names
    for key, value in _narrowings(test, holds, frame):
        if key not in before:
            before[key] = names.get(key)
        frame.scope.narrow(key, value)

    def restore() -> None:
        for key, value in before.items():
            if value is None:
                names.pop(key, None)
            else:
                names[key] = value

    return restore


def _narrowings(test: ast.expr, holds: bool, frame: Frame) -> list[tuple[str, Value]]:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _narrowings(test.operand, not holds, frame)
    if isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) is holds:
            return [each for part in test.values for each in _narrowings(part, holds, frame)]
        part = open_part(test, holds, frame)
        return _narrowings(part, holds, frame) if part is not None else []
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Is, ast.IsNot)):
        if isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None:
            is_none = isinstance(test.ops[0], ast.Is) is holds
            return _with(test.left, frame, lambda value: NONE if is_none else without_none(value))
        return []
    device = device_test(test)
    if device is not None:
        subject, on_device = device
        return _with(subject, frame, lambda value: _placed(value, on_device is holds))
    if isinstance(test, ast.Call) and dotted_name(test.func) == "torch.is_tensor" and len(test.args) == 1:
        return _of_kinds(test.args[0], (External("torch.Tensor"),), holds, frame)
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "isinstance":
        if len(test.args) == 2:
            return _instance_of(test.args[0], test.args[1], holds, frame)
        return []
    if isinstance(test, ast.NamedExpr):
        return _narrowings(test.target, holds, frame)
    if holds and isinstance(test, (ast.Name, ast.Attribute)):
        return _with(test, frame, without_none)
    return []


def open_part(test: ast.BoolOp, holds: bool, frame: Frame) -> ast.expr | None:
    """The one part that decides: where ``a and b`` fails though ``b`` is known to hold, it is ``a`` that fails."""
    parts = [part for part in test.values if not _settled(part, not holds, frame)]
    return parts[0] if len(parts) == 1 else None


def _settled(test: ast.expr, holds: bool, frame: Frame) -> bool:
    """Whether a part of a test has been seen to hold (or to fail)."""
    from capturelint.values.facts import span_of

    value = frame.context.values.get(span_of(test)) if frame.context is not None else None
    return isinstance(value, Host) and value.truth is holds


def device_test(test: ast.expr) -> tuple[ast.expr, bool] | None:
    """``x.is_cuda``, ``x.device.type == "cuda"``: the tensor that is meant, and whether it is on the device if so."""
    if isinstance(test, ast.Attribute) and test.attr in ("is_cuda", "is_cpu"):
        return test.value, test.attr == "is_cuda"
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Eq, ast.NotEq)):
        return None
    left, right = test.left, test.comparators[0]
    if isinstance(left, ast.Attribute) and left.attr == "type" and isinstance(left.value, ast.Attribute):
        if left.value.attr == "device" and isinstance(right, ast.Constant) and right.value in ("cpu", "cuda"):
            return left.value.value, (right.value == "cuda") is isinstance(test.ops[0], ast.Eq)
    return None


def _placed(value: Value, on_device: bool) -> Value:
    """``value`` narrowed to tensors on the device, or to those on the host."""
    device = Device.DEVICE if on_device else Device.HOST
    kept: list[Value] = []
    for option in options(value):
        if isinstance(option, Tensor) and option.device is Device.UNKNOWN:
            kept.append(replace(option, device=device))
        elif isinstance(option, Unknown):
            kept.append(Tensor(device=device, confidence=Confidence.LIKELY))
        elif not isinstance(option, Tensor) or option.device is device:
            kept.append(option)
    return join(*kept) if kept else value


def _with(node: ast.expr, frame: Frame, change: Callable[[Value], Value]) -> list[tuple[str, Value]]:
    subject = subject_of(node, frame)
    return [(subject[0], change(subject[1]))] if subject is not None else []


def _current(node: ast.expr, key: str, frame: Frame) -> Value | None:
    if isinstance(frame.scope, Scope) and frame.scope.names is not None and key in frame.scope.names:
        return frame.scope.names[key]
    if frame.context is not None:
        from capturelint.values.facts import span_of

        return frame.context.values.get(span_of(node))
    return None


def _instance_of(subject: ast.expr, classes: ast.expr, holds: bool, frame: Frame) -> list[tuple[str, Value]]:
    from capturelint.values.expressions import evaluate

    wanted = evaluate(classes, frame)
    kinds = wanted.items if isinstance(wanted, Sequence) and wanted.items is not None else (wanted,)
    return _of_kinds(subject, kinds, holds, frame)


def _of_kinds(node: ast.expr, kinds: tuple[Value, ...], holds: bool, frame: Frame) -> list[tuple[str, Value]]:
    subject = subject_of(node, frame)
    if subject is None:
        return []
    key, value = subject
    kept = [option for option in options(value) if _matches(option, kinds, frame) is not (not holds)]
    if kept:
        value = join(*kept)
    if holds:
        found = [_of_class(kind, frame) for kind in kinds]
        if all(each is not None for each in found):
            value = join(*(join(*found) if says_nothing(option) else option for option in options(value)))
    return [(key, value)]


def _of_class(kind: Value, frame: Frame) -> Value | None:
    if isinstance(kind, ClassValue):
        return frame.engine.generic_instance(kind.info)
    if isinstance(kind, External):
        if kind.path.endswith("torch.Tensor"):
            return Unknown(tensor_like=True)
        if kind.path in ("builtins.int", "builtins.float", "builtins.str", "builtins.bool"):
            return Host(kind=kind.path.rpartition(".")[2])
        if kind.path in ("builtins.list", "builtins.tuple"):
            return Sequence(kind.path.rpartition(".")[2], None, UNKNOWN)
    return None


def is_instance(value: Value, classes: Value, frame: Frame) -> bool | None:
    """``isinstance(value, classes)`` where it is known."""
    kinds = classes.items if isinstance(classes, Sequence) and classes.items is not None else (classes,)
    found = {_matches(option, kinds, frame) for option in options(value)}
    return found.pop() if len(found) == 1 else None


_HOST_CLASSES = {"int", "float", "str", "bool", "bytes"}


def _matches(value: Value, kinds: tuple[Value, ...], frame: Frame) -> bool | None:
    known = [_matches_one(value, kind, frame) for kind in kinds]
    if any(each is True for each in known):
        return True
    return False if all(each is False for each in known) else None


def _matches_one(value: Value, kind: Value, frame: Frame) -> bool | None:
    if isinstance(value, Unknown):
        return None
    name = kind.path.rpartition(".")[2] if isinstance(kind, External) else ""
    if name in ("type", "FunctionType") and isinstance(value, (ClassValue, Function, Instance)):
        return name == ("type" if isinstance(value, ClassValue) else "FunctionType") and not isinstance(value, Instance)
    if isinstance(value, Tensor):
        return (
            name == "Tensor"
            if isinstance(kind, (External, ClassValue)) and name not in ("Parameter", "object")
            else None
        )
    if isinstance(value, Host):
        if value.is_none:
            return name == "NoneType"
        if value.kind in _HOST_CLASSES and name in _HOST_CLASSES:
            return value.kind == name or (value.kind == "bool" and name == "int")
        return False if name == "Tensor" else None
    if isinstance(value, (Sequence, Mapping)):
        own = "dict" if isinstance(value, Mapping) else value.kind
        return own == name if name in ("list", "tuple", "dict", "set", "Tensor", "int", "str") else None
    if isinstance(value, Instance) and isinstance(kind, ClassValue):
        if kind.info in frame.engine.mro(value.site.cls):
            return True
        if value.exact:
            return False
        both = (kind.info, *hierarchy.subclasses(frame.engine, kind.info))
        return None if any(value.site.cls in frame.engine.mro(each) for each in both) else False
    if isinstance(value, Instance) and isinstance(kind, External):
        if kind.path in frame.engine.mro(value.site.cls):
            return True
        return False if name in ("Tensor", "list", "tuple", "dict", "int", "str") else None
    return None


def bind_target(target: ast.expr, value: Value, frame: Frame) -> None:
    """Binds an assignment target inside a region's code (attributes and items are the statements' business)."""
    from capturelint.values.engine import item_at

    if isinstance(target, ast.Name):
        frame.scope.bind(target.id, value)
        if isinstance(frame.scope, Scope):
            frame.scope.forget_attributes(target.id)
    elif isinstance(target, (ast.Tuple, ast.List)):
        starred = any(isinstance(part, ast.Starred) for part in target.elts)
        for index, part in enumerate(target.elts):
            inner = part.value if isinstance(part, ast.Starred) else part
            if isinstance(part, ast.Starred):
                bind_target(inner, Sequence("list", None, element_of(value)), frame)
            else:
                bind_target(inner, element_of(value) if starred else item_at(value, index), frame)
