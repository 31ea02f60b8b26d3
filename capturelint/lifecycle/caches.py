"""CG304: what captured code computes at its first call alone, where the first call is not the last word.

A bounded ``lru_cache`` is the only holder of a device tensor that a graph reads: when the entry is evicted, the memory
goes to others. A lazily built attribute is dropped around replays, for the next eager call to build anew.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from capturelint.findings import Around
from capturelint.lifecycle import around
from capturelint.model import Confidence, Related
from capturelint.passes.hazard import Hazard
from capturelint.passes.unit import Support
from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import dotted_name, last_name, store_targets, walk_all, walk_own
from capturelint.reach import Reach
from capturelint.values.call_sites import sites_of
from capturelint.values.changing import constructs, tears_down
from capturelint.values.domain import Instance, options
from capturelint.values.effects import deep_confidence
from capturelint.values.engine import Engine
from capturelint.values.facts import Context, span_of
from capturelint.values.memo import unset
from capturelint.values.writes import from_elsewhere

#: functools' own bound where none is written
_DEFAULT_SIZE = 128
#: a cache of more entries than these is seldom filled
_SMALL = 32


@dataclass(eq=False, slots=True)
class _Found:
    module: Module
    hazard: Hazard
    ways: dict[int, tuple[Reach, Context]] = field(default_factory=dict)


def find(engine: Engine, reaches: list[Reach]) -> Iterator[Around]:
    cached = dict(_cached_functions(engine))
    built: _Built = {}
    found: dict[tuple[str, int, int], _Found] = {}
    for reach in reaches:
        for context in reach.steps:
            if context.compiled:
                continue
            sure = reach.steps[context].confidence
            for module, hazard in (*_evictable(context, cached, sure), *_dropped(engine, context, built, sure)):
                key = (module.display, hazard.span.line, hazard.span.column)
                known = found.setdefault(key, _Found(module, hazard))
                known.ways.setdefault(id(reach), (reach, context))
    for each in found.values():
        contexts = tuple(context for _, context in each.ways.values())
        regions = tuple(reach for reach, _ in each.ways.values())
        yield Around(each.module, contexts[0].name, each.hazard, regions, contexts)


# -- bounded caches --------------------------------------------------------------------------------------------------


def _cached_functions(engine: Engine) -> Iterator[tuple[str, tuple[FunctionInfo, ast.expr, Confidence]]]:
    """Functions with a bounded cache of their results, by the name that calls of them are known by."""
    project = engine.project
    for module in project.modules(project.search.mentioning("lru_cache")):
        for info in module.all_functions("lru_cache"):
            if info.owner is not None or not info.parameters():
                continue  # one entry needs no second place
            for decorator in info.decorators:
                if last_name(decorator) == "lru_cache" and (size := _bound(decorator)) is not None:
                    sure = Confidence.LIKELY if size <= _SMALL else Confidence.POSSIBLE
                    yield f"{module.name}.{info.qualname}", (info, decorator, sure)


def _bound(decorator: ast.expr) -> int | None:
    if not isinstance(decorator, ast.Call):
        return _DEFAULT_SIZE
    given = [each.value for each in decorator.keywords if each.arg == "maxsize"] or decorator.args
    if not given:
        return _DEFAULT_SIZE
    size = given[0]
    return size.value if isinstance(size, ast.Constant) and isinstance(size.value, int) else None


def _evictable(
    context: Context, cached: dict[str, tuple[FunctionInfo, ast.expr, Confidence]], sure: Confidence
) -> Iterator[tuple[Module, Hazard]]:
    for span, fact in context.calls.items():
        for callee in fact.callees:
            if callee not in cached:
                continue
            info, decorator, likely = cached[callee]
            if deep_confidence(context.values.get(span)) in (None, Confidence.POSSIBLE):
                continue
            message = (
                f"`{info.name}` keeps its device tensor in a bounded cache alone: once other calls evict the entry, "
                "the graph reads memory that is given to others"
            )
            support = Support(min(likely, sure), (), f"`{info.name}` is cached with a bound")
            related = (Related(context.module.display, span[0], "captured code calls it here"),)
            yield (
                info.module,
                Hazard(
                    "CG304",
                    around.span(info.module, decorator),
                    message,
                    "evicts what a graph reads",
                    support,
                    help="keep device tensors where nothing evicts them: `maxsize=None`, or an attribute",
                    related=related,
                ),
            )


# -- lazily built, and dropped ---------------------------------------------------------------------------------------


#: per function: the test, and the attribute that is bound where it says that there is none
_Built = dict[int, list[tuple[ast.expr, ast.Attribute]]]


def _dropped(engine: Engine, context: Context, built: _Built, sure: Confidence) -> Iterator[tuple[Module, Hazard]]:
    for node, name, owner in _lazily_built(context, built):
        for holder, statement in _drops(engine, owner, name):
            if holder is context.function or constructs(holder, set()) or not _between_replays(engine, holder):
                continue
            if _captures_again(holder):
                continue
            where = f"{holder.qualname} ({holder.module.display}:{statement.lineno})"  # type: ignore[attr-defined]
            message = (
                f"`{name}` is built when a pass does not find it, and {where} drops it: captured with one that was "
                "there, or building it once, the graph goes on with that"
            )
            support = Support(min(sure, Confidence.LIKELY), (), f"`{name}` is dropped in {where}")
            yield context.module, Hazard("CG304", around.span(context.module, node), message, "decided once", support)
            break


def _between_replays(engine: Engine, holder: FunctionInfo) -> bool:
    """Whether code that drops something runs around replays, or in a method beside the one that replays."""
    if engine.replays.near(holder):
        return True
    runners = {around.owner_of(function) for function in engine.replays.functions} - {None}
    return any(
        around.owner_of(function) in runners and not constructs(function, set()) and not tears_down(function)
        for function in (holder, *(site.holder for site in sites_of(engine, holder)))
        if function is not None
    )


def _lazily_built(context: Context, built: _Built) -> Iterator[tuple[ast.expr, str, Instance]]:
    """``if self.table is None: self.table = ...`` in captured code: the test, the attribute, the object."""
    if id(context.node) not in built:
        function = context.function if context.is_call else None
        nodes = function.acts if function is not None else walk_own(context.node)
        built[id(context.node)] = list(_built_where_none(nodes))
    for test, target in built[id(context.node)]:
        for option in options(context.values.get(span_of(target.value))):
            if isinstance(option, Instance) and option.site.lasting:
                yield test, target.attr, option


def _built_where_none(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.expr, ast.Attribute]]:
    for node in nodes:
        if not isinstance(node, ast.If):
            continue
        for side, body in ((True, node.body), (False, node.orelse)):
            for dotted in unset(node.test, side):
                for target in (t for each in body for inner in walk_all(each) for t in store_targets(inner)):
                    if isinstance(target, ast.Attribute) and dotted_name(target) == dotted:
                        yield node.test, target


def _drops(engine: Engine, owner: Instance, name: str) -> Iterator[tuple[FunctionInfo, ast.AST]]:
    """Statements that set the attribute to None again."""
    own = [
        write
        for entry in engine.mro(owner.site.cls)
        if isinstance(entry, ClassInfo)
        for write in entry.attribute_stores(name)
    ]
    for holder, statement in (*own, *from_elsewhere(engine, owner, name)):
        value = getattr(statement, "value", None)
        if isinstance(statement, ast.Assign) and isinstance(value, ast.Constant) and value.value is None:
            yield holder, statement


def _captures_again(holder: FunctionInfo) -> bool:
    """Who drops the graph as well has it captured anew."""
    targets = [target for node in walk_own(holder.node) for target in store_targets(node)]
    return any("graph" in last_name(target).lower() for target in targets)
