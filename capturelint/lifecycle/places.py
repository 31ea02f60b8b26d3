"""Where objects are kept and where they come from: names, attributes and entries that may hold the same object.

The evaluator says what a value *is*; it doesn't say *which* tensor or graph it is. The rules about the life of a graph
have to know that, so this follows names backwards, without regard to order: what was assigned to them, which argument
a parameter got, which entry of a container was stored, what a function of the project returned. A container and its
entries are one place, save for the positions of a tuple: ``graph, out = self.graphs[key]`` keeps the two apart.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from capturelint.lifecycle import stores
from capturelint.lifecycle.callers import callers
from capturelint.project.bindings import AssignedName, ImportedName
from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import dotted_name, keyword_value, last_name
from capturelint.values.call_sites import CallSite
from capturelint.values.domain import UNKNOWN, BoundExternal, Function, Instance, Value, options
from capturelint.values.engine import Engine

#: an object that more expressions than these lead to is not followed further
_MAX_STEPS = 200
_MAX_DEPTH = 24

#: what gives an element (or all elements) of a container
_ELEMENTS = frozenset(("get", "pop", "popleft", "setdefault", "values", "copy", "__getitem__"))
#: what gives a module, its parts or its parameters; and methods that return the module itself
_PARTS = frozenset(
    (
        *("parameters", "named_parameters", "buffers", "named_buffers", "modules", "named_modules", "children"),
        *("named_children", "get_submodule", "get_parameter", "get_buffer", "state_dict", "items", "values", "get"),
        *("eval", "train", "cuda", "to", "half", "float", "double", "bfloat16", "requires_grad_", "cpu", "type"),
    )
)
_PASSING_BUILTINS = frozenset(("tuple", "list", "iter", "next", "reversed", "sorted", "set", "cast", "dict"))
#: methods of a tensor that may give the same memory, but mostly are called where they give other memory
_MOSTLY_COPY = frozenset(("to", "cpu", "cuda", "type", "type_as"))


@dataclass(frozen=True, slots=True)
class Place:
    """A local name (its function is the ``owner``), a global one (its module), or an attribute of a class's objects."""

    owner: FunctionInfo | Module | ClassInfo
    name: str


@dataclass(eq=False, repr=False, slots=True)
class Origin:
    """The places that an expression's object may be kept in, and the expressions that it may be the value of."""

    places: set[Place] = field(default_factory=set)
    nodes: dict[int, ast.AST] = field(default_factory=dict)
    steps: int = 0


@dataclass(eq=False, repr=False, slots=True)
class Origins:
    """Answers where objects come from. Answers are kept: many rules ask about the same few expressions."""

    engine: Engine
    _known: dict[tuple[FunctionInfo | None, Module, str | int, bool], Origin] = field(default_factory=dict)
    _stores: dict[Place, list[stores.Store]] = field(default_factory=dict)
    _returned: dict[FunctionInfo, list[ast.expr]] = field(default_factory=dict)
    _callers: dict[FunctionInfo, list[CallSite]] = field(default_factory=dict)

    def same(self, function: FunctionInfo | None, module: Module, node: ast.expr) -> Origin:
        """Where an expression's object, or the memory that it is a view of, comes from."""
        return self._answer(function, module, node, through=False)

    def within(self, function: FunctionInfo | None, module: Module, node: ast.expr) -> Origin:
        """Also all objects that it is a part of: ``pipe.model.layers[0].weight`` lies within ``pipe.model``."""
        return self._answer(function, module, node, through=True)

    def _answer(self, function: FunctionInfo | None, module: Module, node: ast.expr, *, through: bool) -> Origin:
        name = dotted_name(node)  # said again, a name means the same: the order of statements is not regarded
        key = (function, module, name if name is not None else id(node), through)
        if key not in self._known:
            walk = _Walk(self, through)
            walk.expression(function, module, node, ())
            self._known[key] = walk.found
        return self._known[key]

    def callers(self, info: FunctionInfo) -> list[CallSite]:
        if info not in self._callers:
            self._callers[info] = callers(self.engine, info)
        return self._callers[info]

    def stores(self, place: Place) -> list[stores.Store]:
        """What is put into an attribute."""
        if place not in self._stores:
            assert isinstance(place.owner, ClassInfo)
            self._stores[place] = stores.of_attribute(self.engine, place.owner, place.name)
        return self._stores[place]

    def returned(self, info: FunctionInfo) -> list[ast.expr]:
        if info not in self._returned:
            self._returned[info] = stores.returned(info)
        return self._returned[info]

    def attribute(self, function: FunctionInfo | None, module: Module, node: ast.Attribute) -> Iterator[Place]:
        """The places that ``receiver.name`` may mean, by the receiver's class."""
        value = self.engine.evaluate_in(self.engine.scope_of(function, module), node.value)
        for option in options(value):
            if isinstance(option, Instance):
                yield self.place_of(option.site.cls, node.attr)

    def callee(self, function: FunctionInfo | None, module: Module, node: ast.Call) -> Value:
        """What a call calls; not worked out for a tensor's method that the project defines nothing of the name of."""
        if isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if self.engine.ops.lookup(f"torch.Tensor.{name}") is not None:
                if not self.engine.project.search.defining(name):
                    return UNKNOWN
        return self.engine.evaluate_in(self.engine.scope_of(function, module), node.func)

    def place_of(self, cls: ClassInfo, name: str) -> Place:
        """An attribute belongs to the first class of the hierarchy that binds it."""
        bases = [each for each in self.engine.mro(cls) if isinstance(each, ClassInfo)]
        for base in reversed(bases):
            if base.attribute_stores(name) or name in base.assigned or name in base.annotations:
                return Place(base, name)
        return Place(cls, name)


Path = tuple[int, ...]


@dataclass(eq=False, repr=False, slots=True)
class _Walk:
    """One question. ``path`` is the position in a tuple that is asked for."""

    origins: Origins
    through: bool
    found: Origin = field(default_factory=Origin)
    seen: set[tuple[object, Path]] = field(default_factory=set)
    depth: int = 0

    @property
    def engine(self) -> Engine:
        return self.origins.engine

    def expression(self, function: FunctionInfo | None, module: Module, node: ast.AST | None, path: Path) -> None:
        if node is None or self.depth >= _MAX_DEPTH or self.found.steps >= _MAX_STEPS or (id(node), path) in self.seen:
            return
        self.seen.add((id(node), path))
        self.found.steps += 1
        self.found.nodes[id(node)] = node
        self.depth += 1
        self._expression(function, module, node, path)
        self.depth -= 1

    def _expression(self, function: FunctionInfo | None, module: Module, node: ast.AST, path: Path) -> None:
        def follow(*parts: ast.AST | None, at: Path = path) -> None:
            for part in parts:
                self.expression(function, module, part, at)

        if isinstance(node, ast.Name):
            self._name(function, module, node.id, path)
        elif isinstance(node, ast.Attribute):
            self._attribute(function, module, node, path)
        elif isinstance(node, (ast.Tuple, ast.List)):
            chosen = node.elts[path[0] : path[0] + 1] if path and isinstance(node, ast.Tuple) else node.elts
            follow(*chosen, at=path[1:])
        elif isinstance(node, ast.Dict):
            follow(*node.values)
        elif isinstance(node, ast.Subscript):
            index = node.slice.value if isinstance(node.slice, ast.Constant) else None
            follow(node.value, at=(index, *path) if isinstance(index, int) and index >= 0 else path)
        elif isinstance(node, ast.IfExp):
            follow(node.body, node.orelse)
        elif isinstance(node, ast.BoolOp):
            follow(*node.values)
        elif isinstance(node, (ast.NamedExpr, ast.Starred, ast.Await)):
            follow(node.value)
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            follow(node.elt)
        elif isinstance(node, ast.DictComp):
            follow(node.value)
        elif isinstance(node, ast.Call):
            self._call(function, module, node, path)

    # -- names -------------------------------------------------------------------------------------------------------

    def _name(self, function: FunctionInfo | None, module: Module, name: str, path: Path) -> None:
        holder = function
        while holder is not None:
            scope = self.engine.scope_of(holder, module)
            if scope.binds(name):
                break
            holder = holder.parent
        if holder is None:
            self._global(module, name, path)
            return
        self.found.places.add(Place(holder, name))
        if (Place(holder, name), path) in self.seen:
            return
        self.seen.add((Place(holder, name), path))
        for binding in scope.code.bindings.get(name, []):
            stores.follow_binding(binding, path, lambda node, at: self.expression(holder, module, node, at))
        if name in scope.code.parameters and name not in self.engine.receiver_of(holder):
            for site in self.origins.callers(holder):
                for given in argument(holder, site, name):
                    self.expression(site.holder, site.module, given, path)

    def _global(self, module: Module, name: str, path: Path) -> None:
        place = Place(module, name)
        if (place, path) in self.seen:
            return
        self.seen.add((place, path))
        self.found.places.add(place)
        for definition in module.names.get(name, ()):
            if isinstance(definition, AssignedName):
                for at in stores.paths_to_name(definition.target, name):
                    self.expression(None, module, definition.value, (*at, *path))
            elif isinstance(definition, ImportedName):
                target, other, _ = self.engine.project.resolve_import(definition, module)
                home = self.engine.project.module_at(target) if target is not None else None
                if home is not None and other is not None:
                    self._global(home, other, path)
        for info in module.uses.globals(name):
            for value, at in stores.assigned_to(info.node, name):
                self.expression(info, module, value, (*at, *path))

    # -- attributes --------------------------------------------------------------------------------------------------

    def _attribute(self, function: FunctionInfo | None, module: Module, node: ast.Attribute, path: Path) -> None:
        spec = self.engine.ops.lookup(f"torch.Tensor.{node.attr}")
        if self.through or (spec is not None and spec.view and spec.attribute):
            self.expression(function, module, node.value, ())
        for place in self.origins.attribute(function, module, node):
            self._kept(place, path)

    def _kept(self, place: Place, path: Path) -> None:
        if (place, path) in self.seen:
            return
        self.seen.add((place, path))
        self.found.places.add(place)
        for store in self.origins.stores(place):
            at = path
            if store.entry and len(path) > 1:
                at = path[1:]  # the first position chooses the entry
            self.expression(store.function, store.module, store.value, (*store.path, *at))

    # -- calls -------------------------------------------------------------------------------------------------------

    def _call(self, function: FunctionInfo | None, module: Module, node: ast.Call, path: Path) -> None:
        name = last_name(node.func)
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        if name == "partial" or (receiver is None and name in _PASSING_BUILTINS):
            named = node.keywords if name in ("partial", "dict") else []
            for given in (*(node.args if name == "partial" else node.args[-1:]), *(each.value for each in named)):
                self.expression(function, module, given, path if name != "partial" else ())
            return
        if receiver is None and name == "getattr" and node.args:
            if self.through:
                self.expression(function, module, node.args[0], ())
            return
        for each, at in stores.iterated(node, path):
            self.expression(function, module, each, at)
        callee = self.origins.callee(function, module, node)
        functions = [option for option in options(callee) if isinstance(option, Function)]
        for option in functions:
            for value in self.origins.returned(option.info):
                self.expression(option.info, option.info.module, value, path)
        if functions:
            return
        if receiver is not None and self._gives_part(name, callee):
            self.expression(function, module, receiver, path if name not in _PARTS else ())
        elif self.through and not any(isinstance(option, Instance) for option in options(callee)):
            for argument_node in (*node.args, *(keyword.value for keyword in node.keywords)):
                self.expression(function, module, argument_node, ())

    def _gives_part(self, name: str, callee: Value) -> bool:
        """Whether a method gives its object, a view of it, or something in it."""
        if name in _ELEMENTS or (self.through and name in _PARTS):
            return True
        if any(isinstance(o, BoundExternal) and not o.path.startswith("torch.Tensor.") for o in options(callee)):
            return False
        spec = self.engine.ops.lookup(f"torch.Tensor.{name}")
        in_place = name.endswith("_") and not name.endswith("__")
        return spec is not None and name not in _MOSTLY_COPY and (spec.view or in_place)


def argument(info: FunctionInfo, site: CallSite, name: str) -> Iterator[ast.expr]:
    """What a call passes for a parameter."""
    given = keyword_value(site.call, name)
    if given is not None:
        yield given
        return
    node = info.head.args
    names = [each.arg for each in (*node.posonlyargs, *node.args)]
    offset = 1 if site.bound and not info.is_static and info.owner is not None else 0
    if name in names:
        position = names.index(name) - offset - (len(site.partial.arguments) if site.partial is not None else 0)
        if 0 <= position < len(site.call.args):
            chosen = site.call.args[position]
            yield chosen.value if isinstance(chosen, ast.Starred) else chosen
        elif position >= 0:
            yield from (each.value for each in site.call.args if isinstance(each, ast.Starred))
    elif node.vararg is not None and node.vararg.arg == name:
        yield from site.call.args[max(len(names) - offset, 0) :]
    elif node.kwarg is not None and node.kwarg.arg == name:
        yield from (keyword.value for keyword in site.call.keywords if keyword.arg not in names)
