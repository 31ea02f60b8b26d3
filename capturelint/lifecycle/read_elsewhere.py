"""CG503 by other ways: a generator that is drawn out, what the next call of the function reads, another stream."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from capturelint.lifecycle.life import Replay
from capturelint.lifecycle.order import Order
from capturelint.lifecycle.outputs import Kept, Outputs
from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import contains, dotted_name, last_name, walk_own

_COLLECTING = frozenset(("list", "tuple", "sorted", "deque"))
#: calls by which the host or a stream waits for what another stream does
_WAITS = frozenset(("wait_event", "wait", "synchronize", "record", "record_event", "query"))


# -- generators ------------------------------------------------------------------------------------------------------


def driven(order: Order, replay: Replay, node: ast.AST) -> ast.AST | None:
    """The loop whose every turn draws a generator on, which replays for it: ``for y in runner.stream(batches):``."""
    if not _draws(replay):
        return None
    return next((loop for loop in order.loops(node) if isinstance(loop, (ast.For, ast.AsyncFor))
                 and contains(loop.iter, replay.call)), None)  # fmt: skip


def collected(outputs: Outputs, function: FunctionInfo | None, module: Module, node: ast.expr) -> Iterator[Kept]:
    """``list(runner.stream(batches))``, ``[y for y in runner.stream(batches)]``."""
    if isinstance(node, ast.Call):
        if last_name(node.func) in _COLLECTING and isinstance(node.func, ast.Name) and node.args:
            if _yields_output(outputs, node.args[0]):
                yield Kept(function, module, node.args[0], node, "collected over several replays")
    elif isinstance(node, (ast.ListComp, ast.SetComp)) and len(node.generators) == 1:
        drawn = node.generators[0]
        if isinstance(node.elt, ast.Name) and dotted_name(drawn.target) == node.elt.id:
            if _yields_output(outputs, drawn.iter):
                yield Kept(function, module, node.elt, node, "collected over several replays")


def _yields_output(outputs: Outputs, node: ast.expr) -> bool:
    replay = outputs.replay_of(node)
    return replay is not None and _draws(replay) and replay.via is not None and outputs.returns(replay.via)


def _draws(replay: Replay) -> bool:
    return replay.via is not None and any(
        isinstance(node, (ast.Yield, ast.YieldFrom)) for node in walk_own(replay.via.node)
    )


# -- what the next call reads ----------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False, slots=True)
class _Chains:
    """Where a function binds ``self.x`` and the like, and where it reads them, other than to ask which object it is."""

    bound: dict[str, list[ast.Assign]]
    read: dict[str, list[ast.Attribute]]

    @classmethod
    def of(cls, function: FunctionInfo) -> _Chains:
        found = cls({}, {})
        own = list(walk_own(function.node))
        asked = {id(part) for each in own if isinstance(each, ast.Compare) for part in (each.left, *each.comparators)
                 if any(isinstance(op, (ast.Is, ast.IsNot)) for op in each.ops)}  # fmt: skip
        for each in own:
            if isinstance(each, ast.Assign) and (name := dotted_name(each.targets[0])) is not None:
                found.bound.setdefault(name, []).append(each)
            elif isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Load) and id(each) not in asked:
                if (name := dotted_name(each)) is not None:
                    found.read.setdefault(name, []).append(each)
        return found


def at_the_next_call(
    outputs: Outputs, function: FunctionInfo | None, module: Module, order: Order, replays: list[Replay],
    node: ast.Assign,
) -> Iterator[Kept]:  # fmt: skip
    """``delta = self.y - self.last`` after a replay, and then ``self.last = self.y``: both are the same tensor."""
    target = node.targets[0]
    if function is None or function.name == "__init__" or not isinstance(target, ast.Attribute):
        return
    name = dotted_name(target)
    if name is None or not any(order.follows_directly(each.call, node) for each in replays):
        return
    if not outputs.life.outputs.isdisjoint(outputs.life.origins.attribute(function, module, target)):
        return  # the output's own place
    named = outputs.life.engine.remembered(("chains", function), lambda: _Chains.of(function))
    for use in named.read.get(name, ()):
        if any(order.follows_directly(each, use) for each in named.bound.get(name, ())):
            continue
        if any(order.follows_directly(each.call, use) for each in replays):
            for held in outputs.held(function, module, node.value):
                yield Kept(function, module, held, use, f"`{name}` is read after the next replay")
            return


# -- other streams ---------------------------------------------------------------------------------------------------


def on_another_stream(
    outputs: Outputs, function: FunctionInfo | None, module: Module, order: Order, replays: list[Replay],
    node: ast.With | ast.AsyncWith,
) -> Iterator[Kept]:  # fmt: skip
    """``with torch.cuda.stream(side): host.copy_(self.y)`` in a loop of replays that never waits for ``side``."""
    stream = next((each for item in node.items if (each := _stream(item.context_expr)) is not None), None)
    if stream is None or not any(_in_turn(order, each.call, node) for each in replays):
        return
    root = function.node if function is not None else module.tree
    if any(_waits_for(each, stream) for each in walk_own(root)):
        return
    for statement in node.body:
        for call in (statement, *walk_own(statement)):
            if not isinstance(call, ast.Call):
                continue
            receiver = [call.func.value] if isinstance(call.func, ast.Attribute) else []
            for given in (*call.args, *receiver):
                if isinstance(given, (ast.Name, ast.Attribute)) and outputs.gives(function, module, given):
                    yield Kept(function, module, given, call, f"read on `{stream}`, which the next replay "
                               "does not wait for")  # fmt: skip
                    return


def _stream(node: ast.expr) -> str | None:
    """``side`` of ``torch.cuda.stream(side)``."""
    if isinstance(node, ast.Call) and last_name(node.func) == "stream" and len(node.args) == 1:
        return dotted_name(node.args[0])
    return None


def _in_turn(order: Order, replay: ast.Call, node: ast.AST) -> bool:
    """Each turn of one loop replays, and then does this."""
    return (
        order.common_loop(replay, node) is not None
        and order.follows_directly(replay, node)
        and not contains(node, replay)
    )


def _waits_for(node: ast.AST, stream: str) -> bool:
    """Anything that may make the replays wait: for the stream, for an event, or the host for either."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr == "wait_stream":
        return dotted_name(node.func.value) != stream
    return node.func.attr in _WAITS
