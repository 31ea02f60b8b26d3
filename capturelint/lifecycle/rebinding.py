"""CG501: a name that the graph reads is bound to another tensor around replay.

What the region read, by name and by attribute, is compared with every statement that binds the same name or attribute
in code that runs after capture. Code that prepares the capture, or captures anew, may bind what it likes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from capturelint.findings import Around
from capturelint.lifecycle import around, eager_arm, region_stores, stores, story
from capturelint.lifecycle.life import Life
from capturelint.lifecycle.moments import Moments
from capturelint.model import Confidence, Related
from capturelint.passes.unit import Support
from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import contains, dotted_name, store_targets, walk_own
from capturelint.values import hierarchy, instances
from capturelint.values.domain import (
    ExternalInstance,
    Host,
    Instance,
    Mapping,
    Sequence,
    Tensor,
    Unknown,
    Value,
    is_none,
    options,
    tensors,
)
from capturelint.values.effects import deep_confidence
from capturelint.values.engine import Engine
from capturelint.values.lazy import LazyScope
from capturelint.values.memo import unset
from capturelint.values.sites import Site

_MAX_FILES = 20
_BINDING = (ast.Assign, ast.AnnAssign, ast.For, ast.AsyncFor, ast.With, ast.AsyncWith, ast.NamedExpr)


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


def find(life: Life, moments: Moments) -> Iterator[Around]:
    """Every rebinding of what the region reads."""
    if not life.is_block:
        return
    for rebinding in (*_of_names(life, moments), *_of_attributes(life, moments)):
        yield _report(life, rebinding)
        if rebinding.written is not None:
            elsewhere = (rebinding.module.display, around.function_line(rebinding.statement))
            support = Support(min(rebinding.confidence, Confidence.LIKELY), ())
            yield from region_stores.undone(*rebinding.written, elsewhere, support, [life.reach])


def _report(life: Life, rebinding: _Rebinding) -> Around:
    from capturelint.fixes.in_place import filled

    module, target = rebinding.module, rebinding.target
    text = module.segment(target, 48)
    return story.finding(
        life,
        "CG501",
        rebinding.function,
        module,
        target,
        f"`{text}` is bound to another tensor, but the graph captured at {story.where(life)} reads the old one",
        "the graph keeps the old tensor",
        rebinding.confidence,
        help=f"write into the tensor that the graph reads: `{text}.copy_(...)`",
        related=(
            *_made_at(life, rebinding),
            story.captured_at(life, "captured with the tensor bound before"),
            *story.replayed_at(life, rebinding.function),
        ),
        fix=filled(module, getattr(rebinding.function, "node", None), rebinding.statement, target),
    )


def _made_at(life: Life, rebinding: _Rebinding) -> tuple[Related, ...]:
    """Where what the graph reads was bound first: in a constructor, or before the region."""
    target = rebinding.target
    if not isinstance(target, ast.Attribute):
        return ()
    for place in life.origins.attribute(rebinding.function, rebinding.module, target):
        assert isinstance(place.owner, ClassInfo)
        for method, statement in place.owner.attribute_stores(place.name):
            if method is not rebinding.function and not isinstance(statement, ast.AugAssign):
                return (Related(method.module.display, around.function_line(statement), "made here"),)
    return ()


# -- plain names -----------------------------------------------------------------------------------------------------


def _of_names(life: Life, moments: Moments) -> Iterator[_Rebinding]:
    """Names of the function (or module) that holds the region."""
    engine, reach, surroundings = life.engine, life.reach, life.surroundings
    declaration = life.declaration
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
            later = nested and moments.between(function, module, statement, lasts=True) is not None
            if later or surroundings.replayed_after(function, statement, node if not nested else None):
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
        if isinstance(statement, ast.NamedExpr) and statement.target.id == name:
            yield holder, statement, statement.target
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


def _of_attributes(life: Life, moments: Moments) -> Iterator[_Rebinding]:
    engine, reach, surroundings = life.engine, life.reach, life.surroundings
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
        # what a module's attribute holds may be made after its construction; other objects' fields are for one batch
        late = hierarchy.is_module(engine, site.cls) and all(
            isinstance(option, Unknown) or is_none(option) for option in options(value)
        )
        if not _static_input(value) and not written and not late:
            continue
        if written and not surroundings.read_by_replay(name):
            continue  # nobody reads what the graph writes there
        for module, function, statement, target in _attribute_bindings(life, site, name):
            if isinstance(target, ast.Attribute) and _is_property(engine, site, name):
                continue  # its setter says what becomes of the tensor
            if function is not None and (function in entered or surroundings.prepares(function, statement)):
                continue
            if function is not None and _overridden(engine, site, function):
                continue
            if function is not None and (_allocates(function, statement, target) or around.restores(function, target)):
                continue
            if not _binds_anew(target, statement, value) or not _is_tensor(engine, module, function, statement, target):
                continue
            if eager_arm.without_graph(life, module, function, statement):
                continue
            if late and not _makes_tensor(engine, module, function, statement):
                continue  # what the graph reads is made elsewhere, if it is a tensor at all
            confidence = _confidence(life, moments, module, function, statement)
            if confidence > Confidence.POSSIBLE:
                yield _Rebinding(module, function, statement, target, confidence, (site, name) if written else None)


def _confidence(
    life: Life, moments: Moments, module: Module, function: FunctionInfo | None, statement: ast.AST
) -> Confidence:
    """How sure it is that a statement runs between capture and replay: by its function, else by who calls it."""
    near = life.surroundings.confidence(function)
    if near > Confidence.POSSIBLE:
        return near
    owner = around.owner_of(function)
    if owner is not None and not hierarchy.is_module(life.engine, owner) and not _is_called_beside(life, function):
        return near  # of other objects than modules there are many, and which one is captured is not known
    sure = moments.between(function, module, statement, lasts=True)
    return min(sure, Confidence.LIKELY, key=lambda c: c.rank) if sure is not None else near


def _is_called_beside(life: Life, function: FunctionInfo | None) -> bool:
    """Whether a script that captures outside of any function calls it there too."""
    declaration = life.declaration
    return (
        function is not None
        and declaration.holder is None
        and any(holder is None for holder, _ in declaration.module.calls_named(function.name))
    )


def _is_property(engine: Engine, site: Site, name: str) -> bool:
    method = hierarchy.find_method(engine, site.cls, name)
    return method is not None and bool(getattr(method.node, "decorator_list", None))


def _overridden(engine: Engine, site: Site, function: FunctionInfo) -> bool:
    """A base's method that objects of the class never run: the class has its own, or own ones of all that call it."""

    def replaced(method: FunctionInfo) -> bool:
        owner = method.owner
        return (
            owner is not None
            and owner in engine.mro(site.cls)
            and (found := hierarchy.find_method(engine, site.cls, method.name)) is not method
            and (found is None or found.owner is not owner)  # a property's getter and setter have one name
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
                if name in unset(node.test, side) and any(contains(each, statement) for each in body):
                    return True
    return False


def _attribute_bindings(
    life: Life, site: Site, name: str
) -> Iterator[tuple[Module, FunctionInfo | None, ast.AST, ast.expr]]:
    engine = life.engine
    for module in _modules_storing(life, site, name):
        for function, statement, receiver in module.uses.attribute_stores(name):
            if _is_receiver(engine, module, function, receiver, site):
                for target in store_targets(statement):
                    if isinstance(target, ast.Attribute) and target.value is receiver:
                        yield module, function, statement, target
        for function, statement, target in module.uses.attribute_items(name):
            if _is_receiver(engine, module, function, target.value.value, site):  # type: ignore[attr-defined]
                yield module, function, statement, target


def _modules_storing(life: Life, site: Site, name: str) -> list[Module]:
    """Where the attribute may be bound; of a name that many files bind only the class's own and the graph's."""
    engine = life.engine
    files = engine.project.search.storing(name)
    if len(files) <= _MAX_FILES:
        return engine.project.modules(files)
    near = (cls.module for cls in engine.mro(site.cls) if isinstance(cls, ClassInfo))
    return list(dict.fromkeys((*near, life.declaration.module)))


def _is_receiver(engine: Engine, module: Module, function: FunctionInfo | None, receiver: ast.expr, site: Site) -> bool:
    scope = engine.scope_of(function, module)
    owner = engine.evaluate_in(scope, receiver)
    for option in options(owner):
        if isinstance(option, Instance):
            if option.site is site:
                return True
            same = option.site.cls in engine.mro(site.cls) or site.cls in engine.mro(option.site.cls)
            if option.site.passed and site.local and site.cls.is_dataclass:
                continue  # one of many records that functions make: which one comes in here is not known
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
        is_view = isinstance(target.slice, ast.Slice) and any(True for _ in tensors(value))
        return holds_tensors and isinstance(statement, ast.Assign) and not is_view
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.op, ast.MatMult)
    return isinstance(statement, _BINDING) and (not isinstance(statement, ast.AnnAssign) or statement.value is not None)


def _makes_tensor(engine: Engine, module: Module, function: FunctionInfo | None, statement: ast.AST) -> bool:
    """Whether a statement assigns what surely is a tensor."""
    if not isinstance(statement, ast.Assign):
        return False
    found = list(options(engine.evaluate_in(engine.scope_of(function, module), statement.value)))
    return bool(found) and all(isinstance(option, Tensor) for option in found)


def _is_tensor(
    engine: Engine, module: Module, function: FunctionInfo | None, statement: ast.AST, target: ast.expr
) -> bool:
    """What is bound may be a tensor: it is not None, a number, or something else that is known."""
    value = stores.bound_to(engine, engine.scope_of(function, module), statement, target)
    if value is None:
        return True
    found = list(options(value))
    return any(
        isinstance(o, Unknown) or deep_confidence(o) is not None or any(True for _ in tensors(o)) for o in found
    ) or not all(isinstance(option, (Host, Instance, Sequence, Mapping, ExternalInstance)) for option in found)
