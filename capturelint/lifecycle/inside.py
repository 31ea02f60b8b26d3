"""Which static inputs an expression inside a region takes its values from, followed along the region's own calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from capturelint.lifecycle.life import Life
from capturelint.lifecycle.places import Place, argument
from capturelint.lifecycle.stores import paths_to_name
from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import last_name, store_targets, walk_own
from capturelint.values.call_sites import CallSite
from capturelint.values.facts import Context

_MAX_DEPTH = 16
#: calls after which the values of single rows no longer decide: other values stand in for them
_MASKING = frozenset(("where", "masked_fill", "masked_fill_", "clamp_min", "nan_to_num"))
_HOST_FACTS = frozenset(("shape", "dtype", "device", "ndim", "is_cuda", "layout"))


@dataclass(frozen=True, slots=True)
class Input:
    """A static input: the place that holds it, and its key where that is a container with constant keys."""

    place: Place
    key: str | None = None

    def meets(self, other: Input) -> bool:
        return self.place == other.place and (self.key == other.key or None in (self.key, other.key))


def inputs_at(life: Life, function: FunctionInfo | None, module: Module, node: ast.expr) -> frozenset[Input]:
    """The inputs that an expression outside the region may mean, views of them included."""
    key = key_of(node)
    return frozenset(Input(place, key) for place in life.origins.same(function, module, node).places & life.reads)


def key_of(node: ast.expr) -> str | None:
    """The constant key in ``bufs["ids"][:n]``."""
    while isinstance(node, (ast.Subscript, ast.Call, ast.Attribute)):
        if isinstance(node, ast.Subscript):
            if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
                return node.slice.value
            node = node.value
        elif isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Attribute):
                return None
            node = node.func.value
        else:
            node = node.value
    return None


@dataclass(eq=False, repr=False, slots=True)
class Inside:
    """Answers for one region.

    ``flows``: also through calls, whose results are computed row by row from their input. ``memory``: only where the
    expression is the input's own memory, not a copy of it.
    """

    life: Life
    flows: bool = False
    memory: bool = False
    #: of one question: what a node gave, and at which depth; a value has many ways back through names that are rebound
    _known: dict[tuple[Context, ast.AST], tuple[int, set[Input]]] = field(default_factory=dict)
    #: the assignments that may bind a name, by function and name
    _binding: dict[ast.AST, dict[str, list[ast.Assign]]] = field(default_factory=dict)

    def contexts(self) -> Iterator[tuple[Context, Sequence[ast.AST]]]:
        """Everything that the region runs: each context with the calls, assignments and subscripts of its own code."""
        body = self.life.declaration.body
        for context in self.life.reach.steps:
            if context is self.life.reach.entered.context:
                yield context, [each for statement in body or () for each in (statement, *walk_own(statement))]
            elif context.function is not None:
                yield context, context.function.acts

    def inputs(self, context: Context, node: ast.AST | None, depth: int = 0) -> set[Input]:
        """What ``node`` takes its values from. ``depth`` is for calls from here."""
        if node is None or depth > _MAX_DEPTH:
            return set()
        if depth == 0:
            self._known.clear()
        known = self._known.get((context, node))
        if known is None or known[0] > depth:
            self._known[context, node] = depth, set()
            known = self._known[context, node] = depth, self._inputs(context, node, depth)
        return known[1]

    def _inputs(self, context: Context, node: ast.AST, depth: int) -> set[Input]:
        if isinstance(node, ast.Name):
            return self._name(context, node, depth)
        if isinstance(node, ast.Attribute) and node.attr in _HOST_FACTS:
            return set()
        if isinstance(node, ast.Attribute):
            here = context.function if context.function is not None else self.life.holder
            found = set(inputs_at(self.life, here, context.module, node))
            return found or self.inputs(context, node.value, depth + 1)
        if isinstance(node, ast.Subscript):
            if self.memory and not _is_view(node.slice):
                return set()
            found = self.inputs(context, node.value, depth + 1)
            key = key_of(node)
            return {Input(each.place, key or each.key) for each in found}
        if isinstance(node, ast.Call):
            return self._call(context, node, depth)
        parts: list[ast.AST] = []
        if isinstance(node, ast.BinOp) and not self.memory:
            parts = [node.left, node.right]
        elif isinstance(node, (ast.Tuple, ast.List)):
            parts = list(node.elts)
        elif isinstance(node, ast.IfExp):
            parts = [node.body, node.orelse]
        elif isinstance(node, (ast.UnaryOp, ast.Starred, ast.NamedExpr)):
            parts = [node.operand if isinstance(node, ast.UnaryOp) else node.value]
        return {each for part in parts for each in self.inputs(context, part, depth + 1)}

    def _call(self, context: Context, node: ast.Call, depth: int) -> set[Input]:
        name = last_name(node.func)
        if name in _MASKING or name.endswith("_like") or name.startswith("new_"):
            return set()
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        if not self.flows:
            spec = self.life.engine.ops.lookup(f"torch.Tensor.{last_name(node.func)}")
            kinds = ("self",) if self.memory else ("same", "self", "tensor")
            passes = spec is not None and (spec.view or spec.returns.kind in kinds)
            return self.inputs(context, receiver, depth + 1) if receiver is not None and passes else set()
        found = set(self.inputs(context, receiver, depth + 1))
        for given in (*node.args, *(keyword.value for keyword in node.keywords)):
            found |= self.inputs(context, given, depth + 1)
        return found

    def _name(self, context: Context, node: ast.Name, depth: int) -> set[Input]:
        function = context.function
        if context is self.life.reach.entered.context:
            found = set(inputs_at(self.life, self.life.holder, context.module, node))
            for statement in self.life.declaration.body or ():
                for each in self._assignments(statement, node.id):
                    found |= self._assigned(context, each, node, depth)
            return found
        if function is None:
            return set()
        found = set()
        if self.memory:
            last = _last_binding(function.node, node)
            if last is not None:
                return self._assigned(context, last, node, depth)
        if any(parameter.arg == node.id for parameter in function.parameters()):
            for caller, call in self._calls_of(context):
                given_all = self._unstarred(caller, call)
                site = CallSite(caller.module, caller.function, given_all, bound=function.owner is not None)
                for given in argument(function, site, node.id):
                    found |= self.inputs(caller, given, depth + 1)
        for each in self._assignments(function.node, node.id):
            found |= self._assigned(context, each, node, depth)
        return found

    def _assignments(self, root: ast.AST, name: str) -> list[ast.Assign]:
        by_name = self._binding.get(root)
        if by_name is None:
            by_name = self._binding[root] = {}
            for each in (root, *walk_own(root)):
                if isinstance(each, ast.Assign):
                    bound = (part for target in each.targets for part in ast.walk(target) if isinstance(part, ast.Name))
                    for identifier in dict.fromkeys(part.id for part in bound):
                        by_name.setdefault(identifier, []).append(each)
        return by_name.get(name, [])

    def _assigned(self, context: Context, statement: ast.AST, name: ast.Name, depth: int) -> set[Input]:
        if not isinstance(statement, ast.Assign) or statement.lineno >= name.lineno:
            return set()
        found: set[Input] = set()
        for target in statement.targets:
            for path in paths_to_name(target, name.id):
                value: ast.expr = statement.value
                while path and isinstance(value, ast.Tuple) and path[0] < len(value.elts):
                    value, path = value.elts[path[0]], path[1:]
                found |= self.inputs(context, value, depth + 1)
        return found

    def _unstarred(self, caller: Context, call: ast.Call) -> ast.Call:
        """``model(*args)`` with the elements of the tuple that the caller binds ``args`` to."""
        function = caller.function if caller.function is not None else self.life.holder
        if function is None or not any(isinstance(each, ast.Starred) for each in call.args):
            return call
        given: list[ast.expr] = []
        for each in call.args:
            known = (
                function.assigned.get(each.value.id, [])
                if isinstance(each, ast.Starred) and isinstance(each.value, ast.Name)
                else []
            )
            if len(known) == 1 and isinstance(known[0], ast.Tuple):
                given.extend(known[0].elts)
            else:
                given.append(each)
        return ast.copy_location(ast.Call(call.func, given, call.keywords), call)

    def _calls_of(self, context: Context) -> Iterator[tuple[Context, ast.Call]]:
        """The calls in the region that enter a context."""
        for caller, frame, _ in context.callers:
            if caller not in self.life.reach.steps:
                continue
            root = caller.function.node if caller.function is not None else None
            if caller is self.life.reach.entered.context:
                root = self.life.declaration.node  # type: ignore[assignment]
            for node in walk_own(root, into_nested=True) if root is not None else ():
                if isinstance(node, ast.Call) and node.lineno == frame.line and self._may_enter(node, context):
                    yield caller, node

    def _may_enter(self, call: ast.Call, context: Context) -> bool:
        function = context.function
        assert function is not None
        if function.name in ("forward", "__call__"):
            return not isinstance(call.func, ast.Name) or not call.func.id[:1].isupper()
        return last_name(call.func) in (function.name, "apply", "checkpoint", "partial")


def _is_view(index: ast.expr) -> bool:
    """Slices and constants give a view; whatever may be a tensor gives a copy."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(isinstance(part, (ast.Slice, ast.Constant)) for part in parts)


def _last_binding(function: ast.AST, name: ast.Name) -> ast.AST | None:
    """The assignment before a use of a name that stands next to it."""
    found = [
        node
        for node in walk_own(function)
        if isinstance(node, (ast.Assign, ast.For, ast.With))
        and node.lineno < name.lineno
        and any(isinstance(target, ast.Name) and target.id == name.id for target in store_targets(node))
    ]
    return max(found, key=lambda node: node.lineno, default=None)
