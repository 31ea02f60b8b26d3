"""CG502: an attribute that captured code binds, and that other code binds anew and reads after replays.

Each eager pass binds it again to what it computed; no replay does, so after the other store the name no longer stands
for what the graph writes.
"""

from __future__ import annotations

from collections.abc import Iterator

from capturelint.findings import Around
from capturelint.lifecycle import around
from capturelint.model import Related
from capturelint.passes.hazard import Hazard
from capturelint.passes.unit import Support
from capturelint.reach import Reach
from capturelint.values.domain import Instance, options
from capturelint.values.facts import Context, NodeSpan
from capturelint.values.sites import Site

_HELP = "copy the value into a buffer that stays (`self.buffer.copy_(value)`), and reset that in place"


def undone(
    site: Site, name: str, elsewhere: tuple[str, int], support: Support, reaches: list[Reach]
) -> Iterator[Around]:
    """The captured stores of an attribute that the statement at ``elsewhere`` undoes for good."""
    for reach in reaches:
        for context, span in _stores(reach, site, name):
            path, line = elsewhere
            hazard = Hazard(
                "CG502",
                around.characters(context.module, span),
                f"`{name}` is bound here at capture and not at replay: once {path}:{line} binds it to another tensor, "
                "it no longer holds what the graph writes",
                "bound once, at capture",
                support,
                help=_HELP,
                related=(Related(path, line, "bound to another tensor here"),),
            )
            yield Around(context.module, context.name, hazard, (reach,), (context,))


def _stores(reach: Reach, site: Site, name: str) -> Iterator[tuple[Context, NodeSpan]]:
    for context in reach.steps:
        if context.compiled:
            continue
        for span, fact in context.stores.items():
            if fact.attribute == name and not fact.item and not fact.outer:
                if any(isinstance(option, Instance) and option.site is site for option in options(fact.owner)):
                    yield context, span
