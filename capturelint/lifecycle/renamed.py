"""CG501: an input that the capture knows by another name, or by a part of it, is rebound under its own.

``args = (self.ids[:n],)``, ``pt = self.pt[:4]``, ``capture(model, self.ids)``, ``partial(step, self.x)``: the region
says nothing of ``self.ids``, yet it reads that tensor's memory. So the objects that the region's own names stand for
are followed back to where they are kept, and what binds these places anew between capture and replay is reported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.findings import Around
from capturelint.lifecycle import around, container_entries, eager_arm, looked_up, story
from capturelint.lifecycle.container_entries import Binding
from capturelint.lifecycle.life import Life
from capturelint.lifecycle.moments import Moments
from capturelint.lifecycle.places import Place
from capturelint.model import Confidence
from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import contains, dotted_name, store_targets, walk_all, walk_own
from capturelint.values import instances
from capturelint.values.changing import IN_PLACE
from capturelint.values.domain import Tensor, Value, options
from capturelint.values.effects import deep_confidence
from capturelint.values.engine import Engine
from capturelint.values.lazy import LazyScope

_MAX_PLACES = 60


def find(life: Life, moments: Moments) -> Iterator[Around]:
    if not life.is_block:
        return
    spelled, inputs = _spelled(life), _inputs(life)
    attributes = {place for place in inputs if isinstance(place.owner, ClassInfo)}
    yield from looked_up.find(life, moments, inputs)
    for place in sorted(inputs, key=lambda each: (each.owner.name, each.name))[:_MAX_PLACES]:
        kept = isinstance(place.owner, ClassInfo)
        # a name in a function that gets a kept input anew is no other tensor: `slots = self.tables.fill(n)`
        read = spelled | {place} if kept else spelled | {place} | attributes
        for each in _bindings(life, place):
            if each.function in life.entered or not _puts_another(life, read, place, each):
                continue
            if kept and is_harmless(life, each.function, each.module, each.statement, each.target):
                continue
            sure = moments.between(each.function, each.module, each.statement, lasts=kept)
            if sure is not None:
                yield _report(life, each, min(sure, Confidence.LIKELY, key=lambda c: c.rank))
    for entry in container_entries.rebound(life, moments, inputs):
        yield _report(life, entry, Confidence.LIKELY)


def _report(life: Life, binding: Binding, confidence: Confidence) -> Around:
    text, where = binding.module.segment(binding.target, 48), story.where(life)
    message = f"`{text}` is bound to another tensor, but the graph captured at {where} reads the old one"
    help = f"write into the tensor that the graph reads: `{text}.copy_(...)`"
    return story.finding(
        life, "CG501", binding.function, binding.module, binding.target, message, "the graph keeps the old tensor",
        confidence, help=help,
    )  # fmt: skip


# -- what the region is given ----------------------------------------------------------------------------------------


def _inputs(life: Life) -> set[Place]:
    """The places whose objects, or views of them, the region's own code names."""
    found: set[Place] = set()
    for function, module, node in _named(life):
        found |= life.origins.same(function, module, node).places
    for function, node in _record_fields(life):
        found |= life.origins.same(function, function.module, node).places
    return {place for place in found - life.outputs if not isinstance(place.owner, Module)}


def _spelled(life: Life) -> set[Place]:
    """The places that the region's own code speaks of."""
    found: set[Place] = set()
    for function, module, node in _named(life):
        if isinstance(node, ast.Attribute):
            found.update(life.origins.attribute(function, module, node))
        elif isinstance(node, ast.Name) and function is not None:
            found.add(Place(function, node.id))
    return found


def _named(life: Life) -> Iterator[tuple[FunctionInfo | None, Module, ast.expr]]:
    """Names and attributes in the block, and what is read there of enclosing functions."""
    declaration = life.declaration
    for statement in declaration.body or ():
        methods: set[ast.AST] = set()  # of what a call gives: `x.abs().sum()` names no attribute that is kept
        for node in walk_all(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if isinstance(node.func.value, ast.Call):
                    methods.add(node.func)
            elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
                if node not in methods:
                    yield life.holder, declaration.module, node
    for context in life.reach.steps:
        for owner, name in context.names_read:
            if isinstance(owner, LazyScope) and owner.function is not None and context.function is not None:
                if context.function.parent is owner.function:
                    yield owner.function, owner.module, ast.Name(name, ast.Load())


def _record_fields(life: Life) -> Iterator[tuple[FunctionInfo, ast.expr]]:
    """What a function that captures makes a record of, where the region reads that field."""
    read: dict[ClassInfo, set[str]] = {}
    for context in life.reach.steps:
        for owner, name in context.attributes_read:
            cls = getattr(owner, "cls", None)
            if isinstance(cls, ClassInfo) and cls.is_dataclass:
                read.setdefault(cls, set()).add(name)
    for cls, names in read.items():
        for module in dict.fromkeys(info.module for info in life.surroundings.capturing):
            for function, call in module.calls_named(cls.name):
                if function is not None and function in life.surroundings.capturing:
                    given = [*zip(cls.annotations, call.args, strict=False)]
                    given.extend((keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg)
                    yield from ((function, value) for name, value in given if name in names)


# -- what binds it anew ----------------------------------------------------------------------------------------------


def _bindings(life: Life, place: Place) -> Iterator[Binding]:
    if isinstance(place.owner, ClassInfo):
        if not _is_runner(life, place.owner):
            return  # of other objects there may be many, and which one was captured is not known
        for store in life.origins.stores(place):
            if store.entry or store.path or not isinstance(store.node, ast.Assign):
                continue
            for target in store.node.targets:
                if isinstance(target, ast.Attribute) and target.attr == place.name:
                    yield Binding(store.function, store.module, store.node, target, store.value)
    elif isinstance(place.owner, FunctionInfo):
        for function in (place.owner, *_that_share(place)):
            for node in function.acts:
                if isinstance(node, ast.Assign):
                    for target in store_targets(node):
                        if isinstance(target, ast.Name) and target.id == place.name and target in node.targets:
                            yield Binding(function, function.module, node, target, node.value)


def _is_runner(life: Life, cls: ClassInfo) -> bool:
    """A class whose own methods capture, or hand what they keep to what captures."""
    owners = {around.owner_of(info) for info in life.surroundings.capturing}
    owners |= {
        around.owner_of(site.holder) for info in life.surroundings.capturing for site in life.origins.callers(info)
    }
    mro = life.engine.mro
    return any(owner is not None and (cls in mro(owner) or owner in mro(cls)) for owner in owners)


def _that_share(place: Place) -> Iterator[FunctionInfo]:
    """Functions within, that bind the name of the one around them."""
    assert isinstance(place.owner, FunctionInfo)
    for info in place.owner.module.inner_functions(place.owner):
        if any(isinstance(node, ast.Nonlocal) and place.name in node.names for node in walk_own(info.node)):
            yield info


def _puts_another(life: Life, read: set[Place], place: Place, each: Binding) -> bool:
    """Whether what is bound is a tensor, and not one that the graph reads anyway."""
    value = life.engine.evaluate_in(life.engine.scope_of(each.function, each.module), each.value)
    found = list(options(value))
    tensors = all(isinstance(option, Tensor) for option in found) or _calls_tensor_method(life.engine, each.value)
    if container_entries.holds_tensors(life, place):
        tensors = container_entries.is_another(each.value)
    elif not _was_tensor(life.engine, place):
        return False
    if not found or not tensors or _fed_otherwise(life, place, each):
        return False
    return read.isdisjoint(life.origins.same(each.function, each.module, each.value).places)


def _calls_tensor_method(engine: Engine, node: ast.expr) -> bool:
    """``batch.to("cuda")``, of whatever ``batch`` is."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and engine.ops.lookup(f"torch.Tensor.{node.func.attr}") is not None
    )


def _fed_otherwise(life: Life, place: Place, each: Binding) -> bool:
    """``static = x``, later ``x = new; static.copy_(x)``: the tensor has another name, by which it is filled."""
    name, function = dotted_name(each.target), each.function
    root = function.node if function is not None else each.module.top
    for node in walk_own(root):
        filled: ast.expr | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in IN_PLACE:
            filled = node.func.value
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            filled = node.targets[0].value
        if filled is None or dotted_name(filled) == name:
            continue
        if place in life.origins.same(function, each.module, filled).places:
            return True
    return False


def is_harmless(
    life: Life, function: FunctionInfo | None, module: Module, statement: ast.AST, target: ast.expr
) -> bool:
    """Whether an attribute is bound before the capture, where no graph is used, on demand, or for a while."""
    if function is None:
        return False
    if life.surroundings.prepares(function, statement) or around.restores(function, target):
        return True
    return eager_arm.without_graph(life, module, function, statement) or _on_demand(function, statement, target)


def _on_demand(function: FunctionInfo, statement: ast.AST, target: ast.expr) -> bool:
    """``if self.ids is None: self.ids = ...``"""
    name = dotted_name(target)
    return any(
        isinstance(node, ast.If)
        and any(dotted_name(part) == name for part in walk_all(node.test))
        and any(contains(inner, statement) for inner in (*node.body, *node.orelse))
        for node in walk_own(function.node)
    )


def _was_tensor(engine: Engine, place: Place) -> bool:
    if isinstance(place.owner, ClassInfo):
        value: Value | None = instances.of_instance(engine, engine.generic_instance(place.owner), place.name)
    else:
        assert isinstance(place.owner, FunctionInfo)
        value = engine.scope_of(place.owner, place.owner.module).lookup(place.name)
    return deep_confidence(value) not in (None, Confidence.POSSIBLE)
