"""CG503: a static output, or a view of one, that outlives the next replay, which writes over it.

Where an output is appended, stored or read again is judged in each function that replays, itself or through others
that return their output. A function that returns an output to nobody in view is a possible hazard alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from capturelint.findings import Around
from capturelint.lifecycle import other_graphs, read_elsewhere, story
from capturelint.lifecycle.life import Life, Replay
from capturelint.lifecycle.moments import Moments
from capturelint.lifecycle.order import Order
from capturelint.lifecycle.outputs import Kept, Outputs
from capturelint.model import Confidence, Related
from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import contains, store_targets, walk_own

_ADDING = frozenset(("append", "appendleft", "add", "insert", "extend", "put", "put_nowait", "setdefault"))
_MAX_CHAIN = 3


def find(life: Life, moments: Moments) -> Iterator[Around]:
    outputs = Outputs(life, moments)
    rule = _Keeping(life, moments, outputs)
    for function, module in dict.fromkeys((each.function, each.module) for each in life.replays):
        if function is not None and function in life.entered:
            continue
        for kept in rule.kept_in(function, module):
            yield from rule.report(kept)
    yield from rule.handed_out()


@dataclass(eq=False, repr=False, slots=True)
class _Keeping:
    life: Life
    moments: Moments
    outputs: Outputs

    # -- what keeps an output in a function that replays -------------------------------------------------------------

    def kept_in(self, function: FunctionInfo | None, module: Module) -> Iterator[Kept]:
        replays = self.life.replays_in(function, module)
        order = self.moments.order(function, module)
        root = function.node if function is not None else module.tree
        for node in walk_own(root):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDING:
                for given in node.args[-1:]:
                    yield from self._added(function, module, order, replays, node, node.func.value, given)
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Subscript):
                        yield from self._added(function, module, order, replays, node, target.value, node.value)
                yield from self._read_later(function, module, order, replays, node)
                yield from read_elsewhere.at_the_next_call(self.outputs, function, module, order, replays, node)
            elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp)):
                yield from self._comprehended(function, module, replays, node)
                yield from read_elsewhere.collected(self.outputs, function, module, node)
            elif isinstance(node, (ast.With, ast.AsyncWith)):
                yield from read_elsewhere.on_another_stream(self.outputs, function, module, order, replays, node)
            elif isinstance(node, (ast.BinOp, ast.Tuple, ast.List, ast.Call)):
                yield from read_elsewhere.collected(self.outputs, function, module, node)
                yield from self._side_by_side(function, module, node)

    def _added(
        self, function: FunctionInfo | None, module: Module, order: Order, replays: list[Replay], node: ast.AST,
        container: ast.expr, value: ast.expr,
    ) -> Iterator[Kept]:  # fmt: skip
        """Put into a container that outlives the replay: one made outside the loop, or an object's."""
        held = list(self.outputs.held(function, module, value))
        if not held:
            return
        before = [r for r in replays if order.follows_directly(r.call, node) or contains(node, r.call)]
        loop = next((found for r in before if (found := order.common_loop(r.call, node)) is not None), None)
        loop = loop or next((found for r in before if (found := read_elsewhere.driven(order, r, node))), None)
        if loop is not None and self._captures_in(function, module, loop):
            return  # each turn has a graph of its own
        base = container
        while isinstance(base, (ast.Subscript, ast.Attribute)):
            base = base.value
        made_in_loop = isinstance(base, ast.Name) and isinstance(container, ast.Name) and loop is not None and any(
            isinstance(target, ast.Name) and target.id == base.id
            for each in ast.walk(loop) for target in store_targets(each)
        )  # fmt: skip
        if not before or made_in_loop or self._comes_from(function, module, held[0], container):
            return
        if loop is not None or (isinstance(container, ast.Attribute) and self._called_again(function)):
            text = module.segment(container, 32)
            for each in held:
                yield Kept(function, module, each, node, f"kept in `{text}`")

    def _comes_from(
        self, function: FunctionInfo | None, module: Module, value: ast.expr, container: ast.expr
    ) -> bool:  # fmt: skip
        """The graph's own outputs by key: storing one there is how it is kept for replays."""
        while isinstance(container, ast.Subscript):
            container = container.value
        if not isinstance(container, ast.Attribute):
            return False
        places = set(self.life.origins.attribute(function, module, container))
        return not places.isdisjoint(self.life.origins.same(function, module, value).places)

    def _captures_in(self, function: FunctionInfo | None, module: Module, loop: ast.AST) -> bool:
        return any(contains(loop, each) for each in self.moments.captures(function, module))

    def _called_again(self, function: FunctionInfo | None) -> bool:
        return function is not None and function.name != "__init__"

    def _comprehended(
        self, function: FunctionInfo | None, module: Module, replays: list[Replay],
        node: ast.ListComp | ast.SetComp | ast.DictComp,
    ) -> Iterator[Kept]:  # fmt: skip
        value = node.value if isinstance(node, ast.DictComp) else node.elt
        if any(contains(value, replay.call) for replay in replays):
            for each in self.outputs.held(function, module, value):
                yield Kept(function, module, each, node, "collected over several replays")

    def _side_by_side(self, function: FunctionInfo | None, module: Module, node: ast.expr) -> Iterator[Kept]:
        """``run(a) - run(b)``: the second replay writes over what the first gave, before they meet."""
        if isinstance(node, ast.BinOp):
            parts = [node.left, node.right]
        elif isinstance(node, ast.Call):
            parts = [*node.args, *(keyword.value for keyword in node.keywords)]
        else:
            parts = list(node.elts) if isinstance(node, (ast.Tuple, ast.List)) else []
        calls = [
            part for part in parts
            if isinstance(base := self.outputs.base(part), ast.Call) and self.outputs.call_gives(base)
        ]  # fmt: skip
        if len(calls) > 1 and self._may_be_one(calls):
            yield Kept(function, module, calls[0], node, "read after the next replay")

    def _may_be_one(self, parts: list[ast.expr]) -> bool:
        """Whether two of several replays may be of one graph."""
        replays = [self.outputs.replay_of(self.outputs.base(part)) for part in parts]
        known = [each for each in replays if each is not None]
        return any(
            not other_graphs.are_different(self.life, first, second)
            for index, first in enumerate(known)
            for second in known[index + 1 :]
        )

    def _read_later(
        self, function: FunctionInfo | None, module: Module, order: Order, replays: list[Replay], node: ast.Assign
    ) -> Iterator[Kept]:
        """``a = run(x)``, another replay, and then a look at ``a``."""
        target = node.targets[0]
        if not isinstance(target, ast.Name) or len(node.targets) > 1:
            return
        root = function.node if function is not None else module.tree
        body = self.life.declaration.body or []
        if any(node is each for statement in body for each in ast.walk(statement)):
            return
        held = list(self.outputs.held(function, module, node.value))
        if not held or not self._freshly_replayed(order, replays, node):
            return
        uses = [
            each
            for each in walk_own(root, into_nested=False)
            if isinstance(each, ast.Name) and each.id == target.id and isinstance(each.ctx, ast.Load)
        ]
        bindings = [
            each for each in walk_own(root)
            if any(isinstance(part, ast.Name) and part.id == target.id for part in store_targets(each))
        ]  # fmt: skip
        source = next((each for each in replays if contains(node, each.call)), None)
        for replay in replays:
            if contains(node, replay.call) or not order.may_follow(node, replay.call):
                continue
            if source is not None and other_graphs.are_different(self.life, source, replay):
                continue
            for use in uses:
                if self._still_held(function, module, order, node, replay, use, bindings):
                    yield Kept(function, module, held[0], use, f"`{target.id}` is read after the next replay")
                    return

    def _freshly_replayed(self, order: Order, replays: list[Replay], node: ast.AST) -> bool:
        """What a name gets before any replay is the output's own name; it is meant to be read after each."""
        return any(contains(node, each.call) or order.follows_directly(each.call, node) for each in replays)

    def _still_held(
        self, function: FunctionInfo | None, module: Module, order: Order, node: ast.Assign, between: Replay,
        use: ast.Name, bindings: list[ast.AST],
    ) -> bool:  # fmt: skip
        """Whether the use may see what ``node`` bound, with the replay in between."""
        replay = between.call
        if order.follows_directly(node, replay) and order.follows_directly(replay, use):
            return not any(
                each is not node
                and order.follows_directly(node, each)
                and order.follows_directly(each, use)
                and order.runs_whenever(each, use)
                for each in bindings
            )
        loop = order.common_loop(node, replay)
        if loop is None or order.common_loop(replay, use) is None:
            return False
        if any(contains(loop, each) for each in self.moments.captures(function, module)):
            return False
        if other_graphs.take_turns(order, between, loop):
            return False  # the next turn's replay writes over another output
        # in the next turn: first the replay, then the use, and only then the name is bound anew
        return order.follows_directly(replay, use) and order.follows_directly(use, node) and not any(
            order.follows_directly(each, use) and order.common_loop(each, use) is loop for each in bindings
        )  # fmt: skip

    # -- what is handed out ------------------------------------------------------------------------------------------

    def handed_out(self) -> Iterator[Around]:
        """Functions that replay and return an output: possibly a hazard, and likely one where a caller keeps it."""
        for function in dict.fromkeys(each.function for each in self.life.replays):
            if function is None or function in self.life.entered or not self.outputs.returns(function):
                continue
            sites = [each for each in self.life.replays if each.via is function]
            if sites or function is self.life.holder:
                continue  # its callers say what becomes of it
            for node in self.outputs.returned(function):
                if isinstance(node, ast.Call) or self._is_forwarding(function):
                    continue
                yield self._finding(
                    Kept(function, function.module, node, node, "returned", Confidence.POSSIBLE), ()
                )  # fmt: skip

    def _is_forwarding(self, function: FunctionInfo) -> bool:
        return not any(each.depth == 0 for each in self.life.replays_in(function, function.module))

    def report(self, kept: Kept) -> Iterator[Around]:
        """The finding at the output that is kept, with the keeper, and the ``return`` that handed the output out."""
        related = [Related(kept.module.display, getattr(kept.by, "lineno", 1), f"{kept.how} here")]
        related.extend(self._sources(kept.function, kept.module, kept.node, 0))
        yield self._finding(kept, tuple(related))

    def _sources(
        self, function: FunctionInfo | None, module: Module, node: ast.expr, depth: int
    ) -> Iterator[Related]:  # fmt: skip
        call = self._source_call(function, module, node)
        replay = self.outputs.replay_of(call) if call is not None else None
        if replay is None or replay.via is None or depth >= _MAX_CHAIN:
            return
        for value in self.outputs.returned(replay.via):
            if not isinstance(value, ast.Call):
                yield Related(replay.via.module.display, value.lineno, "returned without a copy here")
            yield from self._sources(replay.via, replay.via.module, value, depth + 1)

    def _source_call(self, function: FunctionInfo | None, module: Module, node: ast.expr) -> ast.Call | None:
        """The call that gave the output, where the expression is one, or a name that was bound to one."""
        base = self.outputs.base(node)
        if isinstance(base, ast.Name):
            for value in self.outputs.bound_to(function, module, base):
                if self.outputs.gives(function, module, value):
                    return self._source_call(function, module, value)
            return None
        return base if isinstance(base, ast.Call) else None

    def _finding(self, kept: Kept, related: tuple[Related, ...]) -> Around:
        from capturelint.fixes.in_place import cloned

        life, module = self.life, kept.module
        text = module.segment(kept.node, 48)
        message = f"`{text}` is a static output, {kept.how}: the next replay writes over it"
        if kept.how == "returned":
            message = f"`{text}` is a static output: it holds good until the next replay, whoever it is returned to"
        if life.declaration.compiled:
            message = f"`{text}` is a CUDA graph's output, {kept.how}: the next call overwrites it"
        return story.finding(
            life, "CG503", kept.function, module, kept.node, message, "overwritten by the next replay", kept.confidence,
            help=f"keep a copy: `{text}.clone()`",
            related=(*related, story.captured_at(life), *story.replayed_at(life, kept.function)),
            fix=cloned(module, kept.node),
        )  # fmt: skip
