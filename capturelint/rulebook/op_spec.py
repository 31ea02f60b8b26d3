"""What is known of a callable: parameters, kind of result, effects on host and device. Plain data, no loading."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from capturelint.model import Confidence

Constant: TypeAlias = bool | int | float | str | None

#: kinds of result that stand alone; ``instance:`` and ``module:`` name a class or module after the colon
RESULT_KINDS = frozenset(
    (
        *("tensor", "tensors", "reduce", "reduce-or-pair", "self", "same", "like", "factory", "host-tensor", "ndarray"),
        *("read", "reads", "host", "shape", "dtype", "device", "none", "changing", "environment", "join"),
        *("special", "special-constructor", "instance", "module", "unknown"),
    )
)
_RESULT = re.compile(
    r"(?P<kind>[a-z-]+)(?::(?:(?P<count>\d+)|(?P<dtype>bool|int|uint8|float)|(?P<target>[\w.]*[.][\w.]*)))?(?P<rank0>:rank0)?"
)


class EffectKind(enum.Enum):
    """What a call does besides computing."""

    HOST_READ = "host-read"
    HOST_COPY = "host-copy"
    FORMAT = "format"
    SYNCHRONIZE = "synchronize"
    HIDDEN_SYNC = "hidden-sync"
    #: a parameter that wants a host number gets a device tensor
    HOST_NUMBER = "host-number"
    HOST_TO_DEVICE = "host-to-device"
    DYNAMIC_SHAPE = "dynamic-shape"
    #: a parameter that wants a host int gets a device tensor
    SIZE_FROM_TENSOR = "size-from-tensor"
    #: the value is new at every call, on the host
    RANDOM_HOST = "random-host"
    UNREGISTERED_GENERATOR = "unregistered-generator"
    RESEED = "reseed"
    #: CUDA objects are destroyed: a graph, or whatever the garbage collector finds
    DESTROYS = "destroys"
    #: an optimizer updates its parameters
    OPTIMIZER_STEP = "optimizer-step"
    #: a gradient scaler reads on the host whether a gradient overflowed
    GRAD_SCALER = "grad-scaler"

    @property
    def rule(self) -> str:
        """The rule that reports it."""
        return _RULES[self]


_RULES = {
    EffectKind.HOST_READ: "CG101",
    EffectKind.HOST_COPY: "CG102",
    EffectKind.FORMAT: "CG103",
    EffectKind.SYNCHRONIZE: "CG104",
    EffectKind.HIDDEN_SYNC: "CG105",
    EffectKind.HOST_NUMBER: "CG105",
    EffectKind.HOST_TO_DEVICE: "CG201",
    EffectKind.DYNAMIC_SHAPE: "CG401",
    EffectKind.SIZE_FROM_TENSOR: "CG402",
    EffectKind.RANDOM_HOST: "CG602",
    EffectKind.UNREGISTERED_GENERATOR: "CG803",
    EffectKind.RESEED: "CG810",
    EffectKind.DESTROYS: "CG809",
    EffectKind.OPTIMIZER_STEP: "CG901",
    EffectKind.GRAD_SCALER: "CG904",
}


@dataclass(frozen=True, slots=True)
class Returns:
    """The kind of result. ``text`` is how the table spells it, for example ``tensor:bool`` or ``tensors:2``.

    ``dtype`` is ``bool``, ``int``, ``uint8`` or ``float`` where known; ``rank0`` marks results that are always 0-d;
    ``count`` is the length of a tuple; ``target`` the dotted class of an ``instance`` or the dotted name of a
    ``module``.
    """

    kind: str
    dtype: str | None = None
    rank0: bool = False
    count: int | None = None
    target: str | None = None

    @classmethod
    def parse(cls, text: str) -> Returns | None:
        """None where ``text`` is no kind of result."""
        match = _RESULT.fullmatch(text)
        if match is None or match["kind"] not in RESULT_KINDS:
            return None
        needs_target = match["kind"] in ("instance", "module")
        if needs_target is (match["target"] is None):
            return None
        if match["count"] and match["kind"] != "tensors":
            return None
        if (match["dtype"] or match["rank0"]) and match["kind"] not in ("tensor", "reduce", "factory", "like"):
            return None
        count = int(match["count"]) if match["count"] else None
        return cls(match["kind"], match["dtype"], match["rank0"] is not None, count, match["target"])

    @property
    def text(self) -> str:
        middle = self.target or self.dtype or (str(self.count) if self.count is not None else "")
        return self.kind + (f":{middle}" if middle else "") + ":rank0" * self.rank0


@dataclass(frozen=True, slots=True)
class Condition:
    """All parts must hold. Parameters are meant by name; one that is not in ``params`` is given by keyword only.

    ``self.momentum`` means an argument that the receiver (or a parameter) was made with.

    given: parameters that the call passes (with anything but a literal None); not_given: those it does not.
    const: (parameter, values): it is given and is one of these constants; not_const: it is not given any of them.
    kinds: (parameter, kind): ``tensor``; ``mask``, a boolean tensor or a sequence that holds one; ``matrix`` and
    ``batch``, a tensor that is known to have two dimensions, or more; ``many``, one that is known to have 64 elements
    or more; ``sparse``, ``nested`` and ``jagged``, a tensor of such a layout; ``cuda``, a device argument that names
    the GPU. not_kinds: (parameter, kind) that it is not known to be.
    """

    given: tuple[str, ...] = ()
    not_given: tuple[str, ...] = ()
    const: tuple[tuple[str, tuple[Constant, ...]], ...] = ()
    not_const: tuple[tuple[str, tuple[Constant, ...]], ...] = ()
    kinds: tuple[tuple[str, str], ...] = ()
    not_kinds: tuple[tuple[str, str], ...] = ()

    @property
    def always(self) -> bool:
        return self == ALWAYS


ALWAYS = Condition()
MODES = ("anomaly", "validation", "eager")
#: where a tensor is not strided: the nested layout of lists of tensors, and that of values with offsets
LAYOUTS = ("sparse", "nested", "jagged")
PARAMETER_KINDS = ("tensor", "mask", "matrix", "batch", "many", "cuda", *LAYOUTS)


@dataclass(frozen=True, slots=True)
class OpEffect:
    """One effect. ``on`` names the parameters of which one must be a device tensor, or hold one in a list or tuple.

    ``on`` is None where any argument will do (the receiver too), and () where the effect needs no tensor.

    ``confidence`` is the highest that a finding may have, None for no limit; ``versions`` the torch versions that it
    holds for (``>=2.0``), empty for all.
    """

    kind: EffectKind
    on: tuple[str, ...] | None = None
    when: Condition = ALWAYS
    detail: str = ""
    confidence: Confidence | None = None
    versions: str = ""
    #: what to do about it, where the rule's own advice is not it
    help: str = ""
    #: the mode of the process that it depends on: ``anomaly`` (of autograd), ``validation`` (of distributions) or
    #: ``eager``, where torch.compile does not trace the call
    mode: str = ""


@dataclass(frozen=True, slots=True)
class OpSpec:
    """A callable or attribute. ``name`` is the table's own spelling, which can differ from the one that was looked up.

    ``params`` are in positional order, the receiver of a method first; keyword-only ones follow. One that starts with
    ``*`` takes all positional arguments that are left (effects name it without the star). ``mutates`` are the
    parameters that the call writes to; ``view`` says that the result can share memory with the first tensor; ``random``
    that it draws from the generator of the result's device; ``layout`` is that of the result, where it has another one.
    """

    name: str
    params: tuple[str, ...] = ()
    returns: Returns = Returns("unknown")
    effects: tuple[OpEffect, ...] = ()
    mutates: tuple[str, ...] = ()
    attribute: bool = False
    view: bool = False
    random: bool = False
    layout: str | None = None


_MOST_SIZES = 12


def size_arguments(spec: OpSpec, *, bound: bool) -> Iterator[int | str]:
    """The arguments of a call that are sizes, by position and by name; ``bound``: the first is the receiver."""
    for effect in spec.effects:
        if effect.kind is not EffectKind.SIZE_FROM_TENSOR:
            continue
        for name in effect.on or ():
            yield name
            for index, parameter in enumerate(spec.params):
                position = index - (1 if bound else 0)
                if parameter == name:
                    yield position
                elif parameter == f"*{name}":
                    yield from range(position, position + _MOST_SIZES)


@dataclass(frozen=True, slots=True)
class Known:
    """A value that is known, which can be None."""

    value: Constant


@dataclass(frozen=True, slots=True)
class Predicate:
    """A callable or attribute whose value is known from where it is asked; None where it is not known there.

    ``in_region``: while ``torch.cuda.graph`` and the like record; ``in_compile``: while ``torch.compile`` traces the
    region; ``outside``: in eager code.
    """

    name: str
    attribute: bool = False
    in_region: Known | None = None
    in_compile: Known | None = None
    outside: Known | None = None


@dataclass(frozen=True, slots=True)
class OptimizerSpec:
    """An optimizer class: what its constructor takes, and what ``step()`` does while capturing.

    ``capturable``, ``fused`` and ``tensor_lr``: it has that argument, or takes a tensor there. ``refuses``: ``step()``
    raises while capturing unless ``capturable=True``. ``reads``: ``step()`` reads device values on the host even so.
    ``reads_lr``: it reads a learning rate that is a device tensor, unless it is the fused one.
    """

    name: str
    capturable: bool = False
    fused: bool = False
    tensor_lr: bool = False
    refuses: bool = False
    reads: bool = False
    reads_lr: bool = False
