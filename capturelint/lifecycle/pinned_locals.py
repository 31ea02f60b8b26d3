"""CG203, around the region: a captured copy of pinned memory that only the function that captures holds.

Made before the region, in a local name or for the call alone, it is freed when that function returns; another function
replays. What captured code stores lives on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.findings import Around
from capturelint.lifecycle import lifetime, pinned, story
from capturelint.lifecycle.life import Life
from capturelint.lifecycle.moments import Moments
from capturelint.lifecycle.places import Place, argument
from capturelint.model import Confidence, Related
from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.values.domain import tensors
from capturelint.values.facts import Context

_HELP = "keep the pinned buffer as long as the graph: in an attribute, or returned together with the graph"


def find(life: Life, moments: Moments) -> Iterator[Around]:
    holder = life.holder
    if not life.is_block or holder is None or not life.replays:
        return
    if any(each.function is holder for each in life.replays if each.depth == 0):
        return  # its locals live on while it replays
    copies = list(_copies(life))
    if not copies:
        return
    for name, module, made in _dying(life, holder):
        place = Place(holder, name)
        if _is_stored(life, place):
            continue
        for context, memory, verb in copies:
            if place in life.origins.same(context.function, context.module, memory).places:
                yield _report(life, holder, context, memory, verb, Related(module.display, made.lineno, "made here"))


def _report(life: Life, holder: FunctionInfo, context: Context, memory: ast.expr, verb: str, made: Related) -> Around:
    text = context.module.segment(memory, 40)
    return story.finding(
        life,
        "CG203",
        context.function,
        context.module,
        memory,
        f"`{text}` is pinned memory that dies when `{holder.name}` returns; every replay {verb} there",
        "the graph keeps the address",
        min(Confidence.LIKELY, life.reach.steps[context].confidence),
        help=_HELP,
        related=(made, story.captured_at(life), *story.replayed_at(life, None)),
    )


def _copies(life: Life) -> Iterator[tuple[Context, ast.expr, str]]:
    """The pinned memory that captured copies read or write, and what they do with it."""
    for context in life.reach.steps:
        for call, which in pinned.copies_in(context):
            memory = pinned.pinned_operand(call, which)
            if which != "result" and memory is not None:
                yield context, pinned.base(memory), "reads" if which == "source" else "writes"


def _dying(life: Life, holder: FunctionInfo) -> Iterator[tuple[str, Module, ast.expr]]:
    """Names of the function that captures, each with what makes the pinned memory that nothing else holds."""
    parameters = {each.arg for each in holder.parameters()}
    scope = life.engine.scope_of(holder, holder.module)
    for name in sorted(lifetime.names_read(life, holder)):
        if lifetime.is_kept(life, holder, name) or not any(each.pinned for each in tensors(scope.lookup(name))):
            continue
        if name not in parameters:
            values = holder.assigned.get(name, [])
            if values and all(pinned.allocates(pinned.base(each)) for each in values):
                yield name, holder.module, values[0]
        elif name not in holder.assigned:
            for site in life.origins.callers(holder):
                for given in argument(holder, site, name):
                    if pinned.allocates(pinned.base(given)):
                        yield name, site.module, given


def _is_stored(life: Life, place: Place) -> bool:
    """Whether captured code puts the memory into an attribute or a container."""
    return any(
        isinstance(node, ast.Assign)
        and any(isinstance(target, (ast.Attribute, ast.Subscript)) for target in node.targets)
        and isinstance(node.value, (ast.Name, ast.Attribute))
        and place in life.origins.same(info, info.module, node.value).places
        for info in life.entered
        for node in ast.walk(info.node)
    )
