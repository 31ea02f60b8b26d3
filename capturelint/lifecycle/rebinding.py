"""CG501: a name that the graph reads is bound to another tensor around replay.

What the region read, by name and by attribute, is compared with every statement that binds the same name or attribute
in code that runs after capture. Code that prepares the capture, or captures anew, may bind what it likes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from capturelint.findings import Around
from capturelint.lifecycle import around, region_stores
from capturelint.lifecycle.around import Surroundings
from capturelint.model import Applicability, Confidence, Edit, Fix, Related
from capturelint.passes.base import Hazard
from capturelint.passes.unit import Support
from capturelint.project.definitions import FunctionInfo, dotted_name, store_targets, walk_own
from capturelint.project.module import Module
from capturelint.reach import Reach
from capturelint.values import hierarchy, instances
from capturelint.values.domain import (
    ExternalInstance,
    Host,
    Instance,
    Mapping,
    Sequence,
    Unknown,
    Value,
    options,
    tensors,
)
from capturelint.values.effects import deep_confidence
from capturelint.values.engine import Engine
from capturelint.values.lazy import LazyScope
from capturelint.values.memo import unset
from capturelint.values.sites import Site

_MAX_FILES = 20


@dataclass(frozen=True, slots=True)
class _Rebinding:
    """A statement that binds ``target`` in ``function`` (None: module level) of ``module``."""

    module: Module
    function: FunctionInfo | None
    statement: ast.AST
    target: ast.expr
    confidence: Confidence
    #: the attribute, where the region binds it as well
    written: tuple[Site, str] | None = None


def find(engine: Engine, reaches: list[Reach]) -> Iterator[Around]:
    """Every rebinding of a static input, with the regions that read it."""
    found: dict[tuple[str, int, int], tuple[_Rebinding, list[Reach]]] = {}
    captured = around.captured_lines(reaches)
    for reach in reaches:
        declaration = reach.entered.declaration
        if declaration.body is None:
            continue
        surroundings = around.of(engine, declaration)
        for rebinding in (*_of_names(engine, reach, surroundings), *_of_attributes(engine, reach, surroundings)):
            key = (rebinding.module.display, rebinding.target.lineno, rebinding.target.col_offset)
            if any(first <= key[1] <= last for first, last in captured.get(key[0], ())):
                continue  # inside a region: CG502's business
            known = found.setdefault(key, (rebinding, []))
            if reach not in known[1]:
                known[1].append(reach)
    for rebinding, regions in found.values():
        yield _report(rebinding, regions)
        if rebinding.written is not None:
            elsewhere = (rebinding.module.display, around.function_line(rebinding.statement))
            support = Support(min(rebinding.confidence, Confidence.LIKELY), ())
            yield from region_stores.undone(*rebinding.written, elsewhere, support, regions)


def _report(rebinding: _Rebinding, regions: list[Reach]) -> Around:
    module, target = rebinding.module, rebinding.target
    text = module.segment(target, 48)
    declaration = regions[0].entered.declaration
    where = f"{declaration.module.display}:{declaration.line}"
    hazard = Hazard(
        "CG501",
        around.span(module, target),
        f"`{text}` is bound to another tensor, but the graph captured at {where} goes on reading the old one",
        "the graph keeps the old tensor",
        Support(rebinding.confidence, ()),
        help=f"write into the tensor that the graph reads: `{text}.copy_(...)`",
        related=(Related(declaration.module.display, declaration.line, "captured with the tensor bound before"),),
        fix=_fix(rebinding),
    )
    scope = rebinding.function.qualname if rebinding.function is not None else ""
    return Around(module, scope, hazard, tuple(regions))


def _fix(rebinding: _Rebinding) -> Fix | None:
    """``x = new`` to ``x.copy_(new)``: unsafe, since shapes and dtypes are not known to agree."""
    statement, module = rebinding.statement, rebinding.module
    if not isinstance(statement, ast.Assign) or statement.targets != [rebinding.target]:
        return None
    target = ast.get_source_segment(module.source, rebinding.target)
    value = ast.get_source_segment(module.source, statement.value)
    if target is None or value is None:
        return None
    edit = Edit(around.span(module, statement), f"{target}.copy_({value})")
    return Fix(Applicability.UNSAFE, "write in place", (edit,))


# -- plain names -----------------------------------------------------------------------------------------------------


def _of_names(engine: Engine, reach: Reach, surroundings: Surroundings) -> Iterator[_Rebinding]:
    """Names of the function (or module) that holds the region."""
    declaration = reach.entered.declaration
    region_end = around.last_line(declaration)
    read = {(owner, name) for context in reach.steps for owner, name in context.names_read}
    for owner, name in sorted(read, key=lambda pair: pair[1]):
        if isinstance(owner, LazyScope) and owner.function is not None:
            node: ast.AST = owner.function.node
            holder, module = owner.function, owner.module
        elif owner is declaration.module and declaration.holder is None:
            node, holder, module = declaration.module.tree, None, declaration.module
        else:
            continue
        scope = owner if isinstance(owner, LazyScope) else engine.module_scope(module)
        value = scope.lookup(name)
        if not _static_input(value):
            continue
        for function, statement, target in _bindings(module, holder, node, name):
            after = module is not declaration.module or getattr(statement, "lineno", 0) > region_end
            nested = function is not holder
            if not (after or nested) or not _binds_anew(target, statement, value):
                continue
            if _looks_up(node, statement, name):
                continue
            if surroundings.replayed_after(function, statement, node if not nested else None):
                yield _Rebinding(module, function, statement, target, Confidence.CERTAIN)


def _looks_up(node: ast.AST, statement: ast.AST, name: str) -> bool:
    """``graph, static = self.entries[key]`` where the capture has put ``static`` there: the same tensors again."""
    if not isinstance(statement, ast.Assign):
        return False
    kept = _container(statement.value)
    return kept is not None and any(
        isinstance(store, ast.Assign)
        and any(isinstance(target, ast.Subscript) and dotted_name(target.value) == kept for target in store.targets)
        and any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(store.value))
        for store in walk_own(node)
    )


def _container(value: ast.expr) -> str | None:
    """``entries`` of ``entries[key]`` and ``entries.get(key)``."""
    if isinstance(value, ast.Subscript):
        return dotted_name(value.value)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in ("get", "pop"):
        return dotted_name(value.func.value)
    return None


def _bindings(
    module: Module, holder: FunctionInfo | None, node: ast.AST, name: str
) -> Iterator[tuple[FunctionInfo | None, ast.AST, ast.expr]]:
    """Statements that bind ``name`` in a function itself, or in nested ones that declare it ``nonlocal``."""
    for statement in walk_own(node):
        for target in store_targets(statement):
            if _names(target, name):
                yield holder, statement, target
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inner = module.functions.get(id(statement))
            if inner is None:
                continue
            declared = any(
                isinstance(each, (ast.Nonlocal, ast.Global)) and name in each.names for each in walk_own(statement)
            )
            for deeper in walk_own(statement):
                for target in store_targets(deeper):
                    if _names(target, name) and (declared or isinstance(target, ast.Subscript)):
                        yield inner, deeper, target


def _names(target: ast.expr, name: str) -> bool:
    if isinstance(target, ast.Subscript):
        return isinstance(target.value, ast.Name) and target.value.id == name
    return isinstance(target, ast.Name) and target.id == name


# -- attributes ------------------------------------------------------------------------------------------------------


def _of_attributes(engine: Engine, reach: Reach, surroundings: Surroundings) -> Iterator[_Rebinding]:
    read: dict[tuple[Site, str], None] = {}
    stored: set[tuple[Site, str]] = set()
    # what the region itself runs is CG502's business, unless it replays, which captured code cannot
    entered = {context.function for context in reach.steps} - {reach.entered.declaration.holder}
    for context in reach.steps:
        for owner, name in context.attributes_read:
            if isinstance(owner, Site) and _outlives(owner):
                read[owner, name] = None
        for fact in context.stores.values():
            for option in options(fact.owner):
                if isinstance(option, Instance) and not fact.item and _outlives(option.site):
                    stored.add((option.site, fact.attribute))
                    if deep_confidence(fact.value) is not None:
                        read[option.site, fact.attribute] = None
    for site, name in sorted(read, key=lambda pair: (pair[0].cls.qualname, pair[1])):
        value = instances.of_instance(engine, Instance(site, exact=not site.generic), name)
        written = (site, name) in stored
        if not _static_input(value) and not written:
            continue
        if written and not surroundings.read_by_replay(name):
            continue  # nobody reads what the graph writes there
        for module, function, statement, target in _attribute_bindings(engine, site, name):
            if function is not None and (function in entered or surroundings.prepares(function, statement)):
                continue
            if function is not None and _overridden(engine, site, function):
                continue
            if function is not None and (_allocates(function, statement, target) or around.restores(function, target)):
                continue
            if not _binds_anew(target, statement, value) or not _is_tensor(engine, module, function, statement):
                continue
            confidence = surroundings.confidence(function)
            if confidence > Confidence.POSSIBLE:
                yield _Rebinding(module, function, statement, target, confidence, (site, name) if written else None)


def _overridden(engine: Engine, site: Site, function: FunctionInfo) -> bool:
    """A base's method that objects of the class never run: the class has its own, or own ones of all that call it."""

    def replaced(method: FunctionInfo) -> bool:
        owner = method.owner
        return (
            owner is not None
            and owner in engine.mro(site.cls)
            and hierarchy.find_method(engine, site.cls, method.name) is not method
        )

    callers = [holder for holder, _ in function.module.calls_named(function.name) if holder is not None]
    return replaced(function) or (function.owner is not None and bool(callers) and all(map(replaced, callers)))


def _outlives(site: Site) -> bool:
    """An object made in the region, or passed in for one call, is another one at the next call."""
    return site.lasting and not site.passed


def _allocates(function: FunctionInfo, statement: ast.AST, target: ast.expr) -> bool:
    """``if self.buffer is None: self.buffer = ...`` makes the tensor that a graph reads; it replaces none."""
    name = dotted_name(target)
    for node in walk_own(function.node, into_nested=True):
        if isinstance(node, ast.If) and name is not None:
            for side, body in ((True, node.body), (False, node.orelse)):
                if name in unset(node.test, side) and any(around.contains(each, statement) for each in body):
                    return True
    return False


def _attribute_bindings(
    engine: Engine, site: Site, name: str
) -> Iterator[tuple[Module, FunctionInfo | None, ast.AST, ast.expr]]:
    for module in engine.project.modules(engine.project.search.storing(name), _MAX_FILES):
        for function, statement, receiver in module.uses.attribute_stores.get(name, []):
            if _is_receiver(engine, module, function, receiver, site):
                for target in store_targets(statement):
                    if isinstance(target, ast.Attribute) and target.attr == name:
                        yield module, function, statement, target
        for function, statement, target in module.uses.attribute_items.get(name, []):
            if _is_receiver(engine, module, function, target.value.value, site):  # type: ignore[attr-defined]
                yield module, function, statement, target


def _is_receiver(engine: Engine, module: Module, function: FunctionInfo | None, receiver: ast.expr, site: Site) -> bool:
    scope = engine.function_scope(function, engine.receiver_of(function)) if function else engine.module_scope(module)
    owner = engine.evaluate_in(scope, receiver)
    for option in options(owner):
        if isinstance(option, Instance):
            if option.site is site:
                return True
            same = option.site.cls in engine.mro(site.cls) or site.cls in engine.mro(option.site.cls)
            if same and (option.site.generic or site.generic):
                return True
    return False


# -- what counts -----------------------------------------------------------------------------------------------------


def _static_input(value: Value | None) -> bool:
    """A tensor (or a container of them) that was there before the region."""
    return deep_confidence(value) not in (None, Confidence.POSSIBLE) or any(tensor.pinned for tensor in tensors(value))


def _binds_anew(target: ast.expr, statement: ast.AST, value: Value | None) -> bool:
    """Whether the statement binds another object: ``t += 1`` and ``t[i] = v`` on a tensor write in place."""
    if isinstance(target, ast.Subscript):
        holds_tensors = any(isinstance(option, (Mapping, Sequence)) for option in options(value))
        return holds_tensors and isinstance(statement, ast.Assign) and not isinstance(target.slice, ast.Slice)
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.op, ast.MatMult)
    return isinstance(statement, (ast.Assign, ast.AnnAssign, ast.For, ast.AsyncFor)) and (
        not isinstance(statement, ast.AnnAssign) or statement.value is not None
    )


def _is_tensor(engine: Engine, module: Module, function: FunctionInfo | None, statement: ast.AST) -> bool:
    """What is bound may be a tensor: it is not None, a number, or something else that is known."""
    value_node = getattr(statement, "value", None) or getattr(statement, "iter", None)
    if not isinstance(value_node, ast.expr):
        return True
    scope = engine.function_scope(function, engine.receiver_of(function)) if function else engine.module_scope(module)
    found = list(options(engine.evaluate_in(scope, value_node)))
    return any(
        isinstance(o, Unknown) or deep_confidence(o) is not None or any(True for _ in tensors(o)) for o in found
    ) or not all(isinstance(option, (Host, Instance, Sequence, Mapping, ExternalInstance)) for option in found)
