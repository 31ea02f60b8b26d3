"""What puts objects into names, attributes and containers: the statements that the places of a graph are told from."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import keyword_value, last_name, store_targets, walk_own
from capturelint.values.domain import ClassValue, Instance, Value, element_of, options
from capturelint.values.engine import Engine, item_at
from capturelint.values.lazy import Binding, LazyScope

_MAX_FILES = 12
_ADDING = frozenset(("append", "appendleft", "add", "insert", "setdefault", "put", "put_nowait", "extend", "update"))
_RECORD_BASES = frozenset(("NamedTuple", "BaseModel", "Struct", "Protocol"))
Path = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Store:
    """``value`` (its element at ``path``) is put into an attribute, or as an entry into the container in it."""

    module: Module
    function: FunctionInfo | None
    node: ast.AST
    value: ast.expr
    path: Path = ()
    entry: bool = False


def of_attribute(engine: Engine, cls: ClassInfo, name: str) -> list[Store]:
    """Everything in the project that stores into ``name`` of the class's objects."""
    files = engine.project.search.storing(name)
    modules = [cls.module, *engine.project.modules(files, _MAX_FILES)]
    found: list[Store] = []
    for module in dict.fromkeys(modules):
        found.extend(_of_class(engine, cls, _stores_in(engine, module, name)))
    found.extend(_added(engine, cls, name))
    if cls.is_dataclass or any(last_name(base) in _RECORD_BASES for base in cls.node.bases):
        found.extend(_fields(engine, cls, name))
    return found


def is_object_of(
    engine: Engine, function: FunctionInfo | None, module: Module, receiver: ast.expr, cls: ClassInfo
) -> bool:
    """Whether an expression may be an object of the class, of one that it derives from or that derives from it."""
    return any(
        other is cls or other in engine.mro(cls) or cls in engine.mro(other)
        for other in _classes_at(engine, function, module, receiver)
    )


def _classes_at(
    engine: Engine, function: FunctionInfo | None, module: Module, receiver: ast.expr
) -> Iterator[ClassInfo]:
    for option in options(engine.evaluate_in(engine.scope_of(function, module), receiver)):
        if isinstance(option, Instance):
            yield option.site.cls


@dataclass(frozen=True, slots=True)
class _Stored:
    """The stores of one module into attributes of one name, by the class of the object: its own, and all its bases."""

    own: dict[ClassInfo, list[int]]
    derived: dict[ClassInfo, list[int]]
    stores: list[list[Store]]


def _of_class(engine: Engine, cls: ClassInfo, stored: _Stored) -> Iterator[Store]:
    """In the order of the source: those into objects of the class, of its bases, and of what derives from it."""
    places = set(stored.derived.get(cls, ()))
    for base in engine.mro(cls):
        if not isinstance(base, str):
            places.update(stored.own.get(base, ()))
    for place in sorted(places):
        yield from stored.stores[place]


def _stores_in(engine: Engine, module: Module, name: str) -> _Stored:
    """Looked up once for all classes that have an attribute of that name: many do in a file of many graphs."""
    return engine.remembered(("stores", module, name), lambda: _work_out_stores(engine, module, name))


def _work_out_stores(engine: Engine, module: Module, name: str) -> _Stored:
    stored = _Stored({}, {}, [])

    def add(function: FunctionInfo | None, receiver: ast.expr, stores: list[Store]) -> None:
        for cls in dict.fromkeys(_classes_at(engine, function, module, receiver)):
            stored.own.setdefault(cls, []).append(len(stored.stores))
            for base in engine.mro(cls):
                if not isinstance(base, str):
                    stored.derived.setdefault(base, []).append(len(stored.stores))
        stored.stores.append(stores)

    for function, statement, receiver in module.uses.attribute_stores(name):
        add(function, receiver, list(_assigned(module, function, statement, name)))
    for function, statement, target in module.uses.attribute_items(name):
        value = getattr(statement, "value", None)
        holder = target.value.value if isinstance(target.value, ast.Attribute) else None
        if isinstance(value, ast.expr) and holder is not None:
            add(function, holder, [Store(module, function, statement, value, entry=True)])
    return stored


def _assigned(module: Module, function: FunctionInfo | None, statement: ast.AST, name: str) -> Iterator[Store]:
    value, targets = _sides(statement)
    if value is None:
        return
    for target in targets:
        for path in _paths(target, lambda part: isinstance(part, ast.Attribute) and part.attr == name):
            yield Store(module, function, statement, value, path)


def _sides(statement: ast.AST) -> tuple[ast.expr | None, list[ast.expr]]:
    """What an assignment or a loop takes its values from, and its targets."""
    value = getattr(statement, "value", None) or getattr(statement, "iter", None)
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return value if isinstance(value, ast.expr) else None, [each for each in targets if each is not None]


def _added(engine: Engine, cls: ClassInfo, name: str) -> Iterator[Store]:
    """``self.graphs.append((graph, out))``, in the class's own module."""
    for word in _ADDING:
        for function, call in cls.module.calls_named(word):
            owner = call.func.value if isinstance(call.func, ast.Attribute) else None
            if isinstance(owner, ast.Attribute) and owner.attr == name and call.args:
                if is_object_of(engine, function, cls.module, owner.value, cls):
                    yield Store(cls.module, function, call, call.args[-1], entry=True)


def _fields(engine: Engine, cls: ClassInfo, name: str) -> Iterator[Store]:
    """``Entry(graph=graph, output=out)``: what the fields of a record are made with."""
    fields = list(cls.annotations)
    modules = [cls.module, *engine.project.modules(engine.project.search.calling(cls.name), _MAX_FILES)]
    for module in dict.fromkeys(modules):
        for function, call in module.calls_named(cls.name):
            value = keyword_value(call, name)
            if value is None and name in fields and fields.index(name) < len(call.args):
                value = call.args[fields.index(name)]
            if value is None:
                continue
            callee = engine.evaluate_in(engine.scope_of(function, module), call.func)
            if any(isinstance(option, ClassValue) and option.info is cls for option in options(callee)):
                yield Store(module, function, call, value)


# -- names -----------------------------------------------------------------------------------------------------------


def follow_binding(binding: Binding, path: Path, follow: Callable[[ast.AST, Path], None]) -> None:
    """Hands over the expressions that a binding takes its object from."""
    node = binding.node
    if binding.kind == "iterate" and isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        for element in node.elts:  # each in its turn: the path leads into them
            follow(element, (*binding.path, *path))
    elif binding.kind in ("value", "enter", "iterate"):
        follow(node, (*binding.path, *path))
    elif binding.kind == "mutate-item" and isinstance(node, ast.Assign):
        follow(node.value, path)
    elif binding.kind == "mutate-append" and isinstance(node, ast.Call) and node.args:
        follow(node.args[-1], path)


def paths_to_name(target: ast.expr, name: str) -> list[Path]:
    """Where in a target a name stands: ``a, (b, c)`` has ``c`` at ``(1, 1)``."""
    return list(_paths(target, lambda part: isinstance(part, ast.Name) and part.id == name))


def assigned_to(function: ast.AST, name: str) -> Iterator[tuple[ast.expr, Path]]:
    """What a function's own plain assignments bind a name to."""
    for node in walk_own(function):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in store_targets(node)):
            for target in node.targets:
                for path in paths_to_name(target, name):
                    yield node.value, path


def _paths(target: ast.AST | None, wanted: Callable[[ast.AST], bool], path: Path = ()) -> Iterator[Path]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for index, part in enumerate(target.elts):
            yield from _paths(part, wanted, (*path, index))
    elif isinstance(target, ast.Starred):
        yield from _paths(target.value, wanted, path)
    elif target is not None and wanted(target):
        yield path


def bound_to(engine: Engine, scope: LazyScope, statement: ast.AST, target: ast.expr) -> Value | None:
    """What an assignment or a loop binds one of its targets to; None where nothing says what that is."""
    node, targets = _sides(statement)
    if node is None:
        return None
    path = next((path for root in targets for path in _paths(root, lambda part: part is target)), ())
    value = engine.evaluate_in(scope, node)
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        value = element_of(value)
    starred = any(isinstance(each, ast.Starred) for root in targets for each in ast.walk(root))
    for index in path:
        value = element_of(value) if starred else item_at(value, index)
    return value


# -- calls -----------------------------------------------------------------------------------------------------------


def returned(info: FunctionInfo) -> list[ast.expr]:
    """The expressions that a function returns or yields."""
    if isinstance(info.node, ast.Lambda):
        return [info.node.body]
    return [
        node.value
        for node in walk_own(info.node)
        if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)) and node.value is not None
    ]


def iterated(call: ast.Call, path: Path) -> Iterator[tuple[ast.expr, Path]]:
    """What ``d.items()``, ``enumerate(xs)`` and ``zip(xs, ys)`` give at a position of their tuples."""
    name = last_name(call.func)
    if not path:
        return
    if name == "items" and isinstance(call.func, ast.Attribute) and path[0] == 1:
        yield call.func.value, path[1:]
    elif name == "enumerate" and call.args and path[0] == 1:
        yield call.args[0], path[1:]
    elif name[:1].isupper() and path[0] < len(call.args):
        yield call.args[path[0]], path[1:]  # a named tuple, which is unpacked
    elif name == "zip" and path[0] < len(call.args):
        yield call.args[path[0]], path[1:]
