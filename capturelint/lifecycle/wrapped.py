"""Callables that stand for more than their function: compiled ones, and those that replay a graph when called."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import contains, last_name
from capturelint.regions.compiled import last_name_of_compile, uses_graphs
from capturelint.values.domain import External, Instance, ModuleValue, options
from capturelint.values.engine import Engine
from capturelint.values.facts import Context, span_of
from capturelint.values.given import arguments_of

GRAPHED = "make_graphed_callables"


class Kind(enum.Enum):
    """What a call does besides calling the function."""

    REPLAYS = "replays a graph"
    COMPILED_WITH_GRAPHS = "captures and replays graphs of its own"
    COMPILED = "compiles"


@dataclass(frozen=True, slots=True)
class Wrapped:
    """``node`` wraps a function, or decorates ``function``; its result goes by ``names`` in ``module``."""

    kind: Kind
    module: Module
    node: ast.AST
    names: frozenset[str] = frozenset()
    function: FunctionInfo | None = None
    #: only on some ways is the function wrapped
    conditional: bool = False


class WrappedCallables:
    """The wrapped callables of some modules."""

    def __init__(self, engine: Engine, modules: Iterable[Module]) -> None:
        self._all: list[Wrapped] = []
        for module in modules:
            if module.holds("torch"):
                self._all.extend(_in_module(engine, module))

    def called(self, node: ast.Call, context: Context) -> Wrapped | None:
        """What a call in a region calls, where that is a wrapped callable.

        Of several that go by one name, the one that is made in the captured code itself is meant.
        """
        found = [each for each in self._all if self._is_called(each, node, context)]
        if len(found) > 1:
            near = {id(each) for each in ast.walk(context.node)}
            found.sort(key=lambda each: id(each.node) not in near)
        return found[0] if found else None

    def _is_called(self, wrapped: Wrapped, node: ast.Call, context: Context) -> bool:
        if node.func is wrapped.node:
            return True
        if wrapped.function is not None:
            entered = context.enters.get(span_of(node), ())
            if any(each.function is wrapped.function for each in entered):
                return True
        return last_name(node.func) in wrapped.names and _is_known_by(node.func, context, wrapped.module)


def _is_known_by(callee: ast.expr, context: Context, module: Module) -> bool:
    """A plain name of the module that wraps it, or an attribute of an object whose class stands there."""
    if not isinstance(callee, ast.Attribute):
        return isinstance(callee, ast.Name) and context.module is module
    owner = context.values.get(span_of(callee.value))
    return any(
        (isinstance(option, Instance) and option.site.cls.module is module)
        or (isinstance(option, ModuleValue) and option.module is module)
        for option in options(owner)
    )


def _in_module(engine: Engine, module: Module) -> Iterator[Wrapped]:
    compile_name = last_name_of_compile(module)
    aliases = {alias for alias, found in module.names.items() if any(getattr(d, "name", "") == GRAPHED for d in found)}
    names = tuple(dict.fromkeys((compile_name, GRAPHED, *sorted(aliases))))
    decorators = {id(d): info for info in module.all_functions(*names) for d in info.decorators}
    for name in names:
        for holder, call in module.calls_named(name):
            kind = _kind(engine, module, holder, call)
            if kind is None:
                continue
            given = frozenset((*module.uses.names_given_to(call), *_returned_as(module, holder, call)))
            yield Wrapped(kind, module, call, given, decorators.get(id(call)), _conditional(holder, call))
    for info in module.all_functions(compile_name):
        for decorator in info.decorators:
            if isinstance(decorator, (ast.Name, ast.Attribute)) and last_name(decorator) == compile_name:
                if _is(engine, module, None, decorator, "torch.compile"):
                    yield Wrapped(Kind.COMPILED, module, decorator, frozenset(), info)


def _kind(engine: Engine, module: Module, holder: FunctionInfo | None, call: ast.Call) -> Kind | None:
    if _is(engine, module, holder, call.func, f".{GRAPHED}"):
        return Kind.REPLAYS
    if not _is(engine, module, holder, call.func, "torch.compile"):
        return None
    scope = engine.scope_of(holder, module)
    given = arguments_of(call, engine.frame_for(scope))
    return Kind.COMPILED_WITH_GRAPHS if uses_graphs(given) else Kind.COMPILED


def _is(engine: Engine, module: Module, holder: FunctionInfo | None, callee: ast.expr, path: str) -> bool:
    if isinstance(callee, ast.Attribute) and isinstance(callee.value, ast.Name) and callee.value.id == "re":
        return False
    scope = engine.scope_of(holder, module)
    return any(
        isinstance(option, External) and (option.path == path or option.path.endswith(f".{path.lstrip('.')}"))
        for option in options(engine.evaluate_in(scope, callee))
    )


def _returned_as(module: Module, holder: FunctionInfo | None, call: ast.Call) -> Iterator[str]:
    """The names that callers give to what a helper makes: ``def build(): return torch.compile(step)``."""
    if holder is None:
        return
    for node in ast.walk(holder.node):
        if isinstance(node, ast.Return) and node.value is call:
            for _, made in module.calls_named(holder.name):
                yield from module.uses.names_given_to(made)


def _conditional(holder: FunctionInfo | None, call: ast.Call) -> bool:
    return holder is not None and any(
        isinstance(node, (ast.If, ast.IfExp)) and contains(node, call) for node in ast.walk(holder.node)
    )
