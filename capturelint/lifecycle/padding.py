"""CG506: the first rows of a static buffer are filled before replay, and the rest still holds another request's data.

Padded rows compute garbage that nobody looks at, so a stale tail does no harm by itself. It does where the region
writes by it (padded rows then overwrite what others own), and where it reduces over all rows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from capturelint.findings import Around
from capturelint.lifecycle import story
from capturelint.lifecycle.inside import Input, Inside, inputs_at
from capturelint.lifecycle.life import Life
from capturelint.lifecycle.moments import Moments
from capturelint.lifecycle.places import Place
from capturelint.model import Confidence, Related
from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import last_name
from capturelint.values.changing import constructs

#: the position of the index among the arguments of methods that write by one
_INDEXED = {
    "index_copy_": 1, "index_add_": 1, "index_fill_": 1, "index_reduce_": 1, "index_put_": 0, "scatter_": 1,
    "scatter_add_": 1, "scatter_reduce_": 1,
}  # fmt: skip
_REDUCING = frozenset(("sum", "mean", "norm", "std", "var", "prod", "logsumexp"))
#: what mixes rows where it is told to work along them
_ALONG = frozenset(("softmax", "log_softmax", "amax", "amin", "argmax", "argmin", "max", "min", "sort", "argsort"))
_FUNCTIONS = ("torch", "F", "functional")
_FILLING = frozenset(("copy_", "fill_", "zero_"))


@dataclass(frozen=True, slots=True)
class _Write:
    """A write into ``buffer``: its first rows up to ``stop``, or (None) any other part of it or the whole."""

    function: FunctionInfo | None
    module: Module
    node: ast.AST
    buffer: ast.expr
    stop: str | None


def find(life: Life, moments: Moments) -> Iterator[Around]:
    if not life.is_block:
        return
    used = _Uses(life)
    partial = list(_into_inputs(life, partial=True))
    for write, inputs in partial:
        if _is_whole(life, write):
            continue
        how = used.harm(inputs)
        if how is None or moments.between(write.function, write.module, write.node, lasts=True) is None:
            continue
        # last, as functions hand over far more than they fill: where that comes from takes long to tell
        others = chain(partial, _into_inputs(life, partial=False))
        if not any(each.stop != write.stop and _meet(inputs, theirs) for each, theirs in others):
            yield _report(life, write, how)


def _into_inputs(life: Life, *, partial: bool) -> Iterator[tuple[_Write, frozenset[Input]]]:
    """What is written into the region's inputs beside the capture: of their first rows, or of any other part."""
    for module in dict.fromkeys((life.declaration.module, *(each.module for each in life.replays))):
        for function, written in _places_written(life, module, partial):
            if function in life.entered:
                continue
            found = [
                (write, inputs)
                for write, places in written
                if not places.isdisjoint(life.reads) and (inputs := inputs_at(life, function, module, write.buffer))
            ]
            if found and not _only_captures(life, function):
                yield from found


def _places_written(
    life: Life, module: Module, partial: bool
) -> list[tuple[FunctionInfo, list[tuple[_Write, frozenset[Place]]]]]:
    """What the functions that write do, and where that is kept, for all graphs alike."""

    def by(function: FunctionInfo) -> list[tuple[_Write, frozenset[Place]]]:
        return [
            (write, frozenset(life.origins.same(function, module, write.buffer).places))
            for write in (_writes(function, module) if not constructs(function, set()) else ())
            if (write.stop is not None) is partial
        ]

    return life.engine.remembered(
        ("places written", module, partial),
        lambda: [(function, written) for function in module.all_functions() if (written := by(function))],
    )


def _only_captures(life: Life, function: FunctionInfo) -> bool:
    return function in life.surroundings.capturing and not life.replays_in(function, function.module)


def _report(life: Life, write: _Write, how: tuple[str, Related]) -> Around:
    text = write.module.segment(write.buffer, 40)
    words, related = how
    return story.finding(
        life, "CG506", write.function, write.module, write.node,
        f"only the first rows of `{text}` are filled; the rest keeps an earlier request's data, and the region {words}",
        "leaves the tail as it was", Confidence.LIKELY,
        help=f"reset the tail before replay: `{text}[{write.stop}:].fill_(...)` with a value that does no harm",
        related=(related, story.captured_at(life), *story.replayed_at(life, write.function)),
    )  # fmt: skip


def _meet(ours: frozenset[Input], theirs: frozenset[Input]) -> bool:
    return any(mine.meets(other) for mine in ours for other in theirs)


# -- what is written on the replay side ------------------------------------------------------------------------------


def _writes(function: FunctionInfo, module: Module) -> Iterator[_Write]:
    for node in function.acts:
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            if isinstance(node.func, ast.Attribute) and name in _FILLING:
                yield _sliced(function, module, node, node.func.value)
            elif not (isinstance(node.func, ast.Attribute) and name.endswith("_")):
                for given in (*node.args, *(keyword.value for keyword in node.keywords)):
                    if isinstance(given, (ast.Name, ast.Attribute, ast.Subscript)):
                        yield _Write(function, module, node, given, None)  # a helper may pad it
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript):
                    yield _sliced(function, module, target, target)
                elif isinstance(target, ast.Attribute):
                    yield _Write(function, module, target, target, None)


def _sliced(function: FunctionInfo, module: Module, node: ast.AST, target: ast.expr) -> _Write:
    stop = None
    buffer = target
    if isinstance(target, ast.Subscript):
        first = target.slice.elts[0] if isinstance(target.slice, ast.Tuple) and target.slice.elts else target.slice
        if isinstance(first, ast.Slice):
            buffer = target.value
            if _is_start(first.lower) and first.upper is not None and not isinstance(first.upper, ast.Constant):
                stop = ast.unparse(first.upper)
    elif isinstance(target, ast.Call) and last_name(target.func) == "narrow" and len(target.args) == 3:
        if isinstance(target.func, ast.Attribute):
            buffer, stop = target.func.value, ast.unparse(target.args[2])
    return _Write(function, module, node, buffer, stop)


def _is_start(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value in (0, None))


def _is_whole(life: Life, write: _Write) -> bool:
    """Whether graphs are chosen by the very number of rows that is filled: then nothing is padded."""
    functions = {write.function, *(replay.function for replay in life.replays)} - {None}
    for function in functions:
        assert function is not None
        for node in function.acts:
            key: ast.expr | None = None
            if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
                key = node.slice
            elif isinstance(node, ast.Call) and last_name(node.func) in ("get", "setdefault") and node.args:
                key = node.args[0]
            if key is not None and any(_says(each, write.stop) for each in _spelled_out(function, key)):
                return True
    return False


def _spelled_out(function: FunctionInfo, key: ast.expr) -> list[ast.expr]:
    """A key, and what the name that it is was bound to."""
    return [key, *(function.assigned.get(key.id, []) if isinstance(key, ast.Name) else [])]


def _says(key: ast.expr, stop: str | None) -> bool:
    """Whether the number of rows is the key, or a part of it."""
    parts = key.elts if isinstance(key, ast.Tuple) else [key]
    return any(ast.unparse(part) == stop for part in parts)


# -- what the region does with it ------------------------------------------------------------------------------------


class _Uses:
    """The inputs by which a region writes, and those that it reduces over all rows."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self._known: list[tuple[set[Input], str, Related]] | None = None

    def harm(self, inputs: frozenset[Input]) -> tuple[str, Related] | None:
        if self._known is None:
            self._known = [*self._indexed(), *self._reduced()]
        for theirs, words, related in self._known:
            if _meet(inputs, frozenset(theirs)):
                return words, related
        return None

    def _indexed(self) -> Iterator[tuple[set[Input], str, Related]]:
        inside = Inside(self.life)
        for context, nodes in inside.contexts():
            for node in nodes:
                for index in _indexes(node):
                    related = Related(context.module.display, node.lineno, "writes by it here")  # type: ignore[attr-defined]
                    yield inside.inputs(context, index), "writes where all of its rows say", related

    def _reduced(self) -> Iterator[tuple[set[Input], str, Related]]:
        inside = Inside(self.life, flows=True)
        for context, nodes in inside.contexts():
            for node in nodes:
                operand = self._operand(node)
                if operand is not None:
                    related = Related(context.module.display, node.lineno, "reduces over all rows here")  # type: ignore[attr-defined]
                    yield inside.inputs(context, operand), "reduces over all of its rows", related

    def _operand(self, node: ast.AST) -> ast.expr | None:
        """What ``x.mean()`` or ``torch.sum(x, dim=0)`` reduces over its rows, or ``x.softmax(0)`` weighs along them."""
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            return None
        along = node.func.attr in _ALONG
        if not along and node.func.attr not in _REDUCING:
            return None
        is_function = last_name(node.func.value) in _FUNCTIONS
        given = node.args[1:] if is_function else node.args
        operand = node.args[0] if is_function and node.args else node.func.value
        dim = next(
            (keyword.value for keyword in node.keywords if keyword.arg in ("dim", "axis")), next(iter(given), None)
        )
        over_rows = (dim is None and not along) or (isinstance(dim, ast.Constant) and dim.value in (0, None))
        masked = any(isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mult) for each in ast.walk(operand))
        return operand if over_rows and not masked else None


def _indexes(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _INDEXED:
        position = _INDEXED[node.func.attr]
        named = next((keyword.value for keyword in node.keywords if keyword.arg in ("index", "indices")), None)
        if named is not None:
            yield named
        elif position < len(node.args):
            yield node.args[position]
    elif isinstance(node, (ast.Assign, ast.AugAssign)):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Subscript):
                index = target.slice
                yield from index.elts if isinstance(index, ast.Tuple) else [index]
