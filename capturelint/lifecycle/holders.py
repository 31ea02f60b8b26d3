"""CG501: the object whose tensors the graph reads is replaced whole: ``self.state = State(8)`` after the capture.

The new object's constructor makes tensors of its own, while the graph goes on with those of the old one. Where the
capture itself binds the attribute to an object of its own, another one there is for code that runs no graph.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from capturelint.findings import Around
from capturelint.lifecycle import renamed, story
from capturelint.lifecycle.life import Life
from capturelint.lifecycle.moments import Moments
from capturelint.lifecycle.places import Place
from capturelint.model import Confidence
from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import walk_all, walk_own
from capturelint.values import hierarchy
from capturelint.values.changing import constructs
from capturelint.values.domain import ClassValue, Instance, options
from capturelint.values.effects import deep_confidence
from capturelint.values.engine import Engine


@dataclass(frozen=True, slots=True)
class _Replacement:
    """``target = State(8)``: ``place`` is what is bound."""

    function: FunctionInfo | None
    module: Module
    statement: ast.Assign
    target: ast.expr
    place: Place


@dataclass(eq=False, repr=False, slots=True)
class ReplacedHolders:
    """The rule. Which tensors a class makes, and where its objects are put, is looked up once for all graphs."""

    _tensors: dict[ClassInfo, frozenset[str]] = field(default_factory=dict)
    _replacements: dict[tuple[Module, ClassInfo], list[_Replacement]] = field(default_factory=dict)

    def find(self, life: Life, moments: Moments) -> Iterator[Around]:
        if not life.is_block:
            return
        read: dict[ClassInfo, set[str]] = {}
        for context in life.reach.steps:
            for owner, name in context.attributes_read:
                if isinstance(cls := getattr(owner, "cls", None), ClassInfo):
                    read.setdefault(cls, set()).add(name)
        given = _given_whole(life)
        for cls in sorted({*read, *given}, key=lambda each: each.qualname):
            replaced = self._replaced(life, cls)
            made = self._made_by(life.engine, cls) if replaced else frozenset()
            if made and (cls in given or not made.isdisjoint(read.get(cls, ()))):
                yield from self._judged(life, moments, cls, replaced)

    def _judged(self, life: Life, moments: Moments, cls: ClassInfo, replaced: list[_Replacement]) -> Iterator[Around]:
        for each in replaced:
            if each.place not in life.reads or not self._only_made(life, each.place, cls):
                continue
            kept = isinstance(each.place.owner, ClassInfo)
            if kept and renamed.is_harmless(life, each.function, each.module, each.statement, each.target):
                continue
            sure = moments.between(each.function, each.module, each.statement, lasts=kept)
            if sure is not None:
                yield _report(life, each, min(sure, Confidence.LIKELY, key=lambda c: c.rank))

    def _made_by(self, engine: Engine, cls: ClassInfo) -> frozenset[str]:
        if cls not in self._tensors:
            self._tensors[cls] = frozenset(_made_by(engine, cls))
        return self._tensors[cls]

    def _replaced(self, life: Life, cls: ClassInfo) -> list[_Replacement]:
        found: list[_Replacement] = []
        for module in life.modules_around:
            key = (module, cls)
            if key not in self._replacements:
                self._replacements[key] = list(_replaced(life, module, cls))
            found.extend(self._replacements[key])
        return found

    def _only_made(self, life: Life, place: Place, cls: ClassInfo) -> bool:
        """Whether all that binds the place makes an object there, none of which is the capture's own."""
        if not isinstance(place.owner, ClassInfo):
            return True
        return all(
            not store.entry
            and (store.function not in life.surroundings.capturing or _constructs(store.function))
            and _makes(life.engine, store.function, store.module, store.value, cls)
            for store in life.origins.stores(place)
        )


def _report(life: Life, each: _Replacement, confidence: Confidence) -> Around:
    text = each.module.segment(each.target, 48)
    return story.finding(
        life, "CG501", each.function, each.module, each.target,
        f"`{text}` is another object with tensors of its own, but the graph captured at {story.where(life)} reads "
        "those of the old one",
        "the graph keeps the old object's tensors", confidence,
        help=f"keep the object that `{text}` is, and write into its tensors in place (`zero_()`, `copy_(...)`)",
    )  # fmt: skip


def _given_whole(life: Life) -> set[ClassInfo]:
    """The classes of the objects that the block's own calls are given."""
    engine, scope = life.engine, life.engine.scope_of(life.holder, life.declaration.module)
    return {
        option.site.cls
        for statement in life.declaration.body or ()
        for node in walk_all(statement)
        if isinstance(node, ast.Call)
        for given in (*node.args, *(keyword.value for keyword in node.keywords))
        if isinstance(given, (ast.Name, ast.Attribute))
        for option in options(engine.evaluate_in(scope, given))
        if isinstance(option, Instance)
    }


def _made_by(engine: Engine, cls: ClassInfo) -> Iterator[str]:
    """The attributes that the constructor of a class, neither a record nor a module, binds to tensors made there."""
    init = hierarchy.find_method(engine, cls, "__init__")
    if init is None or cls.is_dataclass or hierarchy.is_module(engine, cls):
        return
    scope = engine.scope_of(init, init.module)
    for node in walk_own(init.node):
        if isinstance(node, ast.Assign) and not isinstance(node.value, (ast.Name, ast.Attribute, ast.Subscript)):
            names = [target.attr for target in node.targets if isinstance(target, ast.Attribute)]
            if names and deep_confidence(engine.evaluate_in(scope, node.value)) not in (None, Confidence.POSSIBLE):
                yield from names


def _replaced(life: Life, module: Module, cls: ClassInfo) -> Iterator[_Replacement]:
    """Where an object of the class is made and put where one was, outside constructors."""
    made = {id(call): function for function, call in module.calls_named(cls.name)}
    for function in dict.fromkeys(made.values()):
        if _constructs(function):
            continue
        for node in walk_own(function.node if function is not None else module.top):
            if isinstance(node, ast.Assign) and id(node.value) in made:
                if _makes(life.engine, function, module, node.value, cls):
                    for target in node.targets:
                        for place in _places(life, function, module, target):
                            yield _Replacement(function, module, node, target, place)


def _places(life: Life, function: FunctionInfo | None, module: Module, target: ast.expr) -> Iterator[Place]:
    if isinstance(target, ast.Attribute):
        yield from life.origins.attribute(function, module, target)
    elif isinstance(target, ast.Name) and function is not None:
        yield Place(function, target.id)


def _makes(engine: Engine, function: FunctionInfo | None, module: Module, value: ast.expr, cls: ClassInfo) -> bool:
    """``State(8)``; None there stands for no object yet."""
    if isinstance(value, ast.Constant):
        return value.value is None
    if not isinstance(value, ast.Call):
        return False
    callee = engine.evaluate_in(engine.scope_of(function, module), value.func)
    found = list(options(callee))
    return bool(found) and all(isinstance(option, ClassValue) and option.info is cls for option in found)


def _constructs(function: FunctionInfo | None) -> bool:
    return function is not None and constructs(function, set())
