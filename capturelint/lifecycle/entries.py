"""CG502 for containers: the region binds an entry of a static input's container that it reads, under the same key.

``state["h"] = cell(state["h"])`` and ``hs[i] = cell(hs[i])`` in what is captured run once. From then on the replay
side fills the tensor that came out of the capture, while the graph reads the one that went in.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.findings import Around
from capturelint.lifecycle import story
from capturelint.lifecycle.inside import Input, Inside
from capturelint.lifecycle.life import Life
from capturelint.lifecycle.moments import Moments
from capturelint.model import Confidence
from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.syntax import store_targets
from capturelint.values import instances
from capturelint.values.domain import Mapping, Sequence, Value, options
from capturelint.values.effects import deep_confidence


def find(life: Life, moments: Moments) -> Iterator[Around]:
    if not life.is_block:
        return
    inside = Inside(life, memory=True)
    for context, nodes in inside.contexts():
        read: dict[str, int] = {}
        for node in nodes:
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and _has_key(node):
                text = ast.unparse(node)
                read[text] = min(read.get(text, node.lineno), node.lineno)
        for node in nodes:
            for target in store_targets(node) if isinstance(node, ast.Assign) else ():
                if not (isinstance(target, ast.Subscript) and _has_key(target) and isinstance(target.value, ast.Name)):
                    continue
                first = read.get(ast.unparse(target))
                if first is None or (first > target.lineno and not _is_word(target)):
                    continue  # what the region itself put there just before
                if any(_is_kept(life, each) for each in inside.inputs(context, target.value)):
                    text = context.module.segment(target, 40)
                    yield story.finding(
                        life, "CG502", context.function, context.module, target,
                        f"`{text}` is bound to a new tensor in the region, and read there too: every replay reads the "
                        "entry of capture time, whatever the name holds now",
                        "bound once, at capture", Confidence.LIKELY, help=f"write into it: `{text}.copy_(...)`",
                    )  # fmt: skip


def _has_key(node: ast.Subscript) -> bool:
    """A word, a number or a name; an index that is a tensor chooses rows of one, which ``_is_kept`` tells."""
    return isinstance(node.slice, (ast.Name, ast.Constant))


def _is_word(node: ast.Subscript) -> bool:
    return isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)


def _is_kept(life: Life, each: Input) -> bool:
    """A dict or list of tensors that some object or function keeps from one replay to the next."""
    owner, engine = each.place.owner, life.engine
    if isinstance(owner, ClassInfo):
        value: Value | None = instances.of_instance(engine, engine.generic_instance(owner), each.place.name)
    elif isinstance(owner, FunctionInfo):
        value = engine.scope_of(owner, owner.module).lookup(each.place.name)
    else:
        return False
    holds = deep_confidence(value) is not None
    return each.key is None and holds and any(isinstance(option, (Mapping, Sequence)) for option in options(value))
