"""Which functions run around a replay: what they assign differs from one replay to the next."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import contains, dotted_name, last_name, walk_all, walk_own
from capturelint.values.domain import Function, Instance, Unknown, options

if TYPE_CHECKING:
    from capturelint.values.engine import Engine

#: how far the callers of a function are followed, and how many files a name may occur in
_MAX_CHAIN = 3
#: words in the names of methods that capture
_CAPTURING = ("captur", "graph", "warm", "record", "compile", "init")
_MAX_FILES = 24


@dataclass(eq=False, repr=False, slots=True)
class Replays:
    engine: Engine
    _functions: dict[FunctionInfo, None] | None = None
    _keys: set[str] | None = None
    _near: dict[FunctionInfo, bool] = field(default_factory=dict)
    _at_top: bool = False

    @property
    def functions(self) -> dict[FunctionInfo, None]:
        """All functions of the project that call some ``replay``, with those that they are nested in."""
        if self._functions is None:
            self._functions = {}
            for module in self.engine.project.modules(self.engine.project.search.calling("replay")):
                for holder, call in module.calls_named("replay"):
                    if not isinstance(call.func, ast.Attribute):
                        continue
                    self._at_top = self._at_top or holder is None
                    while holder is not None:
                        self._functions[holder] = None
                        holder = holder.parent
        return self._functions

    @property
    def any(self) -> bool:
        """Whether the project replays a graph in view; one that only marks regions does it elsewhere."""
        return bool(self.functions) or self._at_top

    def is_key(self, name: str) -> bool:
        """Whether graphs are looked up by something of this name: a graph is captured for each value then."""
        if self._keys is None:
            self._keys = {each for info in self.functions for each in _key_names(info)}
        return name in self._keys

    def near(self, function: FunctionInfo) -> bool:
        """Whether a function replays, is called by one that does, or calls one."""
        known = self._near.get(function)
        if known is None:
            self._near[function] = False  # while its callers are looked at
            known = self._near[function] = (
                function in self.functions or self._calls_replay(function) or self._called(function, _MAX_CHAIN)
            )
        return known

    def giving(self, function: FunctionInfo) -> Iterator[FunctionInfo]:
        """Functions that call it with a part of an object that replays, and don't have that capture afterwards."""
        if function.owner is not None:
            return
        for module, holder, call in self._calls(function):
            if holder is None or holder in self.functions or not self._means(module, holder, call, function):
                continue
            for given in (*call.args, *(keyword.value for keyword in call.keywords)):
                if isinstance(given, ast.Attribute) and isinstance(given.value, ast.Name):
                    if self._replays_itself(holder, given.value) and not _captures_after(holder, call, given.value.id):
                        yield holder

    def _replays_itself(self, holder: FunctionInfo, node: ast.expr) -> bool:
        scope = self.engine.function_scope(holder, self.engine.receiver_of(holder))
        return any(
            isinstance(option, Instance)
            and any(method in self.functions for method in option.site.cls.methods.values())
            for option in options(self.engine.evaluate_in(scope, node))
        )

    def _calls_replay(self, function: FunctionInfo) -> bool:
        names = {last_name(node.func) for node in walk_own(function.node) if isinstance(node, ast.Call)}
        return any(info.name in names and _same_part(info, function) for info in self.functions)

    def _steps_beside(self, holder: FunctionInfo, call: ast.Call) -> bool:
        """Whether each turn of a loop around a call also replays: ``sampler.set_scale(s)``, ``sampler.step(x)``."""
        for loop in walk_own(holder.node):
            if isinstance(loop, (ast.For, ast.AsyncFor, ast.While)) and contains(loop, call):
                names = {last_name(node.func) for node in walk_all(loop) if isinstance(node, ast.Call)}
                if any(info.name in names and _same_part(info, holder) for info in self.functions):
                    return True
        return False

    def _called(self, function: FunctionInfo, depth: int) -> bool:
        callers = [
            (module, holder, call) for module, holder, call in self._calls(function) if holder not in (None, function)
        ]
        for module, holder, call in callers:
            assert holder is not None
            if (holder in self.functions or self._steps_beside(holder, call)) and self._means(
                module, holder, call, function
            ):
                return True
        if depth > 1:
            for module, holder, call in callers:
                assert holder is not None
                if self._means(module, holder, call, function) and self._called(holder, depth - 1):
                    return True
        return False

    def _calls(self, function: FunctionInfo) -> Iterator[tuple[Module, FunctionInfo | None, ast.Call]]:
        name = "super" if function.name.startswith("__") and function.name != "__call__" else function.name
        modules = [function.module]
        modules.extend(self.engine.project.modules(self.engine.project.search.calling(name), _MAX_FILES))
        for module in dict.fromkeys(modules):
            for holder, call in module.calls_named(name):
                yield module, holder, call

    def _means(self, module: Module, holder: FunctionInfo, call: ast.Call, function: FunctionInfo) -> bool:
        """Whether a call by the function's name is one of it; in the same module a receiver may be unknown."""
        scope = self.engine.function_scope(holder, self.engine.receiver_of(holder))
        for option in options(self.engine.evaluate_in(scope, call.func)):
            if isinstance(option, Function) and option.info is function:
                return True
            if not isinstance(option, Function) and module is function.module:
                return isinstance(option, Unknown) or getattr(option, "path", "").startswith("?.")
        return False


def _captures_after(holder: FunctionInfo, call: ast.Call, name: str) -> bool:
    """``pipe.capture()`` below the call."""
    return any(
        isinstance(node, ast.Call)
        and node.lineno > call.lineno
        and (dotted_name(node.func) or "").startswith(f"{name}.")
        and any(word in last_name(node.func).lower() for word in _CAPTURING)
        for node in walk_own(holder.node)
    )


def _same_part(replaying: FunctionInfo, function: FunctionInfo) -> bool:
    """A call by name alone is taken for one of a function in the same module."""
    return replaying.module is function.module and replaying is not function


def _key_names(function: FunctionInfo) -> Iterator[str]:
    """The names in the keys by which a replaying function looks graphs up: ``self.graphs[bs]``, ``graphs.get(key)``."""
    found: list[ast.expr] = []
    for node in walk_own(function.node, into_nested=True):
        if isinstance(node, ast.Subscript) and _speaks_of_graphs(node.value):
            found.append(node.slice)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            if node.func.attr in ("get", "setdefault", "pop") and _speaks_of_graphs(node.func.value):
                found.append(node.args[0])
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            if _speaks_of_graphs(node.comparators[0]):
                found.append(node.left)
    seen: set[str] = set()
    while found:
        for each in ast.walk(found.pop()):
            name = each.attr if isinstance(each, ast.Attribute) else each.id if isinstance(each, ast.Name) else None
            if name is None or name in seen or name == "self":
                continue
            seen.add(name)
            yield name
            if isinstance(each, ast.Name):
                found.extend(value for value in function.assigned.get(name, ()) if _is_whole(value))


def _is_whole(value: ast.expr) -> bool:
    """A key that holds its parts as they are; what a call rounds up stands for many values."""
    if isinstance(value, ast.Call):
        name = last_name(value.func)
        return name[:1].isupper() or "key" in name.lower()
    return isinstance(value, (ast.Name, ast.Attribute, ast.Tuple))


#: what containers of captured graphs are called
_GRAPHS = ("graph", "entries", "runner", "captur", "cache", "pool", "bucket", "table", "by_")


def _speaks_of_graphs(node: ast.expr) -> bool:
    name = (dotted_name(node) or last_name(node)).lower()
    return any(word in name for word in _GRAPHS)
