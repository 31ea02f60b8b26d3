"""The bytes that a file holds where it may declare a region: what is asked first, before anything is parsed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capturelint.project.project import Project

#: calls that begin a capture
BEGINS = ("capture_begin", "cudaStreamBeginCapture", "cudaStreamBeginCaptureToGraph", "begin_da_body_capture")
#: how a file may come by the class: as a module's attribute, or imported from ``torch.cuda``, alone or in a list
GRAPH_CONTEXT = (b".graph", b"import graph", b"cuda import")
BEGIN_END = tuple(name.encode() for name in BEGINS)
GRAPHED_CALLABLES = (b"make_graphed_callables",)
COMPILED = (b"reduce-overhead", b"max-autotune", b"triton.cudagraphs")
MARKED = (b"capture_region", b"capturelint: region", b"capturelint:region")
_ALL = (GRAPH_CONTEXT, BEGIN_END, GRAPHED_CALLABLES, COMPILED, MARKED)


def may_declare(project: Project, patterns: Iterable[str], starts_capture: Iterable[str]) -> bool:
    """Whether the project may hold a region, told from bytes alone. ``patterns`` name functions that are regions,
    ``starts_capture`` functions and classes that record.
    """
    if any(project.search.any_holds(words) for words in _ALL):
        return True
    literals = [pattern.rpartition(":")[2].rpartition(".")[2] for pattern in patterns]
    if any(not re.fullmatch(r"\w+", literal) or project.search.defining(literal) for literal in literals):
        return True
    return any(project.search.calling(name.rpartition(".")[2]) for name in starts_capture)
