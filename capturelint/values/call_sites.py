"""Parameters of functions that are looked at on their own: what their callers in the project pass."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from collections.abc import Sequence as Sequence_
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from capturelint.model import Frame
from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import last_name
from capturelint.values import annotated, hierarchy, training
from capturelint.values.domain import (
    ClassValue,
    Function,
    Instance,
    Mapping,
    Partial,
    Sequence,
    Unknown,
    Value,
    join,
    options,
)
from capturelint.values.frame import Arguments
from capturelint.values.given import Wanted, arguments_of, wanted_arguments

if TYPE_CHECKING:
    from capturelint.values.engine import Engine
    from capturelint.values.lazy import LazyScope

#: callers that are looked at, files that are searched, and how far callers of callers are followed
_MAX_SITES = 24
_MAX_FILES = 40
_MAX_CHAIN = 4
#: one step to callers weighs more than any number of expressions within one function
_LEVEL = 100


def parameter(engine: Engine, scope: LazyScope, name: str) -> Value:
    """A parameter's value: its annotation where that settles it, else the join of what callers pass."""
    info = scope.function
    assert info is not None
    receiver = engine.receiver_of(info)
    if name in receiver:
        return receiver[name]
    node = info.head.args
    if node.vararg is not None and node.vararg.arg == name:
        return _passed_extra(engine, info)
    if node.kwarg is not None and node.kwarg.arg == name:
        return Mapping()
    declared = next((p.annotation for p in info.parameters() if p.arg == name), None)
    value = annotated.value_of(engine, declared, engine.module_scope(info.module), name)
    if value is not None and not isinstance(value, (Sequence, Mapping)) and not _is_base(engine, value):
        return value
    passed = _from_callers(engine, info, name)
    if isinstance(value, Instance):
        return passed if passed is not None and _narrows(engine, passed, value) else value
    if passed is not None and not (isinstance(passed, Unknown) and value is not None):
        return passed
    return value if value is not None else Unknown(parameter=name)


def _is_base(engine: Engine, value: Value) -> bool:
    """An annotation with a class that does not say what its objects do, such as any optimizer: callers know better."""
    if any(training.is_base(option) for option in options(value)):
        return True
    if isinstance(value, Instance) and _carries_optimizer(engine, value.site.cls):
        return True
    return (
        isinstance(value, Instance)
        and hierarchy.is_module(engine, value.site.cls)
        and hierarchy.find_method(engine, value.site.cls, "forward") is None
    )


def _carries_optimizer(engine: Engine, cls: ClassInfo) -> bool:
    """A record that has any optimizer in it."""
    return engine.remembered(
        ("carries an optimizer", cls), lambda: any(map(training.says_any_optimizer, cls.annotations.values()))
    )


def _narrows(engine: Engine, passed: Value, declared: Instance) -> bool:
    return all(
        isinstance(each, Instance) and declared.site.cls in engine.mro(each.site.cls) for each in options(passed)
    )


def _passed_extra(engine: Engine, info: FunctionInfo) -> Value:
    """What callers pass beyond the named parameters: ``run(fn, *args)``."""
    if engine.parameter_depth >= _MAX_CHAIN:
        engine.solver.cut_short()
        return Sequence("tuple")
    found = engine.solver.answer(("extra", info), lambda: _joined_extra(engine, info))
    return found if found is not None else Sequence("tuple")


def _joined_extra(engine: Engine, info: FunctionInfo) -> Value:
    named = len(info.head.args.posonlyargs) + len(info.head.args.args)
    engine.parameter_depth += 1
    engine.solver.level += _LEVEL
    try:
        found: list[Value] = []
        for given, bound in _calls_of(engine, info, lambda bound: Wanted(max(named - _receivers(info, bound), 0))):
            extra = given.positional[max(named - _receivers(info, bound), 0) :]
            found.append(Sequence("tuple", extra) if given.rest is None else Sequence("tuple", None, given.rest))
        return join(*found) if found else Sequence("tuple")
    finally:
        engine.parameter_depth -= 1
        engine.solver.level -= _LEVEL


def _from_callers(engine: Engine, info: FunctionInfo, name: str) -> Value | None:
    if engine.parameter_depth >= _MAX_CHAIN:
        engine.solver.cut_short()
        return None
    return engine.solver.answer(("parameter", info, name), lambda: _joined_from_callers(engine, info, name))


def _joined_from_callers(engine: Engine, info: FunctionInfo, name: str) -> Value:
    engine.parameter_depth += 1
    engine.solver.level += _LEVEL
    try:
        found = [
            _passed(engine, info, name, given, bound)
            for given, bound in _calls_of(engine, info, lambda bound: _wanted(info, name, bound))
        ]
        known = [value for value in found if value is not None]
        result = join(*known) if known else _default(engine, info, name)
    finally:
        engine.parameter_depth -= 1
        engine.solver.level -= _LEVEL
    return result if result is not None else Unknown(parameter=name)


def _passed(engine: Engine, info: FunctionInfo, name: str, given: Arguments, bound: bool) -> Value | None:
    position = _position(info, name, bound)
    value = given.get(position, name)
    if value is None and given.rest is not None and position is not None:
        return given.rest
    return value if value is not None else _default(engine, info, name)


def _position(info: FunctionInfo, name: str, bound: bool) -> int | None:
    """Where in a call a parameter's argument stands; None for one that is given by name alone."""
    names = [p.arg for p in [*info.head.args.posonlyargs, *info.head.args.args]]
    return names.index(name) - _receivers(info, bound) if name in names else None


def _receivers(info: FunctionInfo, bound: bool) -> int:
    """How many parameters a call does not spell out."""
    return 1 if bound and not info.is_static else 0


def _wanted(info: FunctionInfo, name: str, bound: bool) -> Wanted:
    position = _position(info, name, bound)
    return Wanted(position, position + 1, name) if position is not None else Wanted(0, 0, name)


def _default(engine: Engine, info: FunctionInfo, name: str) -> Value | None:
    node = info.head.args
    positional = [*node.posonlyargs, *node.args]
    for index, each in enumerate(positional):
        offset = index - (len(positional) - len(node.defaults))
        if each.arg == name and offset >= 0:
            return engine.evaluate_in(engine.module_scope(info.module), node.defaults[offset])
    for each, default in zip(node.kwonlyargs, node.kw_defaults, strict=False):
        if each.arg == name and default is not None:
            return engine.evaluate_in(engine.module_scope(info.module), default)
    return None


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call of a function of the project: where it stands, and what a partial application adds to its arguments.

    ``bound``: the call binds the receiver, so that the first parameter is not among the arguments.
    """

    module: Module
    holder: FunctionInfo | None
    call: ast.Call
    bound: bool
    partial: Partial | None = None


def _calls_of(engine: Engine, info: FunctionInfo, wanted: Callable[[bool], Wanted]) -> list[tuple[Arguments, bool]]:
    """The arguments of the calls of ``info`` in the project that are wanted, and whether the call binds a receiver.

    Which those are hangs on whether it does.
    """
    found: list[tuple[Arguments, bool]] = []
    if not _constructs(info) and not _is_object_call(info) and info.name != "<lambda>":
        found.extend((given, False) for given in _decorations(engine, info))
    for site in sites_of(engine, info):
        frame = engine.frame_for(engine.scope_of(site.holder, site.module))
        extra = site.partial
        given = wanted_arguments(site.call, frame, wanted(site.bound).after(len(extra.arguments) if extra else 0))
        if extra is not None:
            given = Arguments((*extra.arguments, *given.positional), (*extra.keywords, *given.keywords))
        found.append((given, site.bound))
        _note(engine, info, site)
    return found[:_MAX_SITES]


def constructions(engine: Engine, cls: ClassInfo) -> list[Arguments]:
    """The arguments of the calls in the project that make objects of ``cls``."""
    return [
        arguments_of(site.call, engine.frame_for(engine.scope_of(site.holder, site.module)))
        for site in islice(_constructions(engine, cls), _MAX_SITES)
    ]


def sites_of(engine: Engine, info: FunctionInfo, max_files: int = _MAX_FILES) -> list[CallSite]:
    """The calls of ``info`` in the project: those of its name, of its objects, of its class for a constructor.

    Of a name that more than ``max_files`` files call, only those count that know the class.
    """
    if info.name == "<lambda>":
        return []
    if _constructs(info):
        assert info.owner is not None
        return list(islice(_constructions(engine, info.owner), _MAX_SITES))
    if _is_object_call(info):
        return list(islice(_object_calls(engine, info), _MAX_SITES))
    return list(islice(_calls_by_name(engine, info, max_files), _MAX_SITES))


def _constructs(info: FunctionInfo) -> bool:
    return info.owner is not None and info.name in ("__init__", "__post_init__")


def _is_object_call(info: FunctionInfo) -> bool:
    return info.owner is not None and info.name in ("forward", "__call__")


def _calls_by_name(engine: Engine, info: FunctionInfo, max_files: int) -> Iterator[CallSite]:
    related: list[str] = []
    if info.owner is not None:
        related = [info.owner.name, *(cls for _, cls in engine.project.search.deriving(info.owner.name))]
    for module, holder, call in _named_calls(engine, info.module, info.name, related, max_files):
        for option in options(engine.evaluate_in(engine.scope_of(holder, module), call.func)):
            target, extra = (option.function, option) if isinstance(option, Partial) else (option, None)
            if isinstance(target, Function) and (
                target.info is info if _is_super(call) else _same_method(engine, target, info)
            ):
                yield CallSite(module, holder, call, target.bound is not None, extra)


def _decorations(engine: Engine, info: FunctionInfo) -> list[Arguments]:
    """``@register("name")`` calls what ``register`` returns with the function or class below it."""
    name = info.parent.name if info.parent is not None else info.name
    if name == "<lambda>":
        return []
    found: list[Arguments] = []
    needle = f"@{name}" if info.parent is None else name
    search = engine.project.search
    knowing = search.containing(name, needle) if len(search.mentioning(name)) <= _MAX_FILES else []
    for module in dict.fromkeys([info.module, *engine.project.modules(knowing)]):
        if not module.holds(needle):
            continue
        decorated: list[FunctionInfo | ClassInfo] = [*module.all_functions(name), *module.all_classes()]
        for each in decorated:
            for decorator in each.decorators:
                if last_name(decorator) != name or len(found) >= _MAX_SITES:
                    continue
                value = engine.evaluate_in(engine.module_scope(module), decorator)
                if any(isinstance(option, Function) and option.info is info for option in options(value)):
                    given: Value = Function(each) if isinstance(each, FunctionInfo) else ClassValue(each)
                    found.append(Arguments((given,)))
    return found


def _is_super(call: ast.Call) -> bool:
    """``super().name(...)`` calls the base's method, whatever class the receiver is of."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    return isinstance(owner, ast.Call) and last_name(owner.func) == "super"


def _same_method(engine: Engine, target: Function, info: FunctionInfo) -> bool:
    if target.info is info:
        return True
    if info.owner is None or target.info.owner is None or target.info.name != info.name:
        return False
    receiver = target.bound
    return isinstance(receiver, Instance) and (
        (not receiver.exact and receiver.site.cls in engine.mro(info.owner))
        or hierarchy.find_method(engine, receiver.site.cls, info.name) is info
    )


def _constructions(engine: Engine, cls: ClassInfo) -> Iterator[CallSite]:
    """The calls that make objects of ``cls``."""
    for module, holder, call in _named_calls(engine, cls.module, cls.name):
        for option in options(engine.evaluate_in(engine.scope_of(holder, module), call.func)):
            if isinstance(option, ClassValue) and option.info is cls:
                yield CallSite(module, holder, call, bound=True)


def _object_calls(engine: Engine, info: FunctionInfo) -> Iterator[CallSite]:
    """Calls of objects: ``self.runner = Runner(...)`` somewhere, and ``self.runner(x)`` in the same files."""
    owner = info.owner
    assert owner is not None
    for module, _, construction in _named_calls(engine, owner.module, owner.name):
        for name in module.uses.names_given_to(construction):
            for holder, call in module.calls_named(name):
                for option in options(engine.evaluate_in(engine.scope_of(holder, module), call.func)):
                    if isinstance(option, Instance) and owner in engine.mro(option.site.cls):
                        yield CallSite(module, holder, call, bound=True)


def _note(engine: Engine, info: FunctionInfo, site: CallSite) -> None:
    name = site.holder.qualname if site.holder is not None else "<module>"
    engine.given_by.setdefault(info, {})[Frame(site.module.display, site.call.lineno, name)] = site.holder


def _named_calls(
    engine: Engine, home: Module, name: str, related: Sequence_[str] = (), max_files: int = _MAX_FILES
) -> list[tuple[Module, FunctionInfo | None, ast.Call]]:
    """Calls by last identifier, in the function's own module first."""
    modules = [home]
    files = engine.project.search.calling(name)
    if len(files) > max_files and related:
        # too common a name: the files that know the class, or one derived from it
        knowing = {file.path for word in related for file in engine.project.search.mentioning(word)}
        files = [file for file in files if file.path in knowing]
    others = engine.project.modules(files, max_files)
    modules.extend(module for module in others if module is not home)
    return [(module, holder, call) for module in modules for holder, call in module.calls_named(name)]
