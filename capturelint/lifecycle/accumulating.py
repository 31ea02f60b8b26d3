"""CG507: the region changes an input in place, and nothing on the replay side restores it.

State that the region carries on by intention (caches, counters, statistics) looks just so. Told apart are the inputs
that are handed to what is captured, that no code on the replay side mentions, and whose names don't say state.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from capturelint.findings import Around
from capturelint.lifecycle import story
from capturelint.lifecycle.inside import Input, Inside, inputs_at
from capturelint.lifecycle.life import Life
from capturelint.lifecycle.moments import Moments
from capturelint.model import Confidence
from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.syntax import walk_own
from capturelint.values import hierarchy, instances
from capturelint.values.changing import constructs
from capturelint.values.domain import Value
from capturelint.values.effects import deep_confidence
from capturelint.values.facts import Context

#: methods that make the new value from the old one
_UPDATING = frozenset(
    (
        *("add_", "sub_", "mul_", "div_", "pow_", "neg_", "sqrt_", "exp_", "log_", "addcmul_", "addcdiv_", "lerp_"),
        *("relu_", "sigmoid_", "tanh_", "clamp_", "clamp_min_", "clamp_max_", "masked_fill_", "round_", "abs_"),
        *("addmm_", "baddbmm_", "square_", "reciprocal_", "rsqrt_", "logical_not_", "bitwise_not_", "cumsum_"),
    )
)
_STATE = re.compile(
    r"(cache|state|count|step|pos|stat|mean|var|ema|avg|hidden|buf|acc|total|sum|loss|hist|kv|offset|index|seed|rng"
    r"|len|workspace|scratch|out|result|grad|moment|weight|param|mem|latent|prev|last|carry|ring|queue|table|log)",
    re.IGNORECASE,
)


def find(life: Life, moments: Moments) -> Iterator[Around]:
    if not life.is_block or not life.replays:
        return
    inside = Inside(life, memory=True)
    filled = _filled(inside)
    for context, nodes in inside.contexts():
        for node in nodes:
            changed = _changed(node)
            # what an object changes of its own attributes is its state, unless it is handed to the region as an input
            if not isinstance(changed, ast.Name) or _STATE.search(ast.unparse(changed)):
                continue
            for each in sorted(inside.inputs(context, changed), key=lambda one: one.place.name):
                if each not in filled and _is_input(life, each) and not _is_mentioned(life, each):
                    yield _report(life, context, node, changed, each)
                    break


def _filled(inside: Inside) -> set[Input]:
    """The inputs that the region itself fills with other values: each replay starts from those."""
    return {
        each
        for context, nodes in inside.contexts()
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("copy_", "fill_", "zero_", "normal_", "uniform_")
        for each in inside.inputs(context, node.func.value)
    }


def _changed(node: ast.AST) -> ast.expr | None:
    """What a node changes in place, making the new value from the old one."""
    if isinstance(node, ast.AugAssign):
        return node.target
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _UPDATING:
        return node.func.value
    return None


def _is_input(life: Life, each: Input) -> bool:
    """Kept by a runner or a function, not by the module whose state it may be; and it doesn't sound like state."""
    owner = each.place.owner
    if not _is_tensor(life, each):
        return False
    if _STATE.search(each.place.name) or (each.key is not None and _STATE.search(each.key)):
        return False
    if isinstance(owner, ClassInfo):
        return not hierarchy.is_module(life.engine, owner)
    return isinstance(owner, FunctionInfo) and owner is life.holder


def _is_tensor(life: Life, each: Input) -> bool:
    """Numbers are bound anew by ``+=``, and stay what they were."""
    owner, engine = each.place.owner, life.engine
    if isinstance(owner, ClassInfo):
        value: Value | None = instances.of_instance(engine, engine.generic_instance(owner), each.place.name)
    elif isinstance(owner, FunctionInfo):
        value = engine.scope_of(owner, owner.module).lookup(each.place.name)
    else:
        value = engine.module_scope(owner).lookup(each.place.name)
    return deep_confidence(value) not in (None, Confidence.POSSIBLE)


def _is_mentioned(life: Life, each: Input) -> bool:
    """Whether code of the replay side speaks of the input: it fills it, or reads what has become of it."""
    for module in dict.fromkeys((life.declaration.module, *(replay.module for replay in life.replays))):
        for function in module.all_functions():
            if function in life.entered or constructs(function, set()):
                if function is not life.holder:
                    continue
            if function in life.surroundings.capturing and not life.replays_in(function, module):
                continue
            last = life.declaration.node.end_lineno if function is life.holder else 0  # type: ignore[attr-defined]
            for node in walk_own(function.node, into_nested=True):
                if isinstance(node, (ast.Name, ast.Attribute)) and node.lineno > (last or 0):
                    if any(each.place == other.place for other in inputs_at(life, function, module, node)):
                        return True
    return False


def _report(life: Life, context: Context, node: ast.AST, changed: ast.expr, each: Input) -> Around:
    module = context.module
    text = module.segment(changed, 40)
    function = context.function if context.function is not None else life.holder
    return story.finding(
        life, "CG507", function, module, node,
        f"`{text}` changes the static input `{each.place.name}` in place, and nothing fills it again before the next "
        "replay, which starts from the changed one",
        "changes the input at every replay", Confidence.LIKELY,
        help=f"work on a copy in the region (`{text}.clone()`), or refill the input before each replay",
    )  # fmt: skip
