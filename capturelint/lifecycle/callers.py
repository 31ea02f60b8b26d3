"""Who calls a function, also where it is a closure that was handed out or an object that was passed on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import last_name, walk_own
from capturelint.values.call_sites import CallSite, sites_of
from capturelint.values.domain import Function, Instance, Partial, Value, options
from capturelint.values.engine import Engine

#: a name that more files call says nothing about who calls this function
_MAX_FILES = 12
_MAX_SITES = 24


def callers(engine: Engine, info: FunctionInfo) -> list[CallSite]:
    """The calls of ``info`` in the project, each once."""
    found: dict[int, CallSite] = {}
    for site in (*sites_of(engine, info, _MAX_FILES), *_closure_calls(engine, info), *_calls_of_passed(engine, info)):
        found.setdefault(id(site.call), site)
        if len(found) >= _MAX_SITES:
            break
    return list(found.values())


def _closure_calls(engine: Engine, info: FunctionInfo) -> Iterator[CallSite]:
    """``run = make_runner(model)`` and ``run(x)``, where ``make_runner`` returns a function of its own."""
    maker = info.parent
    if maker is None or not _hands_out(maker, info):
        return
    for site in sites_of(engine, maker, _MAX_FILES):
        for name in site.module.uses.names_given_to(site.call):
            yield from _calls_of_value(engine, info, site.module, name)
    for module in engine.project.modules(engine.project.search.mentioning(maker.name), _MAX_FILES):
        for decorated in module.all_functions(maker.name):
            if decorated.has_decorator(maker.name):
                for other in engine.project.modules(engine.project.search.calling(decorated.name), _MAX_FILES):
                    yield from _calls_of_value(engine, info, other, decorated.name)


def _hands_out(maker: FunctionInfo, info: FunctionInfo) -> bool:
    """Whether a function returns (or keeps in an attribute) one of its own nested functions."""
    for node in walk_own(maker.node):
        if isinstance(node, (ast.Return, ast.Assign, ast.Yield)) and node.value is not None:
            for each in ast.walk(node.value):
                if each is info.node or (isinstance(each, ast.Name) and each.id == info.name):
                    return True
    return False


def _calls_of_passed(engine: Engine, info: FunctionInfo) -> Iterator[CallSite]:
    """``def serve(runner: Runner): runner(x)``: objects that come in by a parameter of their class."""
    owner = info.owner
    if owner is None or info.name not in ("forward", "__call__"):
        return
    for module in engine.project.modules(engine.project.search.mentioning(owner.name), _MAX_FILES):
        for function in module.all_functions(owner.name):
            for parameter in function.parameters():
                if parameter.annotation is not None and owner.name in ast.unparse(parameter.annotation):
                    yield from _calls_of_value(engine, info, module, parameter.arg)


def _calls_of_value(engine: Engine, info: FunctionInfo, module: Module, name: str) -> Iterator[CallSite]:
    """The calls in a module by which ``name`` may mean ``info``."""
    for holder, call in module.calls_named(name):
        if last_name(call.func) == name and not isinstance(call.func, ast.Call):
            value = engine.evaluate_in(engine.scope_of(holder, module), call.func)
            if any(_means(engine, option, info) for option in options(value)):
                yield CallSite(module, holder, call, bound=info.owner is not None)


def _means(engine: Engine, value: Value, info: FunctionInfo) -> bool:
    if isinstance(value, Partial):
        return _means(engine, value.function, info)
    if isinstance(value, Function):
        return value.info is info
    return isinstance(value, Instance) and info.owner is not None and info.owner in engine.mro(value.site.cls)
