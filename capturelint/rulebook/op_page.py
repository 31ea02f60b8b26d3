"""What the tables say of one operator, as text: for ``capturelint explain torch.linalg.inv``."""

from __future__ import annotations

from collections.abc import Iterator

from capturelint.rulebook.captured import Captured
from capturelint.rulebook.op_spec import Condition, OpEffect, OpSpec
from capturelint.rulebook.ops import OpTable

#: kinds of result that are host values, whatever the operands are
_ON_THE_HOST = {"read", "reads", "host", "shape", "host-tensor", "ndarray"}


def render_operator(dotted: str, table: OpTable, captured: Captured) -> str | None:
    """None where the tables do not know the name."""
    spec = table.lookup(dotted)
    if spec is None:
        return None
    lines = [f"{dotted}({', '.join(spec.params)})" if spec.params else dotted, ""]
    lines += [f"  {line}" for line in _facts(spec)]
    lines.append(f"  capture on {captured.gpu}, torch {captured.torch}: {captured.outcome(spec.name)}")
    return "\n".join(lines) + "\n"


def _facts(spec: OpSpec) -> Iterator[str]:
    for effect in spec.effects:
        yield f"{effect.kind.rule} {effect.kind.value}{_when(effect)}" + (f": {effect.detail}" if effect.detail else "")
    if not spec.effects:
        yield "nothing that breaks a capture is known"
    yield f"returns {spec.returns.text}" + (", a host value" if spec.returns.kind in _ON_THE_HOST else "")
    if spec.mutates:
        yield f"writes to {', '.join(spec.mutates)}"
    if spec.view:
        yield "the result can share memory with the first tensor"
    if spec.random:
        yield "draws random numbers"


def _when(effect: OpEffect) -> str:
    parts = []
    if effect.on:
        parts.append(f"{' or '.join(effect.on)} on the device")
    parts += _conditions(effect.when)
    if effect.mode:
        parts.append(f"mode {effect.mode}")
    if effect.versions:
        parts.append(f"torch {effect.versions}")
    if effect.confidence is not None:
        parts.append(f"{effect.confidence.value} at most")
    return f" ({'; '.join(parts)})" if parts else ""


def _conditions(when: Condition) -> Iterator[str]:
    yield from (f"{name} given" for name in when.given)
    yield from (f"{name} not given" for name in when.not_given)
    for pairs, word in ((when.const, "is"), (when.not_const, "is not")):
        yield from (f"{name} {word} {' or '.join(map(repr, values))}" for name, values in pairs)
    yield from (f"{name} is {kind}" for name, kind in when.kinds)
    yield from (f"{name} is not {kind}" for name, kind in when.not_kinds)
