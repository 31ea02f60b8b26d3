"""When a statement runs in the life of a graph: before its capture, or between capture and a replay."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from capturelint.lifecycle.around import owner_of
from capturelint.lifecycle.life import Life
from capturelint.lifecycle.order import Order, order_of
from capturelint.model import Confidence
from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import contains, last_name, walk_own
from capturelint.values.changing import constructs, only_sets_up

#: how far the callers of a function are asked when it runs
_MAX_DEPTH = 4


@dataclass(eq=False, repr=False, slots=True)
class Moments:
    """Answers for one graph. ``between`` is what rules ask."""

    life: Life
    _captures: dict[tuple[FunctionInfo | None, Module], list[ast.AST]] = field(default_factory=dict)

    def order(self, function: FunctionInfo | None, module: Module) -> Order:
        return order_of(self.life.engine, function.node if function is not None else module.tree)

    def replays(self, function: FunctionInfo | None, module: Module) -> list[ast.AST]:
        return [each.call for each in self.life.replays_in(function, module)]

    def captures(self, function: FunctionInfo | None, module: Module) -> list[ast.AST]:
        """Where a function captures: the region itself, and calls of functions by which it is captured."""
        key = (function, module)
        if key not in self._captures:
            found = list(self._find_captures(function, module))
            if self.life.is_replayed_by_call:  # the calls of a compiled function record at first, and then replay
                found = [each for each in found if each not in self.replays(function, module)]
            self._captures[key] = found
        return self._captures[key]

    def _find_captures(self, function: FunctionInfo | None, module: Module) -> Iterator[ast.AST]:
        declaration = self.life.declaration
        if function is declaration.holder and module is declaration.module:
            yield declaration.node
        names = {info.name for info in self.life.surroundings.capturing}
        names |= {
            info.owner.name for info in self.life.surroundings.capturing if info.owner and info.name == "__init__"
        }
        for node in walk_own(function.node if function is not None else module.top):
            if isinstance(node, ast.Call) and (last_name(node.func) in names or "__call__" in names):
                if id(node) in self.life.capture_calls:
                    yield node

    def between(
        self, function: FunctionInfo | None, module: Module, node: ast.AST, *, lasts: bool
    ) -> Confidence | None:
        """How sure it is that a statement runs after the capture and before a replay; None where it doesn't.

        ``lasts``: what the statement changes outlives the call of its function.
        """
        return self._between(function, module, node, lasts, 0, set())

    def _between(
        self, function: FunctionInfo | None, module: Module, node: ast.AST, lasts: bool, depth: int,
        seen: set[FunctionInfo | None],
    ) -> Confidence | None:  # fmt: skip
        order = self.order(function, module)
        replays, captures = self.replays(function, module), self.captures(function, module)
        if replays or captures:
            if self._replayed_after(order, node, replays, captures):
                return Confidence.CERTAIN
            if any(order.follows_directly(node, capture) or contains(capture, node) for capture in captures):
                return None  # the capture that follows reads what is there then
        if function is None:
            return None
        if captures and not replays and lasts and depth == 0 and self._follows_capture(order, node, captures):
            return Confidence.LIKELY  # who replays does so later
        if replays:
            # the next call of the function replays too
            return Confidence.CERTAIN if lasts and not constructs(function, set()) else None
        if not lasts or depth >= _MAX_DEPTH or function in seen:
            return None
        seen.add(function)
        if self._only_prepares(function):
            return None
        callers = self.life.origins.callers(function)
        if not callers:
            return self._as_entry(function)
        found = [
            self._between(site.holder, site.module, site.call, lasts, depth + 1, seen)
            for site in callers
            if site.holder is not function
        ]
        sure = [each for each in found if each is not None]
        return max(sure, key=lambda c: c.rank) if sure else None

    def _replayed_after(self, order: Order, node: ast.AST, replays: list[ast.AST], captures: list[ast.AST]) -> bool:
        """A replay may follow with no capture in between; one capture came before, here or elsewhere."""
        for replay in replays:
            if contains(node, replay) and not isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
                continue
            if not (order.may_follow(node, replay) or contains(node, replay)):
                continue
            if any(self._recaptures(order, node, capture, replay) for capture in captures):
                continue
            if not captures or any(order.may_follow(capture, node) for capture in captures):
                return True
        return False

    def _follows_capture(self, order: Order, node: ast.AST, captures: list[ast.AST]) -> bool:
        """The capturing function itself changes what was captured, at its end."""
        return bool(self.life.replays) and all(
            order.follows_directly(capture, node)
            and order.common_loop(capture, node) is None
            and not contains(capture, node)
            for capture in captures
        )

    def _recaptures(self, order: Order, node: ast.AST, capture: ast.AST, replay: ast.AST) -> bool:
        if not order.runs_whenever(capture, node):
            return False
        if order.follows_directly(node, capture):
            return order.follows_directly(capture, replay)
        # in another turn of the loop, before the replay there
        loop = order.common_loop(node, replay)
        return loop is not None and loop is order.common_loop(node, capture) and (
            not order.follows_directly(node, replay)
        )  # fmt: skip

    def _only_prepares(self, function: FunctionInfo) -> bool:
        surroundings = self.life.surroundings
        if constructs(function, set()) or function in surroundings.capturing:
            return True
        return surroundings.drops_graph(function)

    def _as_entry(self, function: FunctionInfo) -> Confidence | None:
        """A function that nobody in view calls: it may be called at any time, unless its name says otherwise."""
        if only_sets_up(function):
            return None
        owner, own = owner_of(function), self.life.surroundings.owner
        if owner is not None and own is not None:
            engine = self.life.engine
            if owner is own or owner in engine.mro(own) or own in engine.mro(owner):
                return Confidence.LIKELY
        if owner is None and function.module is self.life.declaration.module:
            return Confidence.LIKELY
        return Confidence.POSSIBLE
