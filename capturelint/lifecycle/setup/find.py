"""All findings about how captures are set up and used."""

from __future__ import annotations

from collections.abc import Iterator

from capturelint.findings import Around
from capturelint.lifecycle.life import Lives
from capturelint.lifecycle.setup import (
    collected,
    concurrent,
    distributed,
    graphed,
    keys,
    many_graphs,
    one_graph,
    threads,
    warmup,
)
from capturelint.lifecycle.setup.backwards import Backwards
from capturelint.lifecycle.setup.captures import captures_of
from capturelint.lifecycle.setup.points import Callers
from capturelint.lifecycle.setup.series_reader import SeriesReader
from capturelint.lifecycle.setup.sources import Sources
from capturelint.reach import Reach
from capturelint.values.engine import Engine


def find(engine: Engine, reaches: list[Reach], lives: Lives, max_graphs: int) -> Iterator[Around]:
    """Each finding once, with every capture that it is about."""
    callers = Callers(engine)
    captures = captures_of(engine, reaches, callers)
    sources = Sources(engine, callers)
    reader, backwards = SeriesReader(sources), Backwards(engine)
    yield from many_graphs.find(captures, reader, max_graphs)
    yield from warmup.find(captures, backwards)
    yield from distributed.find(captures, backwards, reader)
    yield from graphed.find(engine, captures, lives.origins)
    yield from threads.find(captures, sources)
    yield from collected.find(engine, captures)
    yield from concurrent.find(captures, lives, sources)
    yield from one_graph.find(captures)
    yield from keys.find(engine, captures)
