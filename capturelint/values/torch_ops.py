"""Calls of third-party functions and methods: effects and results from the operator tables."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from capturelint.model import Confidence
from capturelint.rulebook.op_spec import EffectKind, OpSpec
from capturelint.values import devices, library, modes, training
from capturelint.values.domain import (
    HOST,
    UNKNOWN,
    Device,
    ExternalInstance,
    Host,
    Instance,
    Tensor,
    Unknown,
    Value,
    options,
)
from capturelint.values.facts import Effect, capped
from capturelint.values.frame import Arguments, Frame

if TYPE_CHECKING:
    pass

from capturelint.values.effects import bind, effects_of
from capturelint.values.results import drawn, result_of

#: what only a tensor has, so that a receiver of unknown type says something by being asked for it
_TELLING = frozenset({EffectKind.HOST_READ, EffectKind.HOST_COPY, EffectKind.DYNAMIC_SHAPE})
#: third-party modules whose functions do nothing to a GPU; an unknown function of theirs is no gap worth reporting
_HARMLESS = frozenset(
    [
        "builtins",
        "typing",
        "typing_extensions",
        "math",
        "os",
        "sys",
        "time",
        "logging",
        "functools",
        "itertools",
        "collections",
        "dataclasses",
        "enum",
        "re",
        "json",
        "abc",
        "contextlib",
        "warnings",
        "copy",
        "inspect",
        "operator",
        "random",
        "string",
        "types",
        "pathlib",
        "threading",
        "weakref",
        "gc",
        "traceback",
        "torch.distributed.get_rank",
        "torch.distributed.get_world_size",
        "einops",
        "packaging",
        "platform",
        "uuid",
        "datetime",
    ]
)


def call_external(
    path: str, receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame, effects: list[Effect]
) -> Value:
    """The result of calling something third-party; what it does to the device is added to ``effects``."""
    engine = frame.engine
    if path.startswith("?."):
        return _call_unknown(path[2:], receiver, given, node, frame, effects)
    known = _predicate(path, frame)
    if known is not None:
        return known
    if frame.in_region and _from_vocabulary(path, frame, effects):
        return HOST if engine.vocabulary.matches(path, engine.vocabulary.reads_device) else UNKNOWN
    spec = engine.ops.lookup(path)
    if spec is not None:
        bound = bind(spec, receiver, given)
        effects.extend(training.scaler_effects(list(effects_of(spec, bound, frame)), receiver, given, engine))
    else:
        bound = bind(OpSpec(path), receiver, given)
    for spelling in (path, bound.spec.name):  # as written, then as the tables name it
        handled = library.result(spelling, receiver, given, node, frame)
        if handled is not None:
            return handled
        if spelling in devices.HANDLERS:
            return devices.HANDLERS[spelling](bound, given, frame, effects)
    if spec is None:
        return _unlisted(path, receiver, given, node, frame)
    result = drawn(spec, result_of(spec, receiver, bound.all, bound, frame), frame)
    if spec.name == modes.ANOMALY and frame.in_region:
        frame.anomaly = bool(modes.anomaly(result))  # called, it is on at once; as a context manager, until it ends
    return training.placed(result, bound, node, frame)


def _predicate(path: str, frame: Frame) -> Value | None:
    predicate = frame.engine.ops.predicate(path)
    if predicate is not None and not predicate.attribute:
        known = predicate.outside
        if frame.context is not None:
            known = predicate.in_compile if frame.context.compiled else predicate.in_region
        return Host(const=known.value, kind="bool") if known is not None else Host(kind="bool")
    vocabulary = frame.engine.vocabulary
    value = vocabulary.predicate(path) if frame.in_region else vocabulary.asks_for_hardware(path)
    return Host(const=value, kind="bool") if value is not None else None


def _from_vocabulary(path: str, frame: Frame, effects: list[Effect]) -> bool:
    """What config says of a third-party name comes before what the tables say."""
    vocabulary = frame.engine.vocabulary
    if vocabulary.matches(path, vocabulary.capture_safe):
        return True
    for kind, names in (("synchronize", vocabulary.synchronizes), ("host-read", vocabulary.reads_device)):
        if vocabulary.matches(path, names):
            effects.append(Effect(kind, Confidence.CERTAIN, f"`{path}` (config)"))
            return True
    return False


def _call_unknown(
    name: str, receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame, effects: list[Effect]
) -> Value:
    """A method of something unknown: ``.item()`` still says that it is a tensor."""
    spec = frame.engine.ops.lookup(f"torch.Tensor.{name}")
    telling = spec is not None and any(effect.kind in _TELLING for effect in spec.effects)
    if spec is not None and telling:
        sure = Confidence.LIKELY if isinstance(receiver, Unknown) and receiver.tensor_like else Confidence.POSSIBLE
        assumed = Tensor(device=Device.DEVICE, confidence=sure, why="only a tensor has this method")
        bound = bind(spec, assumed, given)
        effects.extend(effects_of(spec, bound, frame))
        return result_of(spec, assumed, bound.all, bound, frame)
    if spec is not None:
        # what happens whatever the receiver is, such as a backward pass in anomaly mode
        bound = bind(spec, receiver, given)
        effects.extend(capped(effect, Confidence.LIKELY) for effect in effects_of(spec, bound, frame, modes_only=True))
    if name in ("synchronize", "query") and frame.in_region:
        effects.append(Effect("synchronize", Confidence.POSSIBLE, f"`.{name}()` of something unknown"))
    if isinstance(receiver, Unknown) and receiver.tensor_like and spec is not None:
        return Unknown(tensor_like=True)
    if frame.in_region:
        frame.engine.unresolved(frame, node, f"the object that has `.{name}` is unknown")
    if isinstance(receiver, Unknown) and receiver.of_tensors and spec is not None:
        return receiver
    return made_of(given)


def _unlisted(path: str, receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    engine = frame.engine
    if path in engine.ops.module_classes:
        return ExternalInstance(path, tuple(given.keywords))
    if isinstance(receiver, Instance) and path.startswith("torch.nn."):
        return _module_method(path, receiver)
    if isinstance(receiver, ExternalInstance) and path.startswith("torch.nn.Module."):
        return _module_method(path, receiver)
    if isinstance(receiver, Tensor):
        return Tensor(device=receiver.device, confidence=Confidence.POSSIBLE)
    if frame.in_region and not _harmless(path):
        engine.unresolved(frame, node, f"`{path}` is not part of the project")
    if path.rpartition(".")[2][:1].isupper() and not path.startswith("builtins."):
        return ExternalInstance(path, tuple(given.keywords))
    return made_of(given)


def _module_method(path: str, receiver: Value) -> Value:
    if path.rpartition(".")[2] in ("cuda", "to", "eval", "train", "half", "float", "bfloat16", "requires_grad_", "cpu"):
        return receiver
    return UNKNOWN


def made_of(given: Arguments) -> Value:
    """What code out of view makes of its arguments: of device tensors, most likely another one."""
    values = (*given.positional, *(value for _, value in given.keywords))
    of_tensors = any(
        (isinstance(option, Tensor) and option.device is Device.DEVICE and option.confidence > Confidence.POSSIBLE)
        or (isinstance(option, Unknown) and option.of_tensors)
        for value in values
        for option in options(value)
    )
    return Unknown(of_tensors=True) if of_tensors else UNKNOWN


def _harmless(path: str) -> bool:
    parts = path.split(".")
    return any(".".join(parts[:count]) in _HARMLESS for count in range(1, len(parts) + 1))


#: modules with weights of their own: what they give is where their weights are
_WEIGHTED = (
    "Linear",
    "Bilinear",
    "Conv",
    "Embedding",
    "LayerNorm",
    "RMSNorm",
    "BatchNorm",
    "GroupNorm",
    "InstanceNorm",
)


def call_module(
    target: ExternalInstance, given: Arguments, node: ast.AST, frame: Frame, effects: list[Effect]
) -> Value:
    """The call of a third-party object: one of torch's modules, or something unknown."""
    spec = frame.engine.ops.lookup(f"{target.cls}.__call__") or frame.engine.ops.lookup(f"{target.cls}.forward")
    if spec is None:
        if frame.in_region:
            frame.engine.unresolved(frame, node, f"`{target.cls}` is not part of the project")
        return UNKNOWN
    bound = bind(spec, target, given)
    effects.extend(effects_of(spec, bound, frame))
    result = result_of(spec, given.positional[0] if given.positional else None, bound.all, bound, frame)
    if isinstance(result, Unknown) and target.cls.rpartition(".")[2].startswith(_WEIGHTED):
        return Tensor(device=Device.DEVICE, confidence=Confidence.LIKELY, why="made by a module with weights")
    return result
