"""What a function does on the GPU that a capture in another thread forbids: it allocates, pins or waits."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from capturelint.lifecycle.setup.before import callees
from capturelint.lifecycle.setup.points import Point
from capturelint.project.definitions import FunctionInfo
from capturelint.project.syntax import dotted_name, is_true, last_name, walk_own
from capturelint.values.engine import Engine

_MAX_DEPTH = 3
_METHODS = ("cuda", "pin_memory", "synchronize")
_FUNCTIONS = ("synchronize", "empty_cache")


@dataclass(eq=False, repr=False, slots=True)
class CudaWork:
    engine: Engine
    _known: dict[FunctionInfo, Point | None] = field(default_factory=dict)

    def of(self, info: FunctionInfo, depth: int = 0) -> Point | None:
        """The first call in a function, or in what it calls, that allocates or waits on the device."""
        if info in self._known or depth > _MAX_DEPTH:
            return self._known.get(info)
        self._known[info] = None
        calls = [node for node in walk_own(info.node) if isinstance(node, ast.Call)]
        found = next((Point(info.module, info, call) for call in calls if uses_cuda(call)), None)
        for call in calls if found is None else ():
            for callee in callees(self.engine, Point(info.module, info, call), call):
                found = found or self.of(callee, depth + 1)
        self._known[info] = found
        return found


def uses_cuda(call: ast.Call) -> bool:
    name = last_name(call.func)
    dotted = dotted_name(call.func) or ""
    if dotted.startswith("torch.cuda."):
        return name in _FUNCTIONS
    if isinstance(call.func, ast.Attribute) and name in _METHODS:
        return True
    if any(keyword.arg == "pin_memory" and is_true(keyword.value) for keyword in call.keywords):
        return name != "DataLoader"
    named = [keyword.value for keyword in call.keywords if keyword.arg == "device"]
    if name == "to" and isinstance(call.func, ast.Attribute):
        named += call.args[:1]
    return any(isinstance(each, ast.Constant) and str(each.value).startswith("cuda") for each in named)
