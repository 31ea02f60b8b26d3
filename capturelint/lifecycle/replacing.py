"""CG505: weights, submodules or gradients that a graph reads are replaced by others after capture.

Each statement that can put another tensor behind a parameter (``.data =``, ``nn.Parameter(...)``, ``module.half()``,
``load_state_dict(assign=True)``, ``zero_grad()``) is held against what the region reads and against when it runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from capturelint.findings import Around
from capturelint.lifecycle import around, gradients, may_rebind, story
from capturelint.lifecycle.life import Life
from capturelint.lifecycle.moments import Moments
from capturelint.lifecycle.places import Place
from capturelint.model import Confidence, Consequence
from capturelint.project.bindings import AssignedName
from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import dotted_name, is_true, keyword_value, last_name, walk_own
from capturelint.values import hierarchy
from capturelint.values.devices import is_dtype
from capturelint.values.domain import ExternalInstance, Instance, Unknown, Value, join, options
from capturelint.values.engine import Engine
from capturelint.values.hierarchy import is_module_object

#: methods of a module that put other tensors behind its parameters
_CASTS = frozenset(("half", "float", "double", "bfloat16", "type", "cpu", "to_empty"))
_PARAMETERS = frozenset(("Parameter", "UninitializedParameter"))
_CALLS = _CASTS | {"to", "set_", "setattr", "load_state_dict", "zero_grad", "register_parameter"}
_DRAWN_FROM = frozenset(("parameters", "named_parameters", "buffers", "named_buffers"))
_GRAD_HELP = (
    "keep the gradients' memory: `zero_grad(set_to_none=False)`; or capture the optimizer's step in the same graph"
)
_COPY_HELP = (
    "write into the tensor that the graph reads: `{text}.copy_(...)` (under `torch.no_grad()`), or capture again"
)
_MODULE_HELP = "do this before the capture, or capture again after it"


@dataclass(frozen=True, slots=True)
class _Replacement:
    """``subject`` is what is changed; ``node`` is reported, ``what`` says in words what becomes of it,
    with ``{text}`` for its source."""

    node: ast.AST
    subject: ast.expr
    what: str
    help: str
    confidence: Confidence = Confidence.LIKELY
    grads: bool = False
    #: whether it is a module is only known where the region calls it
    if_called: bool = False


_Candidate = tuple["FunctionInfo | None", ast.AST]


@dataclass(eq=False, repr=False, slots=True)
class _Candidates:
    """Statements of a module that may matter, by the attributes that a graph has to read for that, if any."""

    _all: list[_Candidate] = field(default_factory=list)
    _for_any: list[int] = field(default_factory=list)
    _by_name: dict[str, list[int]] = field(default_factory=dict)

    def add(self, function: FunctionInfo | None, node: ast.AST) -> None:
        names = _bound_attributes(node)
        if names is None:
            self._for_any.append(len(self._all))
        for name in names or ():
            self._by_name.setdefault(name, []).append(len(self._all))
        self._all.append((function, node))

    def naming(self, names: frozenset[str]) -> Iterator[_Candidate]:
        """What may matter to a graph that reads attributes of these names, in the order of the source."""
        places = {place for name in names for place in self._by_name.get(name, ())}
        return (self._all[place] for place in sorted(places.union(self._for_any)))


@dataclass(eq=False, repr=False, slots=True)
class Replacing:
    """The rule. What each module holds of statements that may matter is looked up once for all graphs."""

    _candidates: dict[Module, _Candidates] = field(default_factory=dict)

    def find(self, life: Life, moments: Moments) -> Iterator[Around]:
        names = life.names_read
        done: set[tuple[FunctionInfo | None, str]] = set()
        for module in life.modules_around:
            for function, node in self._of_module(life.engine, module).naming(names):
                if function in life.entered:
                    continue
                for each in _replacements(life.engine, function, module, node):
                    key = (function, ast.dump(each.subject) + each.help)
                    if key in done or (each.grads and not gradients.outside(life)):
                        continue  # cast there and back, or dropped twice: the first one does it
                    found = list(_judge(life, moments, function, module, each))
                    if found:
                        done.add(key)
                    yield from found

    def _of_module(self, engine: Engine, module: Module) -> _Candidates:
        if module not in self._candidates:
            found = _Candidates()
            for function, nodes in may_rebind.code_of(engine, module):
                for node in nodes:
                    if _may_replace(node):
                        found.add(function, node)
            self._candidates[module] = found
        return self._candidates[module]


def _may_replace(node: ast.AST) -> bool:
    """A look at the syntax alone."""
    if isinstance(node, ast.Assign):
        return any(
            isinstance(target, ast.Attribute)
            or (isinstance(target, ast.Subscript) and isinstance(target.value, ast.Attribute))
            for target in node.targets
        ) and not (isinstance(node.value, ast.Constant) and node.value.value is not None)
    return isinstance(node, ast.Call) and last_name(node.func) in _CALLS


def _bound_attributes(node: ast.AST) -> list[str] | None:
    """The plain attributes that a statement binds, where it matters only to who reads one of them."""
    if not isinstance(node, ast.Assign):
        return None
    found: list[str] = []
    for target in node.targets:
        if isinstance(target, ast.Subscript):
            return None
        if isinstance(target, ast.Attribute):
            if target.attr in ("data", "grad", "weight", "bias"):
                return None
            if isinstance(target.value, ast.Attribute) and isinstance(node.value, ast.Name):
                return None  # a part of a module out of view
            found.append(target.attr)
    return found


def _judge(
    life: Life, moments: Moments, function: FunctionInfo | None, module: Module, each: _Replacement
) -> Iterator[Around]:
    if not (_reads_gradients if each.grads else _reads)(life, function, module, each.subject):
        return
    if each.if_called and not _calls(life, function, module, each.subject):
        return
    if isinstance(each.node, ast.Attribute) and each.node.attr == "data" and _is_input(life, function, module, each):
        return  # CG501's
    sure = moments.between(function, module, each.node, lasts=True)
    if sure is None:
        return
    confidence = min(sure, each.confidence, key=lambda c: c.rank)
    text = module.segment(each.node, 48)
    what, help = each.what.replace("{text}", text), each.help.replace("{text}", text)
    message = f"{what}, but the graph captured at {story.where(life)} goes on using the old one"
    consequence = None
    if life.declaration.compiled:
        message = f"{what}: the compiled function at {story.where(life)} must record its CUDA graph again"
        consequence = Consequence.COST
    yield story.finding(
        life, "CG505", function, module, each.node, message, "replaced after capture", confidence, help=help,
        consequence=consequence,
    )  # fmt: skip


def _is_input(life: Life, function: FunctionInfo | None, module: Module, each: _Replacement) -> bool:
    """A tensor that the region reads by its own name, as against one of a module's parameters."""
    if not isinstance(each.subject, ast.Name):
        return False
    return bool(life.origins.same(function, module, each.subject).places & life.reads)


def _reads(life: Life, function: FunctionInfo | None, module: Module, subject: ast.expr) -> bool:
    """Whether the region reads what the statement changes, or something that it is a part of."""
    places = life.origins.within(function, module, subject).places
    return any(_is_module_place(place) for place in places & life.reads)


def _calls(life: Life, function: FunctionInfo | None, module: Module, subject: ast.expr) -> bool:
    """Whether the region's own code calls an object, which a tensor does not allow."""
    places = life.origins.same(function, module, subject).places
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, (ast.Name, ast.Attribute))
        and not places.isdisjoint(_named(life, holder, node.func))
        for holder, node in _own_code(life)
    )


def _named(life: Life, holder: FunctionInfo | None, node: ast.Name | ast.Attribute) -> Iterator[Place]:
    if isinstance(node, ast.Name):
        yield Place(holder if holder is not None else life.declaration.module, node.id)
    else:
        module = holder.module if holder is not None else life.declaration.module
        inner = node.value if node.attr == "forward" and isinstance(node.value, ast.Attribute) else node
        yield from life.origins.attribute(holder, module, inner)


def _own_code(life: Life) -> Iterator[tuple[FunctionInfo | None, ast.AST]]:
    """The nodes of the block, and of what it enters in the class that holds it."""
    for statement in life.declaration.body or ():
        yield from ((life.holder, node) for node in (statement, *walk_own(statement)))
    owner = around.owner_of(life.holder)
    for info in life.entered if owner is not None else ():
        if around.owner_of(info) is owner:
            yield from ((info, node) for node in walk_own(info.node))


def _reads_gradients(life: Life, function: FunctionInfo | None, module: Module, subject: ast.expr) -> bool:
    """Also an optimizer of parameters that are not in view, kept by the object that replays the backward."""
    if _reads(life, function, module, subject):
        return True
    kept = isinstance(subject, ast.Attribute) and function is not None and life.holder is not None
    if not kept or around.owner_of(function) is not around.owner_of(life.holder):
        return False
    value = _value(life.engine, function, module, subject)
    return bool(life.replays_in(function, module)) and any(
        isinstance(option, ExternalInstance) and option.cls.startswith("torch.optim.") for option in options(value)
    )


def _is_module_place(place: Place) -> bool:
    """A place that says which object is meant: names of modules and of what they define say nothing."""
    if not isinstance(place.owner, Module):
        return True
    return any(isinstance(definition, AssignedName) for definition in place.owner.names.get(place.name, ()))


def _replacements(
    engine: Engine, function: FunctionInfo | None, module: Module, node: ast.AST
) -> Iterator[_Replacement]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _by_assignment(engine, function, module, node, target)
    elif isinstance(node, ast.Call):
        yield from _by_call(engine, function, module, node)


def _by_assignment(
    engine: Engine, function: FunctionInfo | None, module: Module, node: ast.Assign, target: ast.expr
) -> Iterator[_Replacement]:
    if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Attribute):
        if target.value.attr in ("_parameters", "_buffers", "_modules"):
            yield _Replacement(target, target.value.value, "`{text}` is replaced", _MODULE_HELP)
        return
    if not isinstance(target, ast.Attribute):
        return
    if target.attr == "data":
        if _is_plain_tensor(engine, function, module, target.value):
            return  # an input: CG501
        what = "`{text} = ...` puts other memory behind the parameter"
        yield _Replacement(target, target.value, what, _COPY_HELP)
    elif target.attr == "grad" and isinstance(node.value, ast.Constant) and node.value.value is None:
        yield _Replacement(target, target.value, "`{text}` is dropped and made anew", _GRAD_HELP, grads=True)
    elif _makes_parameter(node.value):
        what = "`{text}` is bound to a new parameter"
        yield _Replacement(target, target, what, _COPY_HELP)
    elif isinstance(node.value, ast.Call) and last_name(node.value.func) == "make_graphed_callables":
        return  # the same module, with its graphs
    elif _copies_module(node.value, target):
        yield _Replacement(target, target, "`{text}` is bound to a copy", _MODULE_HELP, if_called=True)
    elif is_module_object(engine, _value(engine, function, module, node.value)) or _declared_module(
        function, node.value
    ):
        what = "`{text}` is bound to another module"
        yield _Replacement(target, target, what, _MODULE_HELP)


def _by_call(engine: Engine, function: FunctionInfo | None, module: Module, node: ast.Call) -> Iterator[_Replacement]:
    name = last_name(node.func)
    receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
    if receiver is None:
        if name == "setattr" and len(node.args) == 3:
            value = _value(engine, function, module, node.args[2])
            if _makes_parameter(node.args[2]) or is_module_object(engine, value):
                yield _Replacement(node, node.args[0], "`{text}` puts another one in place", _MODULE_HELP)
        return
    if name == "load_state_dict" and is_true(keyword_value(node, "assign")):
        help = "load in place: leave out `assign=True`, so that values are copied into the parameters"
        yield _Replacement(node, receiver, "`{text}` replaces every parameter", help)
    elif name == "zero_grad" and not _is_false(keyword_value(node, "set_to_none") or next(iter(node.args), None)):
        yield _Replacement(node, receiver, "`{text}` drops the gradients, which are made anew", _GRAD_HELP, grads=True)
    elif name in _CASTS or (name == "to" and _casts(engine, function, module, node)):
        value = _value(engine, function, module, receiver)
        open_value = any(isinstance(option, Unknown) for option in options(value))
        known = join(*(option for option in options(value) if not isinstance(option, Unknown)))
        if not is_module_object(engine, known) and not all(isinstance(option, Unknown) for option in options(value)):
            return
        yield _Replacement(node, receiver, "`{text}` replaces the parameters", _MODULE_HELP, if_called=open_value)
    elif name == "set_" and node.args and _is_drawn(function, receiver):
        yield _Replacement(node, receiver, "`{text}` puts other memory behind the parameter", _COPY_HELP)
    elif name == "register_parameter" and is_module_object(engine, _value(engine, function, module, receiver)):
        yield _Replacement(node, receiver, "`{text}` registers another tensor", _MODULE_HELP)


def _is_drawn(function: FunctionInfo | None, node: ast.expr) -> bool:
    """``for name, param in model.named_parameters():``"""
    return isinstance(node, ast.Name) and function is not None and any(
        isinstance(each, ast.For)
        and last_name(each.iter.func if isinstance(each.iter, ast.Call) else each.iter) in _DRAWN_FROM
        and any(isinstance(part, ast.Name) and part.id == node.id for part in ast.walk(each.target))
        for each in walk_own(function.node)
    )  # fmt: skip


def _casts(engine: Engine, function: FunctionInfo | None, module: Module, node: ast.Call) -> bool:
    """``.to(dtype)`` and ``.to("cpu")``: what is captured is on the device already, so ``.to("cuda")`` does nothing."""
    if keyword_value(node, "dtype") is not None:
        return True
    for given in (*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "device")):
        if isinstance(given, ast.Constant) and given.value == "cpu":
            return True
        if is_dtype(_value(engine, function, module, given)):
            return True
    return False


# -- what things are -------------------------------------------------------------------------------------------------


def _value(engine: Engine, function: FunctionInfo | None, module: Module, node: ast.expr) -> Value:
    return engine.evaluate_in(engine.scope_of(function, module), node)


def _is_plain_tensor(engine: Engine, function: FunctionInfo | None, module: Module, node: ast.expr) -> bool:
    """A static input that some object keeps, as against a parameter of a module."""
    if isinstance(node, ast.Attribute):
        owner = _value(engine, function, module, node.value)
        return any(
            isinstance(option, Instance) and not hierarchy.is_module(engine, option.site.cls)
            for option in options(owner)
        )
    return False


def _copies_module(value: ast.expr, target: ast.expr) -> bool:
    """``self.model = copy.deepcopy(self.model)``: parameters of its own."""
    return (
        isinstance(value, ast.Call)
        and last_name(value.func) == "deepcopy"
        and len(value.args) == 1
        and dotted_name(value.args[0]) == dotted_name(target)
    )


def _declared_module(function: FunctionInfo | None, value: ast.expr) -> bool:
    """A parameter that is declared as some module."""
    if function is None or not isinstance(value, ast.Name):
        return False
    declared = next((each.annotation for each in function.parameters() if each.arg == value.id), None)
    return declared is not None and dotted_name(declared) in ("nn.Module", "torch.nn.Module", "Module")


def _makes_parameter(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) in _PARAMETERS


def _is_false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False
