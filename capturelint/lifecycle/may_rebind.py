"""The code that may put another tensor where a graph reads one, for the rules that look at each such statement."""

from __future__ import annotations

import ast

from capturelint.project.definitions import FunctionInfo
from capturelint.project.forms import REBINDING
from capturelint.project.module import Module
from capturelint.project.syntax import walk_own
from capturelint.values.changing import constructs
from capturelint.values.engine import Engine

Code = list[tuple[FunctionInfo | None, tuple[ast.AST, ...]]]


def code_of(engine: Engine, module: Module) -> Code:
    """A module's own code and what its functions do, but for those that construct, once for all rules and graphs."""

    def work_out() -> Code:
        functions = (info for info in module.all_functions("", form=REBINDING) if not constructs(info, set()))
        return [(None, tuple(walk_own(module.top))), *((info, info.acts) for info in functions)]

    return engine.remembered(("may rebind", module), work_out)
