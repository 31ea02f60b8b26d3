"""CG501 where no plain assignment says so: ``setattr``, ``vars()``, ``update()``, ``.data =``, ``set_()``, aliases."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from capturelint.findings import Around
from capturelint.lifecycle import may_rebind, story
from capturelint.lifecycle.life import Life
from capturelint.lifecycle.moments import Moments
from capturelint.lifecycle.places import Place
from capturelint.model import Confidence
from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import last_name
from capturelint.values import hierarchy
from capturelint.values.domain import Instance, Mapping, Sequence, Tensor, Unknown, Value, options
from capturelint.values.effects import deep_confidence
from capturelint.values.engine import Engine


@dataclass(frozen=True, slots=True)
class _Store:
    """A statement that binds ``owner.name``, an entry of ``container``, or other memory behind ``tensor``."""

    node: ast.AST
    owner: ast.expr | None = None
    name: str = ""
    container: ast.expr | None = None
    tensor: ast.expr | None = None


@dataclass(eq=False, repr=False, slots=True)
class IndirectRebinding:
    """The rule; what a module holds of such statements is looked up once for all graphs."""

    _stores: dict[Module, list[tuple[FunctionInfo | None, _Store]]] = field(default_factory=dict)

    def find(self, life: Life, moments: Moments) -> Iterator[Around]:
        if not life.is_block:
            return
        for module in life.modules_around:
            for function, store in self._of_module(life.engine, module):
                if function in life.entered or not _is_read(life, function, module, store):
                    continue
                lasts = not _is_own_local(life, function, module, store)
                sure = moments.between(function, module, store.node, lasts=lasts)
                if sure is None:
                    continue
                yield _report(life, function, module, store, min(sure, Confidence.LIKELY, key=lambda c: c.rank))

    def _of_module(self, engine: Engine, module: Module) -> list[tuple[FunctionInfo | None, _Store]]:
        if module not in self._stores:
            self._stores[module] = [
                (function, store)
                for function, nodes in may_rebind.code_of(engine, module)
                for node in nodes
                for store in _stores(node)
            ]
        return self._stores[module]


def _report(life: Life, function: FunctionInfo | None, module: Module, store: _Store, confidence: Confidence) -> Around:
    text = module.segment(store.node, 48)
    where = story.where(life)
    if store.tensor is not None:
        subject = module.segment(store.tensor, 48)
        message = f"`{text}` puts other memory behind `{subject}`, but the graph captured at {where} reads the old one"
        help = f"write into the tensor that the graph reads: `{subject}.copy_(...)`"
    else:
        message = f"`{text}` binds another tensor, but the graph captured at {where} goes on reading the old one"
        help = "write into the tensor that the graph reads: `static_in.copy_(new)`"
    return story.finding(
        life, "CG501", function, module, store.node, message, "the graph keeps the old tensor", confidence, help=help
    )


# -- what may rebind -------------------------------------------------------------------------------------------------


def _stores(node: ast.AST) -> Iterator[_Store]:
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.BitOr):
        yield _Store(node, container=node.target)  # ``self.inputs |= {...}``
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _by_assignment(target)
    elif isinstance(node, ast.Call):
        yield from _by_call(node)


def _by_assignment(target: ast.expr) -> Iterator[_Store]:
    if isinstance(target, ast.Attribute) and target.attr == "data":
        yield _Store(target, tensor=target.value)
    elif isinstance(target, ast.Subscript):
        owner, key = _namespace_of(target.value), _text(target.slice)
        if owner is not None and key is not None:
            yield _Store(target, owner=owner, name=key)
        elif isinstance(target.value, ast.Name):
            yield _Store(target, container=target.value)


def _by_call(node: ast.Call) -> Iterator[_Store]:
    name = last_name(node.func)
    receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
    if name == "setattr" and receiver is None and len(node.args) == 3:
        key = _text(node.args[1])
        if key is not None:
            yield _Store(node, owner=node.args[0], name=key)
    elif name == "__setattr__" and receiver is not None and len(node.args) >= 2:
        owner = node.args[0] if len(node.args) == 3 else receiver
        key = _text(node.args[-2])
        if key is not None:
            yield _Store(node, owner=owner, name=key)
    elif name == "register_buffer" and receiver is not None and len(node.args) >= 2:
        key = _text(node.args[0])
        if key is not None:
            yield _Store(node, owner=receiver, name=key)
    elif name == "set_" and receiver is not None and node.args:
        yield _Store(node, tensor=receiver)
    elif name == "update" and receiver is not None:
        holder = _namespace_of(receiver)
        if holder is None:
            yield _Store(node, container=receiver)
        else:
            for each in _keys(node):
                yield _Store(node, owner=holder, name=each)


def _namespace_of(node: ast.expr) -> ast.expr | None:
    """``self`` of ``self.__dict__`` and ``vars(self)``."""
    if isinstance(node, ast.Attribute) and node.attr == "__dict__":
        return node.value
    if isinstance(node, ast.Call) and last_name(node.func) == "vars" and len(node.args) == 1:
        return node.args[0]
    return None


def _keys(call: ast.Call) -> Iterator[str]:
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield keyword.arg
    for given in call.args:
        if isinstance(given, ast.Dict):
            yield from (key.value for key in given.keys if isinstance(key, ast.Constant) and isinstance(key.value, str))


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


# -- whether the graph reads it --------------------------------------------------------------------------------------


def _is_read(life: Life, function: FunctionInfo | None, module: Module, store: _Store) -> bool:
    engine = life.engine
    scope = engine.scope_of(function, module)
    if store.owner is not None:
        if store.name not in life.names_read:
            return False
        node = ast.copy_location(ast.Attribute(store.owner, store.name, ast.Load()), store.node)
        places = {
            life.origins.place_of(option.site.cls, store.name)
            for option in options(engine.evaluate_in(scope, store.owner))
            if isinstance(option, Instance)
        }
        return bool(places & life.reads) and _is_tensor(engine.evaluate_in(scope, node))
    subject = store.container if store.container is not None else store.tensor
    assert subject is not None
    if store.container is not None and _is_copy(life, function, module, subject):
        return False
    value = engine.evaluate_in(scope, subject)
    if store.container is not None and not _holds_tensors(value):
        return False
    if store.tensor is not None and not (_is_tensor(value) and _is_input(engine, function, module, subject)):
        return False
    places = life.origins.same(function, module, subject).places
    if store.container is not None and places & life.outputs:
        return False  # what the region itself puts there are its outputs
    return bool(places & life.reads)


def _is_copy(life: Life, function: FunctionInfo | None, module: Module, node: ast.expr) -> bool:
    """``local = dict(self.buffers)``, ``local = make()``: a container that is another one at each call."""
    if not isinstance(node, ast.Name) or function is None or function is life.holder:
        return False
    bound = life.engine.scope_of(function, module).code.bindings.get(node.id, [])
    return any(
        not isinstance(each.node, (ast.Name, ast.Attribute, ast.Subscript))
        for each in bound
        if not each.kind.startswith("mutate")
    )


def _is_tensor(value: Value) -> bool:
    return deep_confidence(value) is not None and any(isinstance(option, Tensor) for option in options(value))


def _holds_tensors(value: Value) -> bool:
    containers = [option for option in options(value) if isinstance(option, (Mapping, Sequence))]
    others = [option for option in options(value) if not isinstance(option, (Mapping, Sequence, Unknown))]
    return bool(containers) and not others and deep_confidence(value) is not None


def _is_input(engine: Engine, function: FunctionInfo | None, module: Module, node: ast.expr) -> bool:
    """A name, or an attribute of an object that is no module: what modules hold is CG505's."""
    if isinstance(node, ast.Attribute):
        owner = engine.evaluate_in(engine.scope_of(function, module), node.value)
        return any(
            isinstance(option, Instance) and not hierarchy.is_module(engine, option.site.cls)
            for option in options(owner)
        )
    return isinstance(node, ast.Name)


def _is_own_local(life: Life, function: FunctionInfo | None, module: Module, store: _Store) -> bool:
    """What is changed lives and dies with one call of the function."""
    subject = store.container if store.container is not None else store.tensor
    if not isinstance(subject, ast.Name):
        return False
    places: set[Place] = life.origins.same(function, module, subject).places & life.reads
    return not any(isinstance(place.owner, (ClassInfo, Module)) or place.owner is not function for place in places)
