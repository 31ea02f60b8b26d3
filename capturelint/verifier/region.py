"""A piece of user code that can be run again and again: a function with its arguments, or a block of a function."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Protocol

import torch
from torch.utils._pytree import tree_leaves

from capturelint.verifier.hooks import cached_autocast
from capturelint.verifier.storage import Died, hold, modes_now, recall


class Region(Protocol):
    """Code to run, the host names that it can reach, and where it stands."""

    path: str
    line: int
    name: str

    def call(self) -> Any: ...

    def roots(self) -> Mapping[str, Any]: ...


@dataclass
class FunctionRegion:
    """A function called with the same (static) arguments every time."""

    path: str
    line: int
    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    keywords: dict[str, Any] = field(default_factory=dict)

    def call(self) -> Any:
        return self.function(*self.arguments, **self.keywords)

    def roots(self) -> Mapping[str, Any]:
        import sys

        function = getattr(self.function, "__func__", self.function)
        found: dict[str, Any] = {}
        module = sys.modules.get(getattr(function, "__module__", "") or "")
        if module is not None:
            found[module.__name__.rsplit(".", 1)[-1]] = module
        owner = getattr(self.function, "__self__", None)
        if owner is not None:
            found["self"] = owner
        found["function"] = function
        return found


@dataclass
class BlockRegion:
    """The statements of a ``with`` block (or between two calls), run in a copy of their function's names.

    ``names`` are those of the frame when the block was reached. What the block assigns goes to a namespace of its own,
    which ``call`` returns, so that the frame itself never notices.
    """

    path: str
    line: int
    name: str
    code: CodeType
    scope: dict[str, Any]
    names: dict[str, Any]
    assigned: tuple[str, ...]
    modes: Callable[[], AbstractContextManager[None]]
    #: the type that each name's value had at capture
    kinds: dict[str, type]
    #: the line that entered autocast with its weight cache on, where that is outside of the block
    autocast: tuple[str, int] | None
    #: the frame while it runs; whoever made the region lets go of it when the frame ends
    frame: FrameType | None = None
    #: names that the replaying function has other values for
    overrides: dict[str, Any] = field(default_factory=dict)

    def call(self) -> Any:
        """Runs the block. Raises Died where a name's value is gone."""
        space = {**self.scope, **self._values(), **self.overrides}
        with self.modes():
            exec(self.code, space)
        return {name: space[name] for name in self.assigned if name in space}

    def _values(self) -> dict[str, Any]:
        if self.frame is not None:
            return dict(self.frame.f_locals)
        used = set(self.code.co_names) - set(self.overrides)
        return {name: recall(name, value) for name, value in self.names.items() if name in used or callable(value)}

    def take_over(self, frame: FrameType | None) -> None:
        """Takes plain values and objects from ``frame``, which replays the graph, for names of the block's."""
        self.overrides = {}
        if frame is None or frame is self.frame:
            return
        theirs = frame.f_locals
        for name in set(self.code.co_names) & set(theirs):
            kind = self.kinds.get(name)
            value = theirs[name]
            if kind is not type(value) or isinstance(value, (torch.Tensor, torch.nn.Module)) or callable(value):
                continue
            if name == "self" or isinstance(value, (torch.cuda.CUDAGraph, torch.cuda.Stream)):
                continue
            self.overrides[name] = value

    def variations(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The names taken over, with one number changed in each: (what is changed, the names)."""
        for name, value in self.overrides.items():
            if (changed := another(value)) is not None:
                yield f"`{name}` {changed!r} instead of {value!r}", {**self.overrides, name: changed}
            elif hasattr(value, "__dict__"):
                for field_name, held in vars(value).items():
                    if (changed := another(held)) is not None:
                        other = copy.copy(value)
                        object.__setattr__(other, field_name, changed)
                        text = f"`{name}.{field_name}` {changed!r} instead of {held!r}"
                        yield text, {**self.overrides, name: other}

    def locals(self) -> dict[str, Any]:
        """The names of the frame that still have a value."""
        if self.frame is not None:
            return dict(self.frame.f_locals)
        found = {}
        for name, value in self.names.items():
            try:
                found[name] = recall(name, value)
            except Died:
                continue
        return found

    def let_go(self) -> None:
        """The frame ends: keeps what its names hold now, as far as that lives on."""
        if self.frame is not None:
            self.names = {name: hold(value) for name, value in self.frame.f_locals.items()}
            self.frame = None

    def roots(self) -> Mapping[str, Any]:
        import sys

        module = sys.modules.get(self.scope.get("__name__", ""))
        found = {name: value for name, value in self.locals().items() if not isinstance(value, torch.Tensor)}
        if module is not None:
            found[module.__name__.rsplit(".", 1)[-1]] = module
        return found


def another(value: Any) -> Any:
    """Another number of the same kind, near by; None for what is no number."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value - 1 if value > 1 else value + 1
    if isinstance(value, float):
        return value * 0.5 if value else 0.5
    return None


class NotExtractable(Exception):
    """The block cannot be run by itself; the message says why."""


def block_of(frame: FrameType) -> BlockRegion:
    """The body of the ``with`` statement that ``frame`` is entering. Raises NotExtractable."""
    path = frame.f_code.co_filename
    tree = _parse(path)
    statements = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.With)
        and node.lineno <= frame.f_lineno <= node.body[0].lineno - (node.lineno != node.body[0].lineno)
    ]
    if not statements:
        raise NotExtractable("no with statement on the line that begins the capture")
    statement = max(statements, key=lambda node: node.lineno)
    return _block(frame, tree, statement.lineno, statement.body, statement)


def between_calls(frame: FrameType) -> BlockRegion:
    """The statements after the ``capture_begin()`` that ``frame`` is calling, up to ``capture_end()``."""
    tree = _parse(frame.f_code.co_filename)
    for suite in _suites(tree):
        for index, statement in enumerate(suite):
            if statement.lineno <= frame.f_lineno <= (statement.end_lineno or 0) and isinstance(statement, ast.Expr):
                for end in range(index + 1, len(suite)):
                    last = suite[end]
                    if isinstance(last, ast.Try) and not _ends_capture(last.body) and _ends_capture(last.finalbody):
                        body = [*suite[index + 1 : end], *last.body]
                        return _block(frame, tree, statement.lineno, body, None)
                    if _ends_capture([last]):
                        return _block(frame, tree, statement.lineno, suite[index + 1 : end], None)
    raise NotExtractable("no capture_end() in the same suite as capture_begin()")


def _ends_capture(body: list[ast.stmt]) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr == "capture_end" for part in body for node in ast.walk(part)
    )


def _parse(path: str) -> ast.Module:
    try:
        return ast.parse(Path(path).read_bytes(), path)
    except (OSError, SyntaxError, ValueError) as error:
        raise NotExtractable(f"its source cannot be read: {error}") from error


def _suites(tree: ast.Module) -> list[list[ast.stmt]]:
    return [
        suite
        for node in ast.walk(tree)
        for suite in (getattr(node, "body", None), getattr(node, "orelse", None), getattr(node, "finalbody", None))
        if isinstance(suite, list) and suite and isinstance(suite[0], ast.stmt)
    ]


_OPAQUE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def _block(
    frame: FrameType, tree: ast.Module, line: int, body: list[ast.stmt], statement: ast.With | None
) -> BlockRegion:
    for node in _inside(body):
        if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Nonlocal)):
            raise NotExtractable(f"the block holds {type(node).__name__.lower()} on line {node.lineno}")
    body = [copy.deepcopy(part) for part in body]
    others = list(statement.items) if statement is not None else []
    if len(others) > 1:
        # the other context managers of the same statement: those after the graph's belong to the block
        body = _with_inner_managers(others, body)
    module = ast.Module(_mangled(body, frame), [])
    ast.fix_missing_locations(module)
    code = compile(module, frame.f_code.co_filename, "exec", dont_inherit=True)
    code = code.replace(co_name=frame.f_code.co_name)
    assigned = sorted({node.id for part in body for node in ast.walk(part) if _is_store(node)})  # type: ignore[attr-defined]
    # in a loop the names go on to the next round while this graph is replayed: those of now are kept
    looped = _in_loop(tree, line)
    return BlockRegion(
        frame.f_code.co_filename,
        line,
        getattr(frame.f_code, "co_qualname", frame.f_code.co_name),
        code,
        frame.f_globals,
        {name: hold(value) for name, value in frame.f_locals.items()} if looped else {},
        tuple(assigned),
        modes_now(),
        {name: type(value) for name, value in frame.f_locals.items()},
        cached_autocast(),
        None if looped else frame,
    )


def _in_loop(tree: ast.Module, line: int) -> bool:
    """Whether the statement on ``line`` stands in a loop of its own function."""
    loops: list[ast.AST] = []
    functions: list[ast.AST] = []
    for node in ast.walk(tree):
        if getattr(node, "lineno", line + 1) <= line <= (getattr(node, "end_lineno", 0) or 0):
            if isinstance(node, (ast.For, ast.While, ast.AsyncFor)):
                loops.append(node)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                functions.append(node)
    start = max((node.lineno for node in functions), default=0)  # type: ignore[attr-defined]
    return any(node.lineno >= start for node in loops)  # type: ignore[attr-defined]


def _is_store(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _with_inner_managers(items: list[ast.withitem], body: list[ast.stmt]) -> list[ast.stmt]:
    for index, item in enumerate(items):
        if "graph" in ast.unparse(item.context_expr).rsplit("(", 1)[0] or "graph(" in ast.unparse(item.context_expr):
            inner = items[index + 1 :]
            if inner:
                wrapped = ast.With(items=copy.deepcopy(inner), body=body)
                return [ast.copy_location(wrapped, body[0])]
            return body
    return body


def _inside(body: list[ast.stmt]) -> list[ast.AST]:
    found: list[ast.AST] = []
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, _OPAQUE):
            continue
        found.append(node)
        waiting.extend(ast.iter_child_nodes(node))
    return found


def _mangled(body: list[ast.stmt], frame: FrameType) -> list[ast.stmt]:
    """Private names (``self.__x``) as the class of the frame's function spells them."""
    qualified = getattr(frame.f_code, "co_qualname", "")
    owner = qualified.rsplit(".", 2)[-2] if qualified.count(".") else ""
    if not owner or owner.startswith("<"):
        return body
    for part in body:
        for node in ast.walk(part):
            if isinstance(node, ast.Attribute) and node.attr.startswith("__") and not node.attr.endswith("__"):
                node.attr = f"_{owner.lstrip('_')}{node.attr}"
    return body


def tensors_of(value: Any) -> list[torch.Tensor]:
    """The tensors in a result, in order; also those in dataclasses and objects one level down."""
    found = []
    for leaf in tree_leaves(value):
        if isinstance(leaf, torch.Tensor):
            found.append(leaf)
        elif hasattr(leaf, "__dict__") and not isinstance(leaf, (type, torch.nn.Module)) and not callable(leaf):
            found.extend(item for item in vars(leaf).values() if isinstance(item, torch.Tensor))
    return found
