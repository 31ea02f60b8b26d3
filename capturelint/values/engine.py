"""The engine: contexts, sites and scopes; enters functions inside regions, and answers for code outside on demand."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from capturelint.model import Confidence, Hardware
from capturelint.model import Frame as CallFrame
from capturelint.project.bindings import ImportedName
from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.module import Module
from capturelint.values import annotated, arguments, choices, hierarchy
from capturelint.values.devices import device_of
from capturelint.values.domain import (
    NONE,
    UNKNOWN,
    ClassValue,
    Device,
    External,
    Function,
    Instance,
    MadeAt,
    ModuleValue,
    Sequence,
    Unknown,
    Value,
    element_of,
    join,
)
from capturelint.values.facts import Context, span_of
from capturelint.values.frame import Arguments, Frame
from capturelint.values.lazy import Binding, LazyScope
from capturelint.values.replays import Replays
from capturelint.values.scope import Scope
from capturelint.values.sites import Site
from capturelint.values.solver import Solver
from capturelint.values.sure import CERTAIN, Sure
from capturelint.values.vocabulary import Vocabulary

if TYPE_CHECKING:
    from capturelint.project.project import Project
    from capturelint.rulebook.ops import OpTable
    from capturelint.values.change import Change
    from capturelint.values.hooks import Hook

_MAX_DEPTH = 40
#: how deep questions about code outside regions go: while regions are walked, and about the life of their graphs
_MAX_HOST_DEPTH = 12
_SETTLED_HOST_DEPTH = 6
#: an incomplete answer is worked out again where there is this much more depth to go
_DEPTHS_A_LEVEL = 6
_MAX_CONTEXTS = 4
_BUILTIN_NAMES = frozenset(dir(builtins))

#: how code says that models are built on the device: then a factory in a module's construction tells nothing
_DEVICE_MARKERS = (b"set_default_device(", b"with torch.device(", b"with target_device", b"with device:")

Key = tuple[object, ...]
_T = TypeVar("_T")


@dataclass(eq=False, repr=False, slots=True)
class Engine:
    project: Project
    ops: OpTable
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    #: the torch version that the project uses, where config says so
    torch_version: str | None = None
    hardware: Hardware = Hardware.CUDA
    contexts: dict[Key, Context] = field(default_factory=dict)
    by_function: dict[FunctionInfo, list[Context]] = field(default_factory=dict)
    #: calls that may only possibly happen at capture are entered only when such findings are wanted: they are many
    enters_possible: bool = False
    host_depth: int = 0
    host_limit: int = _MAX_HOST_DEPTH
    parameter_depth: int = 0
    _modules: dict[Module, LazyScope] = field(default_factory=dict)
    _scopes: dict[Key, LazyScope] = field(default_factory=dict)
    #: one frame for all expressions of a scope outside regions
    _frames: dict[LazyScope, Frame] = field(default_factory=dict)
    _sites: dict[Key, Site] = field(default_factory=dict)
    solver: Solver = field(default_factory=Solver)
    #: operators of the project's own, by namespace and name
    custom_ops: dict[tuple[str, str], list[FunctionInfo]] = field(default_factory=dict)
    #: subclasses, and the overrides of a method in them
    subclasses: dict[ClassInfo, list[ClassInfo]] = field(default_factory=dict)
    overrides: dict[tuple[ClassInfo, str], list[FunctionInfo]] = field(default_factory=dict)
    #: methods that the decorators of a class put others in the place of
    replaced_methods: dict[ClassInfo, frozenset[str]] = field(default_factory=dict)
    #: hooks that the project registers on modules; None until they are looked for
    hooks: list[Hook] | None = None
    _builds_on_device: bool | None = None
    #: what was answered since all regions are entered; None until then
    _answers: dict[tuple[LazyScope, ast.expr], Value] | None = None
    _remembered: dict[Key, Any] = field(default_factory=dict)
    _mro: dict[ClassInfo, list[ClassInfo | str]] = field(default_factory=dict)
    #: where the arguments of a function that is looked at on its own come from
    given_by: dict[FunctionInfo, dict[CallFrame, FunctionInfo | None]] = field(default_factory=dict)
    #: what runs around replays
    replays: Replays = field(init=False)

    def __post_init__(self) -> None:
        self.replays = Replays(self)

    # -- names -------------------------------------------------------------------------------------------------------

    def module_scope(self, module: Module) -> LazyScope:
        scope = self._modules.get(module)
        if scope is None:
            scope = LazyScope(module, None, self._binding_value, self._no_parameter, self.solver)
            self._modules[module] = scope
        return scope

    def function_scope(
        self,
        info: FunctionInfo,
        bound: dict[str, Value] | None = None,
        parent: LazyScope | Scope | None = None,
    ) -> LazyScope:
        """The lazily evaluated names of ``info``, with what is known of its parameters."""
        known = dict(bound or {})
        key = (info, tuple(known.items()), parent)
        scope = self._scopes.get(key)
        if scope is None:
            if parent is None and info.parent is not None:
                parent = self.function_scope(info.parent, self.receiver_of(info.parent))
            scope = self._scopes[key] = LazyScope(
                info.module, info, self._binding_value, self._resolve_parameter, self.solver, parent, known
            )
        return scope

    def scope_of(self, info: FunctionInfo | None, module: Module) -> LazyScope:
        """The names of a function that is looked at on its own, or of the module where there is none."""
        return self.function_scope(info, self.receiver_of(info)) if info is not None else self.module_scope(module)

    def receiver_of(self, info: FunctionInfo) -> dict[str, Value]:
        """``self`` (or ``cls``) of a method that is looked at on its own."""
        if info.owner is None or info.is_static or not info.parameters():
            return {}
        name = info.parameters()[0].arg
        if info.is_class_method:
            return {name: ClassValue(info.owner)}
        return {name: self.generic_instance(info.owner)}

    def name(self, name: str, frame: Frame) -> Value:
        found = frame.scope.lookup(name)
        if found is not None:
            holder = frame.scope.holder_of(name) if frame.in_region else None
            return self._around_region(holder, name, found) if isinstance(holder, LazyScope) else found
        return self.global_name(frame.module, name)

    def global_name(self, module: Module, name: str) -> Value:
        scope = self.module_scope(module)
        value = scope.lookup(name)
        if value is not None:
            return value if self.solver.is_open((scope, name)) else self._with_rebinding(module, name, value)
        for star in module.star_imports:
            value = self._from_star(module, star, name)
            if value is not None:
                return value
        if name in _BUILTIN_NAMES:
            return External(f"builtins.{name}")
        return UNKNOWN

    def _around_region(self, holder: LazyScope, name: str, value: Value) -> Value:
        """A name that captured code reads of the code around it, which may bind it anew before a replay."""
        from capturelint.values import locals_after

        if holder.function is None:
            value = self._with_rebinding(holder.module, name, value)
        return locals_after.with_changes(self, holder, name, value)

    def _with_rebinding(self, module: Module, name: str, value: Value) -> Value:
        from capturelint.values import changing

        if isinstance(value, (Function, ClassValue, ModuleValue, External)):
            return value  # definitions and imports: most names, and their modules need not be searched for stores
        return changing.of_global(self, module, name, value)

    def _from_star(self, module: Module, star: ImportedName, name: str) -> Value | None:
        path, _, dotted = self.project.resolve_import(ImportedName(star.module, None, star.level), module)
        if path is None:
            if dotted.startswith("torch") and self.ops.lookup(f"{dotted}.{name}") is not None:
                return External(f"{dotted}.{name}")
            return None
        target = self.project.module_at(path)
        if target is None or target is module:
            return None
        return self.module_scope(target).lookup(name)

    def resolve(self, imported: ImportedName, module: Module) -> Value:
        """The value of an imported name: a module or a definition of the project, or something third-party."""
        path, name, dotted = self.project.resolve_import(imported, module)
        if path is None:
            return External(self.canonical(dotted))
        target = self.project.module_at(path)
        if target is None:
            return UNKNOWN
        if name is None:
            return ModuleValue(target)
        if target is module and name == imported.name and imported.level == 0 and not self._binds(target, name):
            return UNKNOWN
        return self.global_name(target, name)

    def _binds(self, module: Module, name: str) -> bool:
        return name in module.names

    def canonical(self, dotted: str) -> str:
        return self.vocabulary.canonical(dotted)

    # -- lazily evaluated code ---------------------------------------------------------------------------------------

    def frame_for(self, scope: LazyScope) -> Frame:
        receiver = None
        if scope.function is not None and scope.function.owner is not None and scope.function.parameters():
            receiver = scope.arguments.get(scope.function.parameters()[0].arg)
        return Frame(self, scope.module, scope, scope.function, receiver=receiver)

    def settle(self) -> None:
        """Says that all regions are entered: from now on a question that is asked again has the same answer."""
        self._answers = {}
        self.solver.forget_makeshifts()
        self.host_limit = _SETTLED_HOST_DEPTH

    def evaluate_in(self, scope: LazyScope, node: ast.expr) -> Value:
        """The value of an expression in code outside regions."""
        if self._answers is None or self.host_depth:
            return self._evaluate_in(scope, node)
        known = self._answers.get((scope, node))
        if known is None:
            known = self._answers[scope, node] = self._evaluate_in(scope, node)
        return known

    def _evaluate_in(self, scope: LazyScope, node: ast.expr) -> Value:
        from capturelint.values.expressions import evaluate

        if self.host_depth > self.host_limit:
            self.solver.cut_short()
            return UNKNOWN
        self.host_depth += 1
        step = 1 if self.host_depth % _DEPTHS_A_LEVEL == 0 else 0
        self.solver.level += step
        frame = self._frames.get(scope)
        if frame is None:
            frame = self._frames[scope] = self.frame_for(scope)
        outer = frame.default_device, frame.sure
        try:
            frame.default_device, frame.sure = self.default_device_at(scope, node), CERTAIN
            return evaluate(node, frame)
        finally:
            frame.default_device, frame.sure = outer
            self.host_depth -= 1
            self.solver.level -= step

    def evaluate_part(self, node: ast.expr, frame: Frame) -> Value:
        """The value of an attribute's object: of a long chain each part is asked for, the longest first."""
        from capturelint.values.expressions import evaluate

        scope, answers = frame.scope, self._answers
        outermost = answers is not None and self.host_depth == 1 and frame.context is None and frame.sure is CERTAIN
        if not outermost or not isinstance(scope, LazyScope) or not isinstance(node, (ast.Attribute, ast.Call)):
            return evaluate(node, frame)
        assert answers is not None
        known = answers.get((scope, node))
        if known is None:
            known = answers[scope, node] = evaluate(node, frame)
        return known

    def default_device_at(self, scope: LazyScope, node: ast.AST) -> Device:
        """Where factories put tensors at ``node``: as a ``with torch.device(...)`` around it says, else the CPU.

        Models are often built under such a block that their loader opens, so a module's construction tells nothing.
        """
        for first, last, expression in scope.code.device_blocks:
            if first < getattr(node, "lineno", 0) <= last:
                named = device_of(self.evaluate_in(scope, expression))
                if named is not None:
                    return named.device
        info = scope.function
        if info is not None and info.owner is not None and info.name == "__init__":
            if self.builds_on_device() and hierarchy.is_module(self, info.owner):
                return Device.UNKNOWN
        return Device.HOST

    def builds_on_device(self) -> bool:
        """Whether some code of the project changes where factories put tensors for code that it calls."""
        if self._builds_on_device is None:
            self._builds_on_device = self.project.search.any_holds(_DEVICE_MARKERS)
        return self._builds_on_device

    def remembered(self, key: Key, work_out: Callable[[], _T]) -> _T:
        """What was worked out about the project as a whole, or about a module, once."""
        if key not in self._remembered:
            self._remembered[key] = work_out()
        found: _T = self._remembered[key]
        return found

    def _binding_value(self, scope: LazyScope, binding: Binding) -> Value:
        node = binding.node
        if binding.kind == "function":
            from capturelint.values.decorators import decorated

            info = scope.module.function(node)
            return decorated(Function(info, scope if scope.function else None), self.frame_for(scope))
        if binding.kind == "class":
            return ClassValue(scope.module.classes[id(node)])
        if binding.kind == "import":
            assert binding.imported is not None
            return self.resolve(binding.imported, scope.module)
        if binding.kind == "augment":
            assert isinstance(node, ast.AugAssign)
            return self.evaluate_in(scope, node.value)
        if binding.kind == "annotation":
            assert isinstance(node, ast.AnnAssign)
            declared = annotated.value_of(self, node.annotation, self.module_scope(scope.module), "")
            return declared if declared is not None else UNKNOWN
        value = self.evaluate_in(scope, node)  # type: ignore[arg-type]
        if binding.kind == "iterate":
            value = element_of(value)
        elif binding.kind == "enter":
            from capturelint.values.contexts import entered

            value = entered(value, self.frame_for(scope))
        for index in binding.path:
            value = item_at(value, index)
        return value

    def _no_parameter(self, scope: LazyScope, name: str) -> Value:
        return UNKNOWN

    def _resolve_parameter(self, scope: LazyScope, name: str) -> Value:
        from capturelint.values import call_sites

        assert scope.function is not None
        return call_sites.parameter(self, scope, name)

    def host_call(self, function: Function, given: Arguments) -> Value:
        """What a function of the project returns outside regions: the join of its return expressions."""
        info = function.info
        bound = arguments.bind(self, function, given)
        if self.host_depth > self.host_limit:
            self.solver.cut_short()
            return UNKNOWN
        scope = self.function_scope(info, bound, function.scope)  # one for the same function, arguments and closure
        result = self.solver.answer(("call", scope), lambda: self._returned(info, scope))
        return result if result is not None else UNKNOWN

    def _returned(self, info: FunctionInfo, scope: LazyScope) -> Value:
        if isinstance(info.node, ast.Lambda):
            return self.evaluate_in(scope, info.node.body)
        returned: list[Value] = []
        yielded: list[Value] = []
        generator = False
        for node in scope.code.leaving:
            on_machine = scope.code.on_machines.get(id(node))
            if on_machine is not None and not scope.runs(on_machine):
                continue
            if isinstance(node, ast.Return):
                guard = scope.code.guards.get(id(node))
                if guard is None or self._may_hold(scope, guard):
                    returned.append(self.evaluate_in(scope, node.value) if node.value is not None else NONE)
                if on_machine is not None and scope.always_runs(on_machine):
                    break  # what follows is for other machines
            elif isinstance(node, ast.Yield):
                generator = True
                yielded.append(self.evaluate_in(scope, node.value) if node.value is not None else NONE)
            elif isinstance(node, ast.YieldFrom):
                generator = True
                yielded.append(element_of(self.evaluate_in(scope, node.value)))
        if generator:
            return Sequence("generator", None, join(*yielded))
        if returned:
            return join(*returned)
        declared = annotated.returned(self, info, scope)
        return declared if declared is not None else NONE

    def _may_hold(self, scope: LazyScope, test: ast.Call) -> bool:
        """Whether an ``isinstance`` test in code outside regions can hold, for what the function is called with."""
        from capturelint.values.narrowing import is_instance

        asked, classes = (self.evaluate_in(scope, each) for each in test.args)
        return is_instance(asked, classes, self.frame_for(scope)) is not False

    # -- objects -----------------------------------------------------------------------------------------------------

    def generic_instance(self, cls: ClassInfo) -> Instance:
        key = ("generic", cls)
        if key not in self._sites:
            self._sites[key] = Site(cls, generic=True)
        return Instance(self._sites[key], exact=False)

    def passed_instance(self, cls: ClassInfo) -> Instance:
        """An object that comes in as an argument of a declared class."""
        key = ("passed", cls)
        if key not in self._sites:
            self._sites[key] = Site(cls, generic=True, passed=True)
        return Instance(self._sites[key], exact=False)

    def widened_instance(self, value: Instance) -> Instance:
        """Any object of the same class, that lives as long as ``value`` does."""
        if not value.site.in_region:
            return self.passed_instance(value.site.cls) if value.site.passed else self.generic_instance(value.site.cls)
        key = ("fresh", value.site.cls)
        if key not in self._sites:
            self._sites[key] = Site(value.site.cls, generic=True, in_region=True)
        return Instance(self._sites[key], exact=False)

    def varying_instance(self, value: Instance, change: Change) -> Instance:
        """The same record, of which each replay's caller gives another one."""
        key = ("varying", value.site, change)
        if key not in self._sites:
            self._sites[key] = replace(value.site, varies=change)
        return Instance(self._sites[key], exact=value.exact)

    def construct(
        self, cls: ClassInfo, given: Arguments, node: ast.AST, module: Module, function: FunctionInfo | None = None
    ) -> Instance:
        """An object of a project class, told apart by where it is made."""
        key = ("site", cls, module, span_of(node))
        site = self._sites.get(key)
        if site is None:
            local = function is not None and function.name not in ("__init__", "__post_init__")
            site = Site(
                cls, arguments=given.positional, keywords=dict(given.keywords), local=local, made=MadeAt(module, node)
            )
            self._sites[key] = site
        elif given.positional != site.arguments or dict(given.keywords) != site.keywords:
            arguments.widen_site(site, given)
        return Instance(site)

    def mro(self, cls: ClassInfo) -> list[ClassInfo | str]:
        """The class, then its bases: project classes as ClassInfo, others by dotted name."""
        if cls not in self._mro:
            self._mro[cls] = [cls]
            self._mro[cls] = hierarchy.linearize(self, cls)
        return self._mro[cls]

    # -- regions -----------------------------------------------------------------------------------------------------

    def open_context(self, key: Key, module: Module, name: str, info: FunctionInfo | None, node: ast.AST) -> Context:
        context = Context(module, name, info, node)
        self.contexts[key] = context
        if info is not None:
            self.by_function.setdefault(info, []).append(context)
        return context

    def enter(self, function: Function, given: Arguments, node: ast.AST, frame: Frame, sure: Sure) -> Value:
        """Evaluates a call made inside a region, once per distinct context; returns what the function returns."""
        info = function.info
        assert frame.context is not None
        if frame.depth >= _MAX_DEPTH:
            self.unresolved(frame, node, "call chain too deep")
            return UNKNOWN
        if sure.confidence is Confidence.POSSIBLE and not self.enters_possible:
            value = self.host_call(function, given)
            if not choices.is_open(info, value):
                self.unresolved(frame, node, "only possible at capture (--min-confidence possible follows it)")
                return value
            # what is called next, or which way it goes, may hang on what is known of a region alone
        bound = arguments.bind(self, function, given)
        modes: Key = (frame.default_device, frame.anomaly, frame.context.compiled)
        key: Key = (info, function.scope, tuple(bound.items()), *modes)
        context = self.contexts.get(key)
        if context is None and len(self.by_function.get(info, ())) >= _MAX_CONTEXTS:
            bound = arguments.widened(self, function, bound)
            key = (info, function.scope, tuple(bound.items()), "widened", frame.anomaly, frame.context.compiled)
            context = self.contexts.get(key)
        fresh = context is None
        if context is None:
            context = self.open_context(key, info.module, info.qualname, info, info.node)
            context.breaks = hierarchy.breaks_out(self, info)
            context.compiled = frame.context.compiled
        link(context, frame, node, sure)
        if fresh:
            self._run(context, function, bound, frame)
        return context.result

    def _run(self, context: Context, function: Function, bound: dict[str, Value], frame: Frame) -> None:
        from capturelint.values.statements import execute

        info = function.info
        parent: LazyScope | Scope | None = function.scope
        if parent is None and info.parent is not None:
            parent = self.function_scope(info.parent, self.receiver_of(info.parent))
        scope = Scope(info.module, parent)
        for name, value in bound.items():
            scope.bind(name, value)
        inner = Frame(
            self, info.module, scope, info, context, frame.depth + 1,
            default_device=frame.default_device, anomaly=frame.anomaly,
        )  # fmt: skip
        if info.owner is not None and info.parameters() and not info.is_static:
            inner.receiver = bound.get(info.parameters()[0].arg)
        execute(info.body, inner)
        if inner.yields:
            context.result = Sequence("generator", None, join(*inner.yields))
        elif inner.returns:
            context.result = join(*inner.returns, *([NONE] if scope.names is not None else []))
        else:
            context.result = NONE
        context.done = True

    def unresolved(self, frame: Frame, node: ast.AST, reason: str) -> None:
        if frame.context is not None:
            frame.context.unresolved[span_of(node)] = reason


def link(context: Context, frame: Frame, node: ast.AST, sure: Sure) -> None:
    """Notes that ``frame`` calls ``context`` at ``node``."""
    assert frame.context is not None
    name = frame.context.name
    call = CallFrame(frame.module.display, getattr(node, "lineno", 1), name)
    entered = frame.context.enters.setdefault(span_of(node), [])
    if context not in entered:
        entered.append(context)
    for index, (caller, known, before) in enumerate(context.callers):
        if caller is frame.context and known == call:
            if sure.confidence > before.confidence:
                context.callers[index] = (caller, known, sure)
            return
    context.callers.append((frame.context, call, sure))


def item_at(value: Value, index: int) -> Value:
    """``value[index]`` when unpacking."""
    from capturelint.values.domain import Tensor, options

    found: list[Value] = []
    for option in options(value):
        if isinstance(option, Sequence) and option.items is not None:
            found.append(option.items[index] if index < len(option.items) else UNKNOWN)
        elif isinstance(option, (Sequence, Tensor)):
            found.append(element_of(option))
        elif option == NONE:
            continue
        else:
            found.append(element_of(option) if not isinstance(option, Unknown) else option)
    return join(*found) if found else UNKNOWN
