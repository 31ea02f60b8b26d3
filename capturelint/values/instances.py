"""Attributes of the project's classes and objects: methods, and the join of everything that is stored there."""

from __future__ import annotations

import ast
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from capturelint.model import Confidence
from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.syntax import keyword_value, last_name, walk_own
from capturelint.values import annotated, arguments, changing, hierarchy, identity, writes
from capturelint.values.domain import (
    MISSING,
    UNKNOWN,
    BoundExternal,
    ClassValue,
    Device,
    ExternalInstance,
    Function,
    Host,
    Instance,
    Mapping,
    Partial,
    Sequence,
    Tensor,
    Union,
    Unknown,
    Value,
    changed,
    element_of,
    is_none,
    join,
    options,
)
from capturelint.values.frame import Arguments
from capturelint.values.lazy import LazyScope, with_element
from capturelint.values.sites import Site

if TYPE_CHECKING:
    from capturelint.values.engine import Engine

_CONSTRUCTORS = ("__init__", "__post_init__", "__new__", "setup", "__attrs_post_init__")
_MAX_EXTERNAL_FILES = 12


def of_class(engine: Engine, cls: ClassInfo, name: str) -> Value:
    """``Class.name``."""
    for entry in engine.mro(cls):
        if not isinstance(entry, ClassInfo):
            if name == "apply" and entry.endswith("autograd.Function"):
                return BoundExternal("torch.autograd.Function.apply", ClassValue(cls))
            continue
        if name in entry.methods:
            method = entry.methods[name]
            return Function(method, bound=ClassValue(cls) if method.is_class_method else None)
        if name in entry.nested:
            return ClassValue(entry.nested[name])
        if name in entry.assigned:
            value = _class_level(engine, entry, name)
            if value is not None:
                bases = [base for base in engine.mro(cls) if isinstance(base, str)]
                if any(base.rpartition(".")[2] in ("Enum", "IntEnum", "Flag", "IntFlag", "StrEnum") for base in bases):
                    return Host(const=f"{cls.qualname}.{name}", kind="enum")
                return value
    return UNKNOWN


def _class_level(engine: Engine, cls: ClassInfo, name: str) -> Value | None:
    scope = engine.module_scope(cls.module)
    node = cls.assigned.get(name)
    if node is not None:
        value = engine.evaluate_in(scope, node)
        if is_none(value) and cls.is_dataclass:  # `plan: Plan | None = None`: whoever makes one may well set it
            return join(UNKNOWN, value)
        return value
    return annotated.value_of(engine, cls.annotations.get(name), scope, name)


# -- instances -------------------------------------------------------------------------------------------------------


def of_instance(engine: Engine, value: Instance, name: str) -> Value:
    """``object.name``: a method, or the join of everything that the project stores there."""
    site = value.site
    method = hierarchy.find_method(engine, site.cls, name)
    if method is not None:
        return _method(engine, value, method, name)
    result = engine.solver.answer(("attribute", site, site.version, name), lambda: _stored(engine, value, name))
    if (result is None or isinstance(result, Unknown)) and not value.exact:
        found = _in_subclasses(engine, value, name)
        return found if found is not None else UNKNOWN
    if result is not None and site.chosen:
        return _as_chosen(result)  # a specification that is chosen names a class that is
    return result if result is not None else UNKNOWN


def _in_subclasses(engine: Engine, value: Instance, name: str) -> Value | None:
    """A method that a base calls and only its subclasses have."""
    found: list[Value] = [
        Function(each, bound=engine.generic_instance(each.owner) if not each.is_static else None, virtual=True)
        for each in hierarchy.overrides(engine, value.site.cls, name)
        if each.owner is not None and not each.is_property
    ]
    if not found:
        return None
    return found[0] if len(found) == 1 else Union(tuple(found))


def _method(engine: Engine, value: Instance, method: FunctionInfo, name: str) -> Value:
    if method.is_property:
        return engine.host_call(Function(method, bound=value), Arguments())
    found = [Function(method, bound=value if not method.is_static else None)]
    if not value.exact:
        others = hierarchy.overrides(engine, value.site.cls, name)
        if others and hierarchy.is_abstract(method):
            found = []
        for other in others:
            assert other.owner is not None
            found.append(Function(other, bound=engine.generic_instance(other.owner) if not other.is_static else None))
    return found[0] if len(found) == 1 else Union(tuple(replace(each, virtual=True) for each in found))


def _stored(engine: Engine, value: Instance, name: str) -> Value:
    site = value.site
    found: list[Value] = []
    outside: list[tuple[FunctionInfo, ast.AST]] = []
    entries = [entry for entry in engine.mro(site.cls) if isinstance(entry, ClassInfo)]
    for cls in entries:
        for method, statement in cls.attribute_stores(name):
            scope = method_scope(engine, value, method)
            if not scope.runs(scope.code.on_machines.get(id(statement))):
                continue
            stored = _bound_by(engine, scope, statement, name)
            if stored is not None:
                if not isinstance(statement, ast.AugAssign):  # which keeps what the attribute is
                    found.append(stored)
                if method.name not in _CONSTRUCTORS:
                    outside.append((method, statement))
    for cls in entries:
        if name in cls.assigned:
            stored = _field(engine, site, cls, name)
            if stored is not None and not (found and isinstance(stored, Unknown)):
                found.append(stored)
            break
    if not found:
        found.extend(_from_elsewhere(engine, value, name))
    if not found:
        return _inherited(engine, value, name)
    result: Value | None = join(*found)
    for cls in entries:
        for method, call in cls.attribute_mutations(name):
            result = _mutated(engine, method_scope(engine, value, method), result, call)
            grows = changing.of_growth(engine, method, name, call)
            if grows is not None:
                result = join(*(changed(o, grows) if isinstance(o, Sequence) else o for o in options(result)))
    return _marked(engine, value, name, result if result is not None else UNKNOWN, outside)


def method_scope(engine: Engine, value: Instance, method: FunctionInfo) -> LazyScope:
    """The lazily evaluated names of a method, with ``self`` bound, and constructor arguments where it is the one."""
    site = value.site
    if not method.parameters() or method.is_static:
        return engine.function_scope(method)
    bound: dict[str, Value] = {method.parameters()[0].arg: value}
    if method.name == "__init__" and not site.generic:
        bound = init_arguments(engine, value, method)
    return engine.function_scope(method, bound)


def init_arguments(engine: Engine, value: Instance, init: FunctionInfo) -> dict[str, Value]:
    """The arguments of a base class's ``__init__`` are those of the ``super().__init__`` call that runs it."""
    site = value.site
    first = hierarchy.find_method(engine, site.cls, "__init__")
    if first is init or first is None:
        return arguments.constructor_arguments(engine, site, init)
    scope = engine.function_scope(first, arguments.constructor_arguments(engine, site, first))
    for node in walk_own(first.node):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "__init__":
            from capturelint.values.given import arguments_of

            given = arguments_of(node, engine.frame_for(scope))
            if isinstance(node.func.value, ast.Name):  # Base.__init__(self, ...)
                return arguments.bind(engine, Function(init), given)
            return arguments.bind(engine, Function(init, bound=value), given)
    return {init.parameters()[0].arg: value}


def _bound_by(engine: Engine, scope: LazyScope, statement: ast.AST, name: str) -> Value | None:
    """What a store statement binds to the attribute."""
    if isinstance(statement, ast.Call):  # register_buffer and the like
        if len(statement.args) < 2:
            return None
        stored = engine.evaluate_in(scope, statement.args[1])
        return _as_registered(stored)
    if isinstance(statement, ast.AnnAssign):
        if statement.value is not None:
            stored = engine.evaluate_in(scope, statement.value)
            declared = annotated.value_of(engine, statement.annotation, engine.module_scope(scope.module), name)
            if declared is not None and (isinstance(stored, (Unknown, Sequence, Mapping)) or is_none(stored)):
                return join(declared, stored) if is_none(stored) else declared
            return stored
        return annotated.value_of(engine, statement.annotation, engine.module_scope(scope.module), name)
    if isinstance(statement, ast.AugAssign):
        stored = engine.evaluate_in(scope, statement.value)
        return stored if isinstance(stored, Tensor) else Host() if not isinstance(stored, (Sequence, Mapping)) else None
    if isinstance(statement, ast.Assign):
        found = [
            _at_path(engine, scope, statement.value, path)
            for target in statement.targets
            for path in _paths_to(target, name, ())
        ]
        return join(*found) if found else None
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return element_of(engine.evaluate_in(scope, statement.iter))
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        from capturelint.values.contexts import entered

        item = next((i for i in statement.items if i.optional_vars is not None), statement.items[0])
        return entered(engine.evaluate_in(scope, item.context_expr), engine.frame_for(scope))
    return None


def _paths_to(target: ast.expr, name: str, path: tuple[int, ...]) -> list[tuple[int, ...]]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return [found for i, part in enumerate(target.elts) for found in _paths_to(part, name, (*path, i))]
    if isinstance(target, ast.Starred):
        return _paths_to(target.value, name, path)
    return [path] if isinstance(target, ast.Attribute) and target.attr == name else []


def _at_path(engine: Engine, scope: LazyScope, node: ast.expr, path: tuple[int, ...]) -> Value:
    from capturelint.values.engine import item_at

    if path and isinstance(node, (ast.Tuple, ast.List)) and path[0] < len(node.elts):
        return _at_path(engine, scope, node.elts[path[0]], path[1:])
    value = engine.evaluate_in(scope, node)
    for index in path:
        value = item_at(value, index)
    return value


def _as_registered(value: Value) -> Value:
    """A buffer or parameter moves with its module, so wherever it was made it is on the device when captured."""
    found = [
        replace(option, device=Device.DEVICE, confidence=Confidence.LIKELY, stored=True, why="a module's buffer")
        if isinstance(option, Tensor)
        else option
        for option in options(value)
    ]
    return join(*found)


def _field(engine: Engine, site: Site, cls: ClassInfo, name: str) -> Value | None:
    """A dataclass field takes the constructor's argument; other class-level names their value or annotation."""
    bases = [entry for entry in engine.mro(cls) if isinstance(entry, str)]
    record = cls.is_dataclass or any(base.rpartition(".")[2] in ("NamedTuple", "BaseModel", "Struct") for base in bases)
    # what is made of such classes is only possible: it is not entered, and what it would keep says nothing, otherwise
    if record and site.generic and engine.enters_possible and _says_what_to_build(engine, cls, name):
        return _given_anywhere(engine, site, cls, name)
    if not record or site.generic:
        return _class_level(engine, cls, name)
    names = _positional_fields(engine, site.cls)
    position = names.index(name) if name in names else None
    if name in site.keywords:
        return site.keywords[name]
    if position is not None and position < len(site.arguments):
        return site.arguments[position]
    default = cls.assigned.get(name)
    factory = None
    if isinstance(default, ast.Call):
        factory = keyword_value(default, "default_factory")
    if factory is not None:
        scope = engine.module_scope(cls.module)
        declared = annotated.value_of(engine, cls.annotations.get(name), scope, name)
        if identity.is_identified(declared):  # such an object is all about where it was made
            return engine.evaluate_in(scope, ast.copy_location(ast.Call(factory, [], []), factory))
        return declared
    return _class_level(engine, cls, name)


#: how annotations say that a field holds a class or a description of one, for others to make objects of
_BUILDING = ("type", "Type", "ModuleSpec")


def _says_what_to_build(engine: Engine, cls: ClassInfo, name: str) -> bool:
    annotation = cls.annotations.get(name)
    if annotation is not None and any(
        isinstance(node, (ast.Name, ast.Attribute)) and last_name(node) in _BUILDING for node in ast.walk(annotation)
    ):
        return True
    return any(isinstance(option, ClassValue) for option in options(_class_level(engine, cls, name)))


def _given_anywhere(engine: Engine, site: Site, cls: ClassInfo, name: str) -> Value | None:
    """A field of a record that is not in view: its default, and what the project's own calls of the class give it.

    ``Submodules(attention=Attention)`` in a table of layers says what a layer is made of.
    """
    from capturelint.values import call_sites

    names = _positional_fields(engine, site.cls)
    position = names.index(name) if name in names else None
    found = [_class_level(engine, cls, name)]
    for given in call_sites.constructions(engine, site.cls):
        value = given.get(position, name)
        found.extend(o for o in options(value) if isinstance(o, (ClassValue, Function, Instance, Partial)))
    known = [each for each in found if each is not None]
    return _as_chosen(join(*known)) if known else None


def _as_chosen(value: Value) -> Value:
    """Classes among which an option chooses: each may be captured, and none of them need be."""
    for option in options(value):
        if isinstance(option, Instance):
            option.site.chosen = True
    return join(*(replace(o, chosen=True) if isinstance(o, ClassValue) else o for o in options(value)))


def _positional_fields(engine: Engine, cls: ClassInfo) -> list[str]:
    return [
        each
        for entry in reversed(engine.mro(cls))
        if isinstance(entry, ClassInfo)
        for each in entry.annotations
        if each in entry.assigned
    ]


def _mutated(engine: Engine, scope: LazyScope, value: Value | None, node: ast.AST) -> Value | None:
    if isinstance(node, ast.Assign):
        stored = engine.evaluate_in(scope, node.value)
        several = any(isinstance(t, ast.Subscript) and isinstance(t.slice, ast.Slice) for t in node.targets)
        return with_element(value, element_of(stored) if several else stored)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        added = engine.evaluate_in(scope, node.args[-1])
        if node.func.attr in ("extend", "update"):
            added = element_of(added)
        if isinstance(value, ExternalInstance):
            items = join(value.argument("modules"), Sequence("list", None, added))
            return ExternalInstance(value.cls, (("modules", items),))
        return with_element(value, added)
    return value


def _from_elsewhere(engine: Engine, value: Instance, name: str) -> list[Value]:
    """Stores from outside the class: ``runner.metadata = ...`` where ``runner`` is such an object."""
    found: list[Value] = []
    for module in engine.project.modules(engine.project.search.storing(name), _MAX_EXTERNAL_FILES):
        for holder, statement, receiver in module.uses.attribute_stores(name):
            if isinstance(receiver, ast.Name) and receiver.id in ("self", "cls"):
                continue
            scope = engine.scope_of(holder, module)
            owner = engine.evaluate_in(scope, receiver)
            if any(isinstance(o, Instance) and _related(engine, o, value) for o in options(owner)):
                stored = _bound_by(engine, scope, statement, name)
                if stored is not None:
                    found.append(stored)
    return found


def _related(engine: Engine, owner: Instance, value: Instance) -> bool:
    return (
        owner.site is value.site
        or owner.site.cls in engine.mro(value.site.cls)
        or (value.site.cls in engine.mro(owner.site.cls))
    )


def _inherited(engine: Engine, value: Instance, name: str) -> Value:
    """An attribute of a third-party base class, or one that nothing is known of."""
    for entry in engine.mro(value.site.cls):
        if isinstance(entry, str):
            spec = engine.ops.lookup(f"{entry}.{name}")
            if spec is not None:
                return BoundExternal(f"{entry}.{name}", value)
            if hierarchy.is_module_name(engine, entry):
                if engine.ops.lookup(f"torch.nn.Module.{name}") is not None:
                    return BoundExternal(f"torch.nn.Module.{name}", value)
            elif entry.endswith("autograd.Function") and name == "apply":
                return BoundExternal("torch.autograd.Function.apply", ClassValue(value.site.cls))
    return BoundExternal(f"?.{name}", value) if name in ("__class__",) else Unknown()


def _marked(
    engine: Engine, owner: Instance, name: str, value: Value, outside: list[tuple[FunctionInfo, ast.AST]]
) -> Value:
    """Tensors stored in attributes existed before the region; host values set outside construction can change."""
    site = owner.site
    is_module = hierarchy.is_module(engine, site.cls)
    fleeting = site.of_one_call or (site.passed and site.cls.is_dataclass)
    marked: list[Value] = []
    for option in options(value):
        if isinstance(option, Instance):
            option.site.held = True
        if isinstance(option, Tensor):
            option = replace(option, stored=True)
        if isinstance(option, ExternalInstance) and option.cls == "torch.nn.Parameter" and is_module:
            option = Tensor(device=Device.DEVICE, confidence=Confidence.LIKELY, stored=True)
        if site.varies is not None:
            option = changed(option, site.varies)
        marked.append(option if fleeting else _as_state(engine, owner, name, option, outside))
    return join(*marked)


def _as_state(
    engine: Engine, owner: Instance, name: str, value: Value, outside: list[tuple[FunctionInfo, ast.AST]]
) -> Value:
    """What an attribute holds, with the reasons why another pass may find something else there."""
    if isinstance(value, Host) and not value.is_none:
        change = changing.of_attribute(engine, name, chain(outside, writes.from_elsewhere(engine, owner, name)))
    elif isinstance(value, Tensor) and value.device is Device.HOST:
        change = changing.of_attribute(engine, name, chain(outside, writes.into_tensor(engine, owner, name)))
    elif isinstance(value, Mapping):
        return _items_as_state(engine, owner, name, value)
    else:
        return value
    return changed(value, change) if change is not None else value


def _items_as_state(engine: Engine, owner: Instance, name: str, value: Mapping) -> Value:
    """Each entry of a dictionary has the reasons of the writes to its own key, or to keys that are not known."""
    found = list(writes.into_container(engine, owner, name))
    if not any(isinstance(item, Host) for _, item in value.items) or not found:
        return value
    items: list[tuple[object, Value]] = []
    for key, item in value.items:
        change = changing.of_attribute(engine, name, [write for at, write in found if at is MISSING or at == key])
        items.append((key, changed(item, change) if change is not None else item))
    return replace(value, items=tuple(items))
