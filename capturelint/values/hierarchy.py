"""Bases, subclasses and overrides."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.syntax import contains, last_name, walk_own
from capturelint.values.domain import ClassValue, External, ExternalInstance, Instance, Value, options

if TYPE_CHECKING:
    from capturelint.values.engine import Engine

_MAX_SUBCLASSES = 80


def linearize(engine: Engine, cls: ClassInfo) -> list[ClassInfo | str]:
    """The class and its bases, depth first, each once; third-party bases by dotted name."""
    order: list[ClassInfo | str] = [cls]
    for base in cls.node.bases:
        for option in options(_base_value(engine, cls, base)):
            if isinstance(option, ClassValue):
                order.extend(entry for entry in engine.mro(option.info) if entry not in order)
            elif isinstance(option, External) and option.path not in order:
                order.append(option.path)
    return order


def _base_value(engine: Engine, cls: ClassInfo, base: ast.expr) -> Value:

    scope = engine.module_scope(cls.module)
    if isinstance(base, ast.Subscript):
        base = base.value
    return engine.evaluate_in(scope, base)


def is_module(engine: Engine, cls: ClassInfo) -> bool:
    """Whether the class derives from ``torch.nn.Module`` (or a third-party class that looks like one)."""
    return any(isinstance(entry, str) and is_module_name(engine, entry) for entry in engine.mro(cls))


def is_module_object(engine: Engine, value: Value) -> bool:
    """Whether a value is a module, of the project's or of torch's, whichever of its alternatives holds."""
    found = options(value)
    return bool(found) and all(
        (isinstance(option, Instance) and is_module(engine, option.site.cls))
        or (isinstance(option, ExternalInstance) and option.cls in engine.ops.module_classes)
        for option in found
    )


def is_module_name(engine: Engine, dotted: str) -> bool:
    return (
        dotted in ("torch.nn.Module", "torch.nn.modules.module.Module")
        or dotted in engine.ops.module_classes
        or dotted.rpartition(".")[2]
        in ("Module", "LightningModule", "PreTrainedModel", "MegatronModule", "GraphableMegatronModule")
    )


def find_method(engine: Engine, cls: ClassInfo, name: str, *, after: ClassInfo | None = None) -> FunctionInfo | None:
    """The method that ``cls`` has or inherits; ``after`` starts behind that class, as ``super()`` does."""
    entries = engine.mro(cls)
    if after is not None and after in entries:
        entries = entries[entries.index(after) + 1 :]
    for entry in entries:
        if isinstance(entry, ClassInfo) and name in entry.methods:
            return entry.methods[name]
    return None


def subclasses(engine: Engine, cls: ClassInfo) -> list[ClassInfo]:
    """All project classes below ``cls``, found by name; empty when there are too many to tell."""
    if cls not in engine.subclasses:
        engine.subclasses[cls] = _find_subclasses(engine, cls)
    return engine.subclasses[cls]


def _find_subclasses(engine: Engine, cls: ClassInfo) -> list[ClassInfo]:
    found: list[ClassInfo] = []
    queue = [cls]
    while queue:
        current = queue.pop()
        for candidate in engine.project.subclasses_named(current.name):
            if candidate not in found and candidate is not cls and current in engine.mro(candidate):
                found.append(candidate)
                queue.append(candidate)
                if len(found) > _MAX_SUBCLASSES:
                    return []
    return found


def overrides(engine: Engine, cls: ClassInfo, name: str) -> list[FunctionInfo]:
    """Definitions of ``name`` in subclasses of ``cls``, but for those that nobody makes objects of."""
    known = engine.overrides.get((cls, name))
    if known is None:
        known = engine.overrides[cls, name] = _find_overrides(engine, cls, name)
    return known


def _find_overrides(engine: Engine, cls: ClassInfo, name: str) -> list[FunctionInfo]:
    defined = [each for each in subclasses(engine, cls) if name in each.methods]
    used = [each for each in defined if _is_used(engine, each)] if len(defined) > 1 else defined
    return list(dict.fromkeys(each.methods[name] for each in used or defined))


def _is_used(engine: Engine, cls: ClassInfo) -> bool:
    """Whether the project names a class anywhere but where it is defined: nobody makes an object of it otherwise."""
    if len(engine.project.search.mentioning(cls.name)) > 1:
        return True
    return cls.module.repeats(cls.name)


def breaks_out(engine: Engine, info: FunctionInfo) -> bool:
    """Whether a function ends the segment of a breakable capture: by its decorator, or wrapped below its class."""
    breaks = engine.vocabulary.breaks
    if not breaks or isinstance(info.node, ast.Lambda):
        return False
    if any(last_name(each) in breaks for each in info.decorators):
        return True
    return info.owner is not None and _assigned_outside(info.owner, info.name)


def _assigned_outside(cls: ClassInfo, name: str) -> bool:
    """``for each in (A, B): each.forward = wrapped(each.forward)`` at the top of the class's module."""
    if not cls.module.holds(f".{name} = "):  # indexing what a module stores costs far more than this look
        return False
    return any(
        holder is None and isinstance(receiver, ast.Name) and cls.name in _loop_or_name(cls, receiver, statement)
        for holder, statement, receiver in cls.module.uses.attribute_stores(name)
    )


def _loop_or_name(cls: ClassInfo, receiver: ast.Name, statement: ast.AST) -> set[str]:
    """The classes that a name at a module's top stands for: itself, or what a loop around the statement goes over."""
    for node in cls.module.top.body:
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name) and node.target.id == receiver.id:
            if contains(node, statement):
                return {each.id for each in ast.walk(node.iter) if isinstance(each, ast.Name)}
    return {receiver.id}


def implements(engine: Engine, info: FunctionInfo) -> bool:
    """Whether a base class of the project's only says that there is such a method: then one of those below runs."""
    return info.owner is not None and any(
        isinstance(entry, ClassInfo) and info.name in entry.methods and is_abstract(entry.methods[info.name])
        for entry in engine.mro(info.owner)[1:]
    )


def is_abstract(info: FunctionInfo) -> bool:
    """A method that only says what subclasses do: ``raise NotImplementedError``, ``...`` or ``@abstractmethod``."""
    if info.has_decorator("abstractmethod"):
        return True
    body = [s for s in info.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    if not body:
        return True
    return (
        len(body) == 1
        and isinstance(body[0], ast.Raise)
        and not any(isinstance(node, ast.Return) for node in walk_own(info.node))
    )
