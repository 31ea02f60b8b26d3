"""Finds every region that a set of files declares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from capturelint.project.module import Module
from capturelint.regions import (
    begin_end,
    compiled,
    configured,
    graph_context,
    graphed_callables,
    managers,
    marked,
    needles,
)
from capturelint.regions.declaration import Declaration
from capturelint.source.files import SourceFile
from capturelint.values.engine import Engine

Finder = Callable[[Engine, Module], Iterator[Declaration]]

_FINDERS: tuple[tuple[tuple[bytes, ...], Finder], ...] = (
    (needles.GRAPH_CONTEXT, graph_context.find),
    (needles.BEGIN_END, begin_end.find),
    (needles.GRAPHED_CALLABLES, graphed_callables.find),
    (needles.COMPILED, compiled.find),
    (needles.MARKED, marked.find),
)


def find_regions(
    engine: Engine, files: Iterable[SourceFile], patterns: Sequence[tuple[str, tuple[str, ...]]] = ()
) -> list[Declaration]:
    """The regions that ``files`` declare, in the order of files and lines, and those that config names."""
    chosen = {file.path for file in files}
    found: dict[tuple[int, int], Declaration] = {}

    def add(declarations: Iterable[Declaration]) -> None:
        for each in declarations:
            if each.module.file.path in chosen:
                found.setdefault((id(each.node), 0), each)

    for module, finders in _seeds(engine, chosen):
        for find in finders:
            # several callables of one make_graphed_callables stand at one node
            for each in find(engine, module):
                found.setdefault((id(each.node), id(each.target) if each.target is not None else 0), each)
    words = _capturing_names(engine)
    for module in _modules_using(engine, words):
        add(graph_context.find(engine, module, words))
    add(begin_end.find_split(engine))
    for kind, names in patterns:
        declared = {id(each.node) for each in found.values()}
        add(each for each in configured.find(engine, names, kind) if id(each.node) not in declared)
    return sorted(found.values(), key=lambda each: (each.module.display, each.line, each.kind))


def _seeds(engine: Engine, chosen: set[Path]) -> Iterator[tuple[Module, list[Finder]]]:
    """The modules whose bytes say that they may declare a region, with the finders that the bytes speak to."""
    finders: dict[Path, list[Finder]] = {}
    for words, find in _FINDERS:
        for file in engine.project.search.holding(words):
            finders.setdefault(file.path, []).append(find)
    for file in engine.project.files:
        if file.path not in chosen or file.path not in finders:
            continue
        module = engine.project.module_at(file.path)
        if module is not None:
            yield module, finders[file.path]


def _capturing_names(engine: Engine) -> set[str]:
    """Context managers by which the project (or its config) begins captures."""
    names = {word.rpartition(".")[2] for word in engine.vocabulary.starts_capture}
    for file in engine.project.search.holding((*needles.GRAPH_CONTEXT, *needles.BEGIN_END)):
        module = engine.project.module_at(file.path)
        if module is not None:
            names.update(managers.names(engine, module))
    return names


def _modules_using(engine: Engine, names: Iterable[str]) -> list[Module]:
    files = {file.path: file for name in sorted(names) for file in engine.project.search.calling(name)}
    return engine.project.modules(files.values())
