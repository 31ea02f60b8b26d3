"""The life of a graph as a whole: what it reads, where it is captured and kept, where it is replayed, what it gives.

``lives`` makes one ``Life`` for each region. The rules about what happens around capture and replay ask it:

- ``declaration``, ``holder``: the region, and the function that holds it; ``surroundings`` knows what prepares it
- ``reads``: the places (names, attributes) of what the region reads, with the places that these objects come from
- ``graph``: the places in which the graph, or what ``make_graphed_callables`` or ``torch.compile`` gave, is kept
- ``outputs``: the places that the region's own statements bind, the static outputs
- ``replays``: every call that replays the graph: ``graph.replay()`` itself (``depth`` 0), calls of a function that
  does it (``depth`` 1), calls of a function that does that, and calls of a graphed or compiled callable

A place is told by name and class, not by object: two runners of one class are one. Where the graph's own place is not
known, a replay in the same module counts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from capturelint.lifecycle import around
from capturelint.lifecycle.around import Surroundings
from capturelint.lifecycle.places import Origin, Origins, Place
from capturelint.project.bindings import ImportedName
from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import contains, store_targets, walk_all, walk_own
from capturelint.reach import Reach
from capturelint.regions.declaration import Declaration
from capturelint.values.domain import DeviceValue, DType, Function, Host, Value, options
from capturelint.values.engine import Engine
from capturelint.values.facts import span_of
from capturelint.values.lazy import LazyScope

_MAX_FILES = 30
#: how far the callers of what replays are followed
_MAX_DEPTH = 2
_MAX_MODULES = 40
_MAX_NAMES = 200
_REPLAY = "replay"


@dataclass(frozen=True, slots=True)
class Replay:
    """A call that replays a graph: ``function`` (None: module level) holds it, ``via`` is what it calls to do so."""

    module: Module
    function: FunctionInfo | None
    call: ast.Call
    depth: int = 0
    via: FunctionInfo | None = None


class Life:
    """One region's graph. Everything is worked out when first asked for."""

    def __init__(self, engine: Engine, reach: Reach, origins: Origins) -> None:
        self.engine = engine
        self.reach = reach
        self.origins = origins

    @property
    def declaration(self) -> Declaration:
        return self.reach.entered.declaration

    @property
    def holder(self) -> FunctionInfo | None:
        return self.declaration.holder

    @cached_property
    def surroundings(self) -> Surroundings:
        return around.of(self.engine, self.declaration)

    @cached_property
    def capture_calls(self) -> dict[int, ast.Call]:
        """The calls by which the region is captured, by their identity."""
        return {
            id(site.call): site.call
            for info in self.surroundings.capturing
            if info is not None
            for site in self.origins.callers(info)
        }

    @cached_property
    def entered(self) -> dict[FunctionInfo, None]:
        """The functions that the region itself runs, in the order of its calls."""
        start = self.reach.entered.context  # stands for the code that declares the region, unless that is a decorator
        decorated = id(self.declaration.node) in self.declaration.module.functions
        steps = self.reach.steps if decorated else [each for each in self.reach.steps if each is not start]
        left_out = self.holder if self.is_block else None
        return dict.fromkeys(each.function for each in steps if each.function not in (None, left_out))

    @cached_property
    def modules_around(self) -> list[Module]:
        """The modules of the code that captures, replays, or is captured: where its life can be told."""
        found: dict[Module, None] = {self.declaration.module: None}
        found.update((info.module, None) for info in self.surroundings.capturing if info is not None)
        found.update((replay.module, None) for replay in self.replays)
        for module in list(found):
            found.update((imported, None) for imported in self._imported_by(module))
        for info in self.entered:
            if len(found) >= _MAX_MODULES:
                break
            found[info.module] = None
        return list(found)

    def _imported_by(self, module: Module) -> Iterator[Module]:
        """The project's modules that a module imports names of: helpers that it hands its objects to."""
        project = self.engine.project
        module.looked.listed = module.looked.listed or len(module.names) >= _MAX_NAMES
        for definitions in islice(module.names.values(), _MAX_NAMES):
            for definition in definitions:
                if isinstance(definition, ImportedName):
                    path, _, _ = project.resolve_import(definition, module)
                    found = project.module_at(path) if path is not None else None
                    if found is not None:
                        yield found

    @property
    def is_block(self) -> bool:
        """Captured and replayed by hand, as against by ``make_graphed_callables`` or ``torch.compile``."""
        return self.declaration.body is not None

    @property
    def is_replayed_by_call(self) -> bool:
        """What is captured is called in place of the original: ``make_graphed_callables`` and compiled functions."""
        return self.declaration.compiled or self.declaration.kind == "make_graphed_callables"

    # -- where the graph is kept -------------------------------------------------------------------------------------

    @cached_property
    def graph(self) -> frozenset[Place]:
        """Where the graph, or the callable that replays it, is kept."""
        found: set[Place] = set()
        for node in self._graph_expressions():
            found |= self.origins.same(self.holder, self.declaration.module, node).places
        return frozenset(found | self._result_places())

    def _graph_expressions(self) -> Iterator[ast.expr]:
        node = self.declaration.node
        if isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                if isinstance(item.context_expr, ast.Call):
                    yield from item.context_expr.args[:1]
                    yield from (k.value for k in item.context_expr.keywords if k.arg and "graph" in k.arg)
                elif isinstance(item.context_expr, (ast.Name, ast.Attribute)):
                    yield item.context_expr
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            if isinstance(node.value.func, ast.Attribute):
                yield node.value.func.value

    def _result_places(self) -> set[Place]:
        """``fast = torch.compile(f, ...)``: what is called later on; ``model.compile(...)`` changes the model."""
        if not self.is_replayed_by_call:
            return set()
        node, module, holder = self.declaration.node, self.declaration.module, self.holder
        found: set[Place] = set()
        for function, statement in _statements(module, holder):
            value = getattr(statement, "value", None)
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and value is not None and contains(value, node):
                targets = store_targets(statement)
                index = self._position(node, len(targets))
                for target in targets if index is None else targets[index : index + 1]:
                    found |= self._place_of(function, module, target)
        return found

    def _position(self, node: ast.AST, count: int) -> int | None:
        """Which of several callables, graphed in one call, this region is."""
        given = node.args[0] if isinstance(node, ast.Call) and node.args else None
        if not isinstance(given, (ast.Tuple, ast.List)) or len(given.elts) != count:
            return None
        scope = self.engine.scope_of(self.holder, self.declaration.module)
        same = [i for i, e in enumerate(given.elts) if self.engine.evaluate_in(scope, e) == self.declaration.target]
        return same[0] if len(same) == 1 else None

    def _place_of(self, function: FunctionInfo | None, module: Module, target: ast.expr) -> set[Place]:
        if isinstance(target, ast.Name):
            return {Place(function if function is not None else module, target.id)}
        if isinstance(target, ast.Attribute):
            return set(self.origins.attribute(function, module, target))
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.expr):
            return self._place_of(function, module, target.value)
        return set()

    # -- what the region reads ---------------------------------------------------------------------------------------

    @cached_property
    def reads(self) -> frozenset[Place]:
        """Names and attributes that the region reads, and those that their objects come from or are a part of."""
        found: set[Place] = set()
        for context in self.reach.steps:
            for owner, name in context.names_read:
                if isinstance(owner, LazyScope):
                    found.add(Place(owner.function if owner.function is not None else owner.module, name))
                elif isinstance(owner, Module):
                    found.add(Place(owner, name))
            for site, name in context.attributes_read:
                cls = getattr(site, "cls", None)
                if isinstance(cls, ClassInfo):
                    found.add(self.origins.place_of(cls, name))
        for origin in {id(each): each for each in self._read_origins()}.values():
            found |= origin.places
        return frozenset(place for place in found if not _is_receiver(place))

    @cached_property
    def names_read(self) -> frozenset[str]:
        """What the places that the region reads are called: most statements speak of none of them."""
        return frozenset(place.name for place in self.reads)

    def _read_origins(self) -> Iterator[Origin]:
        """Where the names and attributes that the region's own code spells come from."""
        declaration = self.declaration
        nodes: list[tuple[FunctionInfo | None, Module, ast.AST]] = []
        if declaration.body is not None:
            nodes.extend((self.holder, declaration.module, each) for each in declaration.body)
            nodes.extend((info, info.module, info.node) for info in self.entered if self._is_own(info))
        elif isinstance(declaration.node, ast.Call):
            nodes.append((self.holder, declaration.module, declaration.node))
        for function, module, node in nodes:
            # a method of what another call gives is no place, and long chains of them would be evaluated link by link
            chained = {id(each.func) for each in walk_all(node) if isinstance(each, ast.Call) and _of_a_call(each.func)}
            for each in walk_all(node):
                if isinstance(each, (ast.Name, ast.Attribute)) and isinstance(each.ctx, ast.Load):
                    if id(each) not in chained:
                        yield self.origins.within(function, module, each)

    def _is_own(self, info: FunctionInfo) -> bool:
        """Whether a captured function belongs to the code that captures: its class, its module, a closure."""
        owner = around.owner_of(self.holder)
        if info.parent is not None:
            return True
        return around.owner_of(info) is owner and (owner is not None or info.module is self.declaration.module)

    # -- what it gives -----------------------------------------------------------------------------------------------

    @cached_property
    def outputs(self) -> frozenset[Place]:
        """The places that the region's own statements bind to something that may be a tensor, or hold some."""
        found: set[Place] = set()
        for statement in self.declaration.body or ():
            for node in (statement, *walk_own(statement)):
                for target in store_targets(node):
                    if self._may_be_tensor(target, node):
                        found |= self._place_of(self.holder, self.declaration.module, target)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                    if node.func.attr in ("append", "extend", "update", "setdefault"):
                        found |= self._place_of(self.holder, self.declaration.module, node.func.value)
        return frozenset(found)

    def _may_be_tensor(self, target: ast.expr, statement: ast.AST) -> bool:
        value: Value | None = None
        scope = self.reach.entered.scope
        if isinstance(target, ast.Name) and scope is not None:
            value = scope.ever.get(target.id)
        elif isinstance(getattr(statement, "value", None), ast.expr):
            value = self.reach.entered.context.values.get(span_of(statement.value))  # type: ignore[attr-defined]
        plain = (Host, DType, DeviceValue, Function)
        return value is None or not all(isinstance(option, plain) for option in options(value))

    def is_output(self, function: FunctionInfo | None, module: Module, node: ast.expr) -> bool:
        """Whether an expression may be a static output or a view of one, by where its object comes from."""
        origin = self.origins.same(function, module, node)
        if self.is_replayed_by_call:
            return any(id(replay.call) in origin.nodes for replay in self.replays)
        return not self.outputs.isdisjoint(origin.places)

    # -- replays -----------------------------------------------------------------------------------------------------

    @cached_property
    def replays(self) -> tuple[Replay, ...]:
        found: dict[int, Replay] = {}
        level = list(self._direct_calls() if self.is_replayed_by_call else self._direct_replays())
        for depth in range(_MAX_DEPTH + 1):
            functions = dict.fromkeys(replay.function for replay in level if id(replay.call) not in found)
            for replay in level:
                found.setdefault(id(replay.call), replay)
            level = [
                Replay(site.module, site.holder, site.call, depth + 1, info)
                for info in functions
                if info is not None and depth < _MAX_DEPTH
                for site in self.origins.callers(info)
            ]
        return tuple(found.values())

    def replays_in(self, function: FunctionInfo | None, module: Module) -> list[Replay]:
        """The replays that a function's own code (or a module's top level) makes."""
        return [each for each in self.replays if each.function is function and each.module is module]

    def _direct_replays(self) -> Iterator[Replay]:
        home = self.declaration.module
        files = self.engine.project.search.calling(_REPLAY)
        for module in dict.fromkeys((home, *self.engine.project.modules(files, _MAX_FILES))):
            for function, call in module.calls_named(_REPLAY):
                if isinstance(call.func, ast.Attribute) and self._is_this_graph(function, module, call.func.value):
                    yield Replay(module, function, call)

    def _is_this_graph(self, function: FunctionInfo | None, module: Module, receiver: ast.expr) -> bool:
        places = self.origins.same(function, module, receiver).places
        if places and self.graph:
            return not self.graph.isdisjoint(places)
        return module is self.declaration.module

    def _direct_calls(self) -> Iterator[Replay]:
        """Calls of what ``make_graphed_callables`` or ``torch.compile`` gave."""
        declaration = self.declaration
        decorated = declaration.module.functions.get(id(declaration.node))
        if decorated is not None:
            for site in self.origins.callers(decorated):
                yield Replay(site.module, site.holder, site.call)
            return
        results = self._result_places()
        for place in results:
            for module in self._modules_calling(place):
                for function, call in module.calls_named(place.name):
                    if isinstance(call.func, (ast.Name, ast.Attribute)) and not self._bound_anew(function, call):
                        if not results.isdisjoint(self.origins.same(function, module, call.func).places):
                            yield Replay(module, function, call)

    def _bound_anew(self, function: FunctionInfo | None, call: ast.Call) -> bool:
        """Whether the name that is called was bound to something else in between."""
        if function is None or function is not self.holder or not isinstance(call.func, ast.Name):
            return False
        name = call.func.id
        before = [
            node
            for node in walk_own(function.node)
            if isinstance(node, ast.Assign)
            and node.lineno < call.lineno
            and any(isinstance(target, ast.Name) and target.id == name for target in store_targets(node))
        ]
        last = max(before, key=lambda node: node.lineno, default=None)
        return last is not None and not contains(last.value, self.declaration.node)

    def _modules_calling(self, place: Place) -> list[Module]:
        if not isinstance(place.owner, ClassInfo):
            return [self.declaration.module]
        files = self.engine.project.search.calling(place.name)
        return list(dict.fromkeys((self.declaration.module, *self.engine.project.modules(files, _MAX_FILES))))


@dataclass(eq=False, slots=True)
class Lives:
    """The lives of all regions, with the answers that they share."""

    engine: Engine
    origins: Origins
    all: list[Life] = field(default_factory=list)


def lives(engine: Engine, reaches: list[Reach]) -> Lives:
    """One life for each region that has a graph of its own."""
    origins = Origins(engine)
    return Lives(engine, origins, [Life(engine, reach, origins) for reach in reaches])


def _statements(module: Module, holder: FunctionInfo | None) -> Iterator[tuple[FunctionInfo | None, ast.AST]]:
    node = holder.node if holder is not None else module.top
    return ((holder, each) for each in walk_own(node))


def _is_receiver(place: Place) -> bool:
    """``self`` is every object of a class, and says nothing of what the region reads."""
    owner = place.owner
    if not isinstance(owner, FunctionInfo) or owner.owner is None or owner.is_static or not owner.parameters():
        return False
    return owner.parameters()[0].arg == place.name


def _of_a_call(node: ast.expr) -> bool:
    """``make().method``."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call)
