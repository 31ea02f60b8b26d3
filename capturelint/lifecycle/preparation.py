"""CG508: what the eager path does before it runs the captured code, and the replay path doesn't.

Planning of attention metadata, offsets and the like runs on the host, outside the graph. Where the same class runs the
captured code without the graph too, what it calls there beforehand is held against what it calls before a replay.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from capturelint.findings import Around
from capturelint.lifecycle import around, story
from capturelint.lifecycle.life import Life, Replay
from capturelint.lifecycle.moments import Moments
from capturelint.lifecycle.places import Place
from capturelint.model import Confidence, Related
from capturelint.project.definitions import FunctionInfo
from capturelint.project.syntax import contains, last_name, store_targets, walk_own
from capturelint.values.domain import Function, options

#: methods of objects out of view that plan the next run
_PLANNING = frozenset(("plan", "begin_forward", "init_forward_metadata", "prepare_metadata"))
_MAX_DEPTH = 2
#: attributes and calls in the chain of one statement
_MAX_CHAIN = 20


def find(life: Life, moments: Moments) -> Iterator[Around]:
    if not life.is_block or life.holder is None:
        return
    rule = _Preparation(life, moments)
    eager = list(rule.eager_preparations())
    for replay in life.replays:
        if replay.depth or replay.function is None or not eager:
            continue
        missing = [each for each in eager if not rule.is_done(replay, each)]
        if missing:
            yield _report(life, replay, missing[0])


@dataclass(frozen=True, slots=True)
class _Prepares:
    """A call on the eager path; ``places``: what it writes of what the region reads."""

    function: FunctionInfo
    call: ast.Call
    name: str
    places: frozenset[Place]


def _report(life: Life, replay: Replay, missing: _Prepares) -> Around:
    module = missing.function.module
    text = module.segment(missing.call, 48)
    related = (
        Related(module.display, missing.call.lineno, "the eager path calls it here"),
        story.captured_at(life),
    )
    return story.finding(
        life, "CG508", replay.function, replay.module, replay.call,
        f"`{text}` prepares what the region reads on the eager path; nothing does so before this replay",
        "replays with the preparation of capture time",
        # two ways through one function are alternatives; two functions may be for different batches
        Confidence.LIKELY if missing.function is replay.function else Confidence.POSSIBLE,
        help=f"call `{missing.name}` before the replay too, writing into the tensors that the graph reads",
        related=related,
    )  # fmt: skip


def _is_short(chain: ast.expr) -> bool:
    """Whether a call is made on few others: nobody prepares by a statement of ten calls, and its text is long."""
    for _ in range(_MAX_CHAIN):
        if not isinstance(chain, (ast.Attribute, ast.Call)):
            return True
        chain = chain.value if isinstance(chain, ast.Attribute) else chain.func
    return False


@dataclass(eq=False, repr=False, slots=True)
class _Preparation:
    life: Life
    moments: Moments
    _writes: dict[FunctionInfo, frozenset[Place]] = field(default_factory=dict)

    def eager_preparations(self) -> Iterator[_Prepares]:
        """Calls that stand, as statements of their own, before the captured code is called without the graph."""
        captured = {
            ast.unparse(node.func)
            for statement in self.life.declaration.body or ()
            for node in (statement, *walk_own(statement))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_short(node.func)
        }
        last = {name.rpartition(".")[2] for name in captured}
        owner = around.owner_of(self.life.holder)
        for function in self.life.declaration.module.all_functions():
            if owner is None or function.owner is not owner or function in self.life.entered:
                continue
            if function in self.life.surroundings.capturing and not self.life.replays_in(function, function.module):
                continue  # warm-up
            calls = [node for node in function.acts if isinstance(node, ast.Call)]
            region = self.life.declaration.node
            alone: list[ast.Call] | None = None
            for eager in calls:
                if last_name(eager.func) not in last or ast.unparse(eager.func) not in captured:
                    continue
                if contains(region, eager):
                    continue
                order = self.moments.order(function, function.module)
                if alone is None:
                    alone = [call for call in calls if isinstance(order.statement(call), ast.Expr)]
                for call in alone:
                    if call is not eager and order.follows_directly(call, eager) and order.runs_whenever(call, eager):
                        yield from self._prepares(function, call)

    def _prepares(self, function: FunctionInfo, call: ast.Call) -> Iterator[_Prepares]:
        name = last_name(call.func)
        written = self._written_by(function, call, 0) & self.life.reads
        if written:
            yield _Prepares(function, call, name, frozenset(written))
        elif name in _PLANNING and isinstance(call.func, ast.Attribute):
            places = self.life.origins.same(function, function.module, call.func.value).places & self.life.reads
            if places:
                yield _Prepares(function, call, name, frozenset())

    def _written_by(self, function: FunctionInfo, call: ast.Call, depth: int) -> set[Place]:
        """The attributes that a call of a function of the project writes, itself or by what it calls."""
        engine = self.life.engine
        callee = engine.evaluate_in(engine.scope_of(function, function.module), call.func)
        found: set[Place] = set()
        for option in options(callee):
            if isinstance(option, Function) and option.info not in self.life.entered:
                found |= self._written_in(option.info, depth)
        return found

    def _written_in(self, info: FunctionInfo, depth: int) -> frozenset[Place]:
        if info in self._writes or depth > _MAX_DEPTH:
            return self._writes.get(info, frozenset())
        self._writes[info] = frozenset()
        found: set[Place] = set()
        for node in walk_own(info.node):
            for target in _written(node):
                while isinstance(target, (ast.Subscript, ast.Call)):
                    inner = target.value if isinstance(target, ast.Subscript) else target.func
                    target = inner.value if isinstance(target, ast.Call) and isinstance(inner, ast.Attribute) else inner
                if isinstance(target, (ast.Name, ast.Attribute)):
                    found |= self.life.origins.same(info, info.module, target).places
            if isinstance(node, ast.Call):
                found |= self._written_by(info, node, depth + 1)
        self._writes[info] = frozenset(found)
        return self._writes[info]

    def is_done(self, replay: Replay, missing: _Prepares) -> bool:
        """Whether the replay side calls the same, or writes the same."""
        functions = {replay.function, *(each.function for each in self.life.replays if each.via is replay.function)}
        for function in functions:
            if function is None:
                continue
            order = self.moments.order(function, function.module)
            theirs = [each.call for each in self.life.replays_in(function, function.module)]
            for node in walk_own(function.node):
                if not any(order.may_follow(node, call) for call in theirs):
                    continue
                if isinstance(node, ast.Call) and self._does(function, node, missing):
                    return True
                if any(self._writes_place(function, target, missing) for target in _written(node)):
                    return True
        return False

    def _does(self, function: FunctionInfo, call: ast.Call, missing: _Prepares) -> bool:
        name = last_name(call.func)
        if name and (name in missing.name or missing.name in name):
            return True
        return bool(missing.places & self._written_by(function, call, 0))

    def _writes_place(self, function: FunctionInfo, target: ast.expr, missing: _Prepares) -> bool:
        while isinstance(target, ast.Subscript):
            target = target.value
        if not isinstance(target, (ast.Name, ast.Attribute)):
            return False
        return bool(missing.places & self.life.origins.same(function, function.module, target).places)


def _written(node: ast.AST) -> list[ast.expr]:
    """What a node binds or writes in place."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        return [node.func.value] if name.endswith("_") and not name.endswith("__") else []
    return [target for target in store_targets(node) if not isinstance(target, ast.Name)]
