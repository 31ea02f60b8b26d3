"""Runs the rules about the life of graphs, each on each graph, and joins what several graphs agree on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

from capturelint.findings import Around
from capturelint.lifecycle import (
    accumulating,
    around,
    entries,
    growing,
    holders,
    indirect,
    keeping,
    lifetime,
    padding,
    pinned_locals,
    preparation,
    rebinding,
    renamed,
    replacing,
    workspaces,
)
from capturelint.lifecycle.life import Life, Lives
from capturelint.lifecycle.moments import Moments
from capturelint.model import Span
from capturelint.reach import Reach

#: rules about what a region does itself
_INSIDE = frozenset(("CG203", "CG502", "CG507"))

Finder = Callable[[Life, Moments], Iterator[Around]]
#: how a finder is called: whoever asks decides what a fault in one of them comes to
Ask = Callable[[Finder, Life, Moments], Iterable[Around]]


def _finders() -> list[tuple[frozenset[str], Finder]]:
    """Each finder with the rules that it reports."""
    return [
        (frozenset(("CG203",)), pinned_locals.find),
        (frozenset(("CG501", "CG502")), rebinding.find),
        (frozenset(("CG501",)), indirect.IndirectRebinding().find),
        (frozenset(("CG501",)), renamed.find),
        (frozenset(("CG501",)), holders.ReplacedHolders().find),
        (frozenset(("CG502",)), entries.find),
        (frozenset(("CG503",)), keeping.find),
        (frozenset(("CG504",)), lifetime.find),
        (frozenset(("CG505",)), replacing.Replacing().find),
        (frozenset(("CG506",)), padding.find),
        (frozenset(("CG507",)), accumulating.find),
        (frozenset(("CG508",)), preparation.find),
        (frozenset(("CG501",)), workspaces.find),
        (frozenset(("CG805",)), growing.find),
    ]


def find(lives: Lives, reaches: list[Reach], codes: Collection[str], ask: Ask) -> list[Around]:
    """Every hazard around capture and replay, with the regions that it belongs to. ``ask`` calls a finder."""
    found: list[Around] = []
    captured = around.captured_lines(reaches)
    wanted = [finder for reported, finder in _finders() if not reported.isdisjoint(codes)]
    for life in lives.all if wanted else ():
        if not (life.is_block or life.is_replayed_by_call):
            continue  # marked or configured: nothing is known of its capture
        moments = Moments(life)
        for finder in wanted:
            found.extend(each for each in ask(finder, life, moments) if not _is_captured(each, captured))
    return joined(found)


def _is_captured(each: Around, captured: dict[str, list[tuple[int, int]]]) -> bool:
    """What stands inside some region's block is for the rules about what regions do themselves."""
    if each.hazard.rule in _INSIDE:
        return False
    line = each.hazard.span.line
    return any(first <= line <= last for first, last in captured.get(each.module.display, ()))


def joined(found: Iterable[Around]) -> list[Around]:
    """One hazard a rule and span; the surest stays, with all regions."""
    best: dict[tuple[str, str, Span], Around] = {}
    for each in found:
        key = (each.hazard.rule, each.module.display, each.hazard.span)
        known = best.get(key)
        if known is None:
            best[key] = each
            continue
        surer = each if each.hazard.support.confidence > known.hazard.support.confidence else known
        best[key] = replace(surer, regions=tuple(dict.fromkeys((*known.regions, *each.regions))))
    return list(best.values())
