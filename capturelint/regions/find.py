"""Finds every region that a set of files declares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from capturelint.project.module import Module
from capturelint.regions import begin_end, compiled, configured, graph_context, graphed_callables, marked
from capturelint.regions.declaration import Declaration
from capturelint.source.files import SourceFile
from capturelint.source.prefilter import mentions_any
from capturelint.values.engine import Engine

_FINDERS: tuple[tuple[tuple[bytes, ...], Callable[[Engine, Module], Iterator[Declaration]]], ...] = (
    (graph_context.NEEDLES, graph_context.find),
    (begin_end.NEEDLES, begin_end.find),
    (graphed_callables.NEEDLES, graphed_callables.find),
    (compiled.NEEDLES, compiled.find),
    (marked.NEEDLES, marked.find),
)
NEEDLES = tuple(needle for needles, _ in _FINDERS for needle in needles)


def find_regions(
    engine: Engine, files: Iterable[SourceFile], patterns: Sequence[tuple[str, tuple[str, ...]]] = ()
) -> list[Declaration]:
    """The regions that ``files`` declare, in the order of files and lines, and those that config names."""
    found: list[Declaration] = []
    chosen = {file.path for file in files}
    for file in engine.project.files:
        if file.path not in chosen:
            continue
        data = engine.project.content(file)
        finders = [find for needles, find in _FINDERS if mentions_any(data, needles)]
        if not finders:
            continue
        module = engine.project.module_at(file.path)
        if module is not None:
            for find in finders:
                found.extend(find(engine, module))
    declared = {id(each.node) for each in found}
    for kind, names in patterns:
        for each in configured.find(engine, names, kind):
            if id(each.node) not in declared and each.module.file.path in chosen:
                declared.add(id(each.node))
                found.append(each)
    found.sort(key=lambda each: (each.module.display, each.line, each.kind))
    return found
