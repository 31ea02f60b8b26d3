"""Calls: who is called, what it does, what it returns."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from capturelint.model import Confidence
from capturelint.values import autograd, custom_ops, hierarchy, hooks, instances, special_forms, torch_ops
from capturelint.values.domain import (
    UNKNOWN,
    BoundExternal,
    ClassValue,
    External,
    ExternalInstance,
    Function,
    Host,
    Instance,
    Launcher,
    Partial,
    Sequence,
    Tensor,
    Unknown,
    Value,
    join,
    options,
)
from capturelint.values.expressions import evaluate
from capturelint.values.facts import CallFact, Effect, capped
from capturelint.values.frame import Arguments, Frame
from capturelint.values.given import arguments_of
from capturelint.values.sure import CERTAIN, Sure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from capturelint.project.definitions import ClassInfo, FunctionInfo
    from capturelint.values.engine import Engine

_MAX_TARGETS = 24
#: objects of more classes than these stand for a choice that is made elsewhere, such as the backend of a layer
_MAX_CHOICES = 3


class _Collector:
    """Gathers what the alternatives of one call do, for one fact."""

    def __init__(self, arguments: Arguments) -> None:
        self.callees: list[str] = []
        self.effects: list[Effect] = []
        self.receiver: Value | None = None
        self.arguments = arguments
        self.launch = False

    def fact(self, cap: Confidence) -> CallFact:
        return CallFact(
            tuple(dict.fromkeys(self.callees)),
            tuple(dict.fromkeys(capped(effect, cap) for effect in self.effects)),
            self.receiver,
            self.arguments.positional,
            self.arguments.keywords,
            self.launch,
        )


def call_expression(node: ast.Call, frame: Frame) -> Value:
    callee = evaluate(node.func, frame)
    special = special_forms.special_form(node, callee, frame)
    if special is not None:
        return special
    return call(callee, arguments_of(node, frame), node, frame)


def call(callee: Value, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    """Calls every alternative of ``callee``; inside a region the call's fact is recorded."""
    collector = _Collector(given)
    if frame.context is not None and autograd.runs_backward(callee):
        for backward, gradients in autograd.backwards(frame.engine, frame.context):
            _call(backward, gradients, node, frame, collector, frame.sure.at_most(Confidence.LIKELY, "run by backward"))
    targets = _on_this_hardware(list(options(callee)), frame)
    sure = frame.sure if len(targets) == 1 else frame.sure.at_most(Confidence.LIKELY, f"one of {len(targets)} callees")
    virtual = [target for target in targets if isinstance(target, Function) and target.virtual]
    if len(virtual) > _MAX_TARGETS and not all(hierarchy.implements(frame.engine, each.info) for each in virtual):
        sure = sure.at_most(Confidence.POSSIBLE, f"one of more than {_MAX_TARGETS} overrides")
    if len({owner for target in targets if (owner := _class_behind(target)) is not None}) > _MAX_CHOICES:
        sure = sure.at_most(Confidence.POSSIBLE, "one of several backends, which an option chooses")
    results = [_call(target, given, node, frame, collector, sure) for target in targets[:_MAX_TARGETS]]
    if frame.context is not None and isinstance(node, ast.Call):
        frame.context.record_call(node, collector.fact(frame.confidence))
    return join(*results) if results else UNKNOWN


def _on_this_hardware(targets: list[Value], frame: Frame) -> list[Value]:
    """Of several things that a call may mean, those that the project's hardware has; all of them where it has none."""
    vocabulary = frame.engine.vocabulary
    if len(targets) < 2 or not vocabulary.other_hardware:
        return targets
    here = [
        target
        for target in targets
        if not (isinstance(target, Function) and "other-hardware" in _said_of(target.info, frame))
    ]
    return here or targets


def _class_behind(target: Value) -> ClassInfo | None:
    """The class of the object that a method is bound to, where it is not one of a hierarchy's overrides."""
    if isinstance(target, Function) and not target.virtual and isinstance(target.bound, Instance):
        return target.bound.site.cls
    return None


def _call(target: Value, given: Arguments, node: ast.AST, frame: Frame, collector: _Collector, sure: Sure) -> Value:
    engine = frame.engine
    if isinstance(target, Function):
        return _call_function(target, given, node, frame, collector, sure)
    if isinstance(target, ClassValue):
        return _construct(target, given, node, frame, collector)
    if isinstance(target, Instance):
        return _call_instance(target, given, node, frame, collector, sure)
    if isinstance(target, Partial):
        merged = Arguments(
            (*target.arguments, *given.positional),
            (*(pair for pair in target.keywords if given.keyword(pair[0]) is None), *given.keywords),
            given.rest,
            given.open_keywords,
        )
        return join(*(_call(f, merged, node, frame, collector, sure) for f in options(target.function)))
    if isinstance(target, Launcher):
        return _launch(target, given, frame, collector)
    if isinstance(target, External):
        collector.callees.append(target.path)
        if frame.in_region and target.path.startswith(custom_ops.PREFIX):
            behind = custom_ops.registered(engine, target.path)
            if behind:
                sure = sure.at_most(Confidence.LIKELY, "the implementation that is registered for an operator")
                return join(*(_call_function(f, given, node, frame, collector, sure) for f in behind))
        return torch_ops.call_external(target.path, None, given, node, frame, collector.effects)
    if isinstance(target, BoundExternal):
        asked = _asked(target.path, frame) if target.path.startswith("?.") else None
        if asked is not None:
            return Host(const=asked, kind="bool")
        collector.callees.append(target.path)
        known = collector.receiver
        collector.receiver = target.receiver if known is None else join(known, target.receiver)
        if target.path == autograd.APPLY and isinstance(target.receiver, ClassValue):
            forward = autograd.applied(target.receiver.info, given, frame)
            if forward is not None:
                result = _call_function(*forward, node, frame, collector, sure)
                setup = autograd.setup(target.receiver.info, given, result, frame)
                if setup is not None:
                    _call_function(*setup, node, frame, collector, sure)
                return result
        if target.path.endswith(".__call__") and isinstance(target.receiver, Instance):
            return _call_instance(target.receiver, given, node, frame, collector, sure)
        return torch_ops.call_external(target.path, target.receiver, given, node, frame, collector.effects)
    if isinstance(target, ExternalInstance):
        return _call_external_instance(target, given, node, frame, collector)
    if isinstance(target, (Unknown, Tensor)) and frame.in_region:
        engine.unresolved(frame, node, _reason(target))
        return torch_ops.made_of(given)
    return UNKNOWN


def _reason(target: Value) -> str:
    if isinstance(target, Unknown) and target.parameter:
        return f"nothing is known of what is passed as `{target.parameter}`"
    return "nothing is known of what is called"


def _call_function(
    target: Function, given: Arguments, node: ast.AST, frame: Frame, collector: _Collector, sure: Sure
) -> Value:
    info = target.info
    name = f"{info.module.name}.{info.qualname}"
    collector.callees.append(name)
    collector.receiver = target.bound
    if target.role == "triton":
        return UNKNOWN
    known = _asked(name, frame)
    if known is not None:
        return Host(const=known, kind="bool")
    if frame.in_region:
        said = _said_of(info, frame)
        if "capture-safe" in said:
            return frame.engine.host_call(target, given)
        if "synchronizes" in said:
            collector.effects.append(Effect("synchronize", sure.confidence, f"`{info.name}` synchronizes (config)"))
            return frame.engine.host_call(target, given)
        if "reads-device" in said:
            collector.effects.append(
                Effect("host-read", sure.confidence, f"`{info.name}` reads from the device (config)")
            )
            return frame.engine.host_call(target, given)
        if frame.depth and "outside" in said:
            frame.engine.unresolved(frame, node, "no part of a capture (preset)")
            return frame.engine.host_call(target, given)
        if frame.depth and "other-hardware" in said:
            frame.engine.unresolved(frame, node, "for other hardware (preset)")
            return frame.engine.host_call(target, given)
        if info.owner is not None and info.name in _replaced(frame.engine, info.owner):
            sure = sure.at_most(Confidence.POSSIBLE, "another method is put in its place")
        if info.has_decorator("lru_cache", "cache"):
            sure = sure.at_most(Confidence.POSSIBLE, "cached: the warm-up has run it with the same arguments")
        if frame.depth and "eager" in said:
            # named directly in a region it is captured; further down it is the other path
            sure = sure.at_most(Confidence.POSSIBLE, "by its name it is the path without graphs")
        return frame.engine.enter(target, given, node, frame, sure)
    return frame.engine.host_call(target, given)


def _said_of(info: FunctionInfo, frame: Frame) -> frozenset[str]:
    """What config and presets say of a function, by their keys; patterns take long to match, and calls are many."""
    vocabulary = frame.engine.vocabulary

    def match() -> frozenset[str]:
        name = f"{info.module.name}.{info.qualname}"
        said = {
            "capture-safe": vocabulary.matches(name, vocabulary.capture_safe),
            "synchronizes": vocabulary.matches(name, vocabulary.synchronizes),
            "reads-device": vocabulary.matches(name, vocabulary.reads_device),
            "outside": vocabulary.matches(name, vocabulary.outside),
            "other-hardware": vocabulary.is_for_other_hardware(name),
            "eager": vocabulary.is_eager(info.qualname),
        }
        return frozenset(key for key, holds in said.items() if holds)

    return frame.engine.remembered(("said of", info), match)


def _asked(dotted: str, frame: Frame) -> bool | None:
    """What a predicate of the project's says; those about captures say it inside a region alone."""
    vocabulary = frame.engine.vocabulary
    return vocabulary.predicate(dotted) if frame.in_region else vocabulary.asks_for_hardware(dotted)


def _replaced(engine: Engine, cls: ClassInfo) -> frozenset[str]:
    """The methods that a class's decorators assign anew: ``cls.forward = dispatch``."""
    known = engine.replaced_methods.get(cls)
    if known is None:
        engine.replaced_methods[cls] = frozenset()  # while decorators are being looked at
        found: set[str] = set()
        for decorator in cls.node.decorator_list:
            value = engine.evaluate_in(engine.module_scope(cls.module), decorator)
            for option in options(value):
                if isinstance(option, Function):
                    found.update(_assigned_on_parameters(option.info))
        known = engine.replaced_methods[cls] = frozenset(found)
    return known


def _assigned_on_parameters(decorator: FunctionInfo) -> Iterable[str]:
    names = {p.arg for p in decorator.parameters()}
    for node in ast.walk(decorator.node):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names.update(each.arg for each in node.args.args)
    for node in ast.walk(decorator.node):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if (
                    isinstance(target, ast.Attribute)
                    and isinstance(target.value, ast.Name)
                    and target.value.id in names
                ):
                    yield target.attr


def _construct(target: ClassValue, given: Arguments, node: ast.AST, frame: Frame, collector: _Collector) -> Value:
    engine = frame.engine
    cls = target.info
    collector.callees.append(f"{cls.module.name}.{cls.qualname}")
    bases = [entry for entry in engine.mro(cls) if isinstance(entry, str)]
    if any(base.rpartition(".")[2] in ("Enum", "IntEnum", "StrEnum") for base in bases):
        return Host(kind="enum")
    instance = engine.construct(cls, given, node, frame.module, frame.function)
    instance.site.chosen = instance.site.chosen or target.chosen
    if frame.in_region:
        instance.site.in_region = True
        init = hierarchy.find_method(engine, cls, "__init__")
        if init is not None:
            engine.enter(Function(init, bound=instance), given, node, frame, frame.sure)
    return instance


def _call_instance(
    target: Instance, given: Arguments, node: ast.AST, frame: Frame, collector: _Collector, sure: Sure
) -> Value:
    engine = frame.engine
    for name in (
        ("__call__", "forward") if not hierarchy.is_module(engine, target.site.cls) else ("forward", "__call__")
    ):
        method = hierarchy.find_method(engine, target.site.cls, name)
        if method is None and target.exact:
            continue
        bound = instances.of_instance(engine, target, name)
        if not any(isinstance(option, Function) for option in options(bound)):
            continue
        if target.site.chosen:
            sure = sure.at_most(Confidence.POSSIBLE, "made of a class that some table of the project names for it")
        count = sum(1 for _ in options(bound))
        if count > 1:
            least = Confidence.LIKELY if count <= _MAX_TARGETS else Confidence.POSSIBLE
            sure = sure.at_most(least, f"one of {count} overrides")
        _run_hooks(target, hooks.BEFORE, (UNKNOWN, _arguments(given)), node, frame, collector, sure)
        result = join(*(_call(f, given, node, frame, collector, sure) for f in list(options(bound))[:_MAX_TARGETS]))
        _run_hooks(target, hooks.AFTER, (UNKNOWN, _arguments(given), result), node, frame, collector, sure)
        return result
    if frame.in_region:
        engine.unresolved(frame, node, f"`{target.site.cls.name}` has no `forward` or `__call__` in the project")
    return UNKNOWN


def _launch(target: Launcher, given: Arguments, frame: Frame, collector: _Collector) -> Value:
    collector.launch = True
    for kernel in options(target.kernel):
        if isinstance(kernel, Function):
            collector.callees.append(f"triton:{kernel.info.qualname}")
        elif isinstance(kernel, External):
            collector.callees.append(f"triton:{kernel.path}")
    collector.arguments = Arguments(
        given.positional, (*given.keywords, ("grid", _grid(target.grid, frame))), given.rest, given.open_keywords
    )
    return UNKNOWN


def _grid(grid: Value, frame: Frame) -> Value:
    """A grid given as a function of the kernel's meta-parameters is called."""
    for option in options(grid):
        if isinstance(option, Function):
            return frame.engine.host_call(option, Arguments((UNKNOWN,)))
    return grid


def _call_external_instance(
    target: ExternalInstance, given: Arguments, node: ast.AST, frame: Frame, collector: _Collector
) -> Value:
    collector.callees.append(f"{target.cls}.__call__")
    collector.receiver = target
    elements = target.argument("modules")
    if target.cls.endswith(".Sequential") and isinstance(elements, Sequence):
        value = given.positional[0] if given.positional else UNKNOWN
        for element in elements.items if elements.items is not None else (elements.element or UNKNOWN,):
            value = join(*(_call(e, Arguments((value,)), node, frame, collector, CERTAIN) for e in options(element)))
        return value
    _run_hooks(target, hooks.BEFORE, (UNKNOWN, _arguments(given)), node, frame, collector, CERTAIN)
    result = torch_ops.call_module(target, given, node, frame, collector.effects)
    _run_hooks(target, hooks.AFTER, (UNKNOWN, _arguments(given), result), node, frame, collector, CERTAIN)
    return result


def _arguments(given: Arguments) -> Value:
    """A module's positional arguments, as a hook gets them."""
    return Sequence("tuple", given.positional) if given.rest is None else Sequence("tuple", None, given.rest)


def _run_hooks(
    module: Instance | ExternalInstance, kind: str, given: tuple[Value, ...], node: ast.AST, frame: Frame,
    collector: _Collector, sure: Sure,
) -> None:  # fmt: skip
    """Calls a module's hooks of one kind inside a region, with the module first; a backward's run with that."""
    if frame.context is None:
        return
    for each in hooks.of_module(frame.engine, module, node):
        if each.kind == hooks.BACKWARD and kind == hooks.AFTER:
            frame.context.backward_hooks[each.hook] = None
        elif each.kind == kind:
            capped = sure.at_most(frame.confidence, frame.sure.why).at_most(each.confidence, each.why)
            for option in options(each.hook):
                _call(option, Arguments((module, *given[1:])), node, frame, collector, capped)
