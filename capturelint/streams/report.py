"""CG701, CG702 and CG703: what a walk over the streams of a region has found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from capturelint.model import Confidence, Related
from capturelint.passes.hazard import Hazard
from capturelint.passes.unit import Support, characters
from capturelint.streams.keys import Key
from capturelint.streams.state import Spot, State
from capturelint.values import identity
from capturelint.values.facts import Context, NodeSpan


@dataclass(frozen=True, slots=True)
class Capture:
    """What is known of how the region is captured. ``stream_known``: the capturing stream is one that we see."""

    stream_known: bool = True
    #: the region is part of a larger capture, as far as can be told, and may be joined there
    partial: bool = False


class Report:
    """Collects hazards, each once a span, the surest one."""

    def __init__(self) -> None:
        self.capture = Capture()
        self.found: dict[tuple[str, Context, NodeSpan], Hazard] = {}

    def unforked(self, stream: Key, state: State, spot: Spot) -> None:
        sure = Confidence.CERTAIN if stream in state.made else Confidence.LIKELY
        if _may_be_another(stream, state) or not (self.capture.stream_known or stream in state.made):
            sure = Confidence.POSSIBLE
        name = _stream_text(spot)
        self._add(
            "CG701",
            spot,
            f"{name} has not waited for the capturing stream: what is launched on it here is no part of the capture, "
            "and capture fails as soon as the two meet",
            "runs on a stream that is not forked from the capture",
            sure,
            help="fork it first, and join it in the end: `side.wait_stream(torch.cuda.current_stream())` before, "
            "`torch.cuda.current_stream().wait_stream(side)` after",
        )

    def waits_outside(self, keys: list[Key], state: State, spot: Spot, *, event: bool) -> None:
        sure = Confidence.LIKELY
        if state.assumed or any(_may_be_another(key, state) for key in keys) or len(keys) > 1:
            sure = Confidence.POSSIBLE
        what = "an event that was recorded" if event else "a stream whose work was launched"
        self._add(
            "CG701",
            spot,
            f"waits for {what} outside the capture; capture fails on this line",
            "waits for uncaptured work",
            sure,
            help="wait before the capture begins (and before each replay); inside it, wait only for what it has "
            "forked or recorded itself",
        )

    def unjoined(self, stream: Key, spot: Spot, sure: Confidence, state: State) -> None:
        if _may_be_another(stream, state):
            sure = Confidence.POSSIBLE
        if self.capture.partial and stream not in state.made:
            sure = Confidence.POSSIBLE
        self._add(
            "CG702",
            spot,
            f"work is forked to {_stream_text(spot)}, and the capturing stream does not wait for it before the region "
            "ends: capture fails at its end, with no word of this line",
            "forked here, never joined",
            sure,
            help="join it before the region ends: `torch.cuda.current_stream().wait_stream(side)`, or wait for an "
            "event that is recorded after the work",
        )

    def left_out(self, stream: Key, spot: Spot, *, handle: bool = False) -> None:
        cached = stream.role == identity.CURRENT
        sure = Confidence.LIKELY if cached or handle else Confidence.CERTAIN
        what = "a stream that was current before the capture" if cached else "the legacy default stream"
        verb = "is handed over here" if handle else "is used here"
        help = "ask for `torch.cuda.current_stream()` at every launch: during capture it is the capturing stream"
        related = (Related(stream.at[0], stream.at[1], "asked for here"),) if cached and stream.at else ()
        self._add(
            "CG703",
            spot,
            f"{what} {verb}: what is launched on it runs once, during capture, and is no part of the graph",
            "not captured",
            sure,
            help=help,
            related=related,
        )

    def _add(
        self,
        rule: str,
        spot: Spot,
        message: str,
        label: str,
        sure: Confidence,
        *,
        help: str,
        related: Iterable[Related] = (),
    ) -> None:
        context, span = spot
        sure = min(sure, context.cap_at(span[0]), key=lambda each: each.rank)
        key = (rule, context, span)
        known = self.found.get(key)
        if known is None or sure > known.support.confidence:
            where = characters(context.module, span)
            self.found[key] = Hazard(rule, where, message, label, Support(sure, (context,)), help, tuple(related))


def _may_be_another(key: Key, state: State) -> bool:
    """A stream that is only known as a parameter may be one that goes by another name elsewhere."""
    if state.loose or key in state.doubted:
        return True
    return not key.exact and any(each.at is not None and each != key and each not in state.recorded
                                 for each in state.members)  # fmt: skip


def _stream_text(spot: Spot) -> str:
    """The stream as the code names it: what stands within ``torch.cuda.stream(...)``, or the whole."""
    context, span = spot
    text = context.module.line_text(span[0]).encode()
    text_here = text[span[1] : span[3]].decode(errors="replace") if span[0] == span[2] else ""
    head, _, inner = text_here.partition("stream(")
    if inner.endswith(")") and inner[:-1].count("(") == inner[:-1].count(")"):
        text_here = inner[:-1]
    short = text_here if 0 < len(text_here) <= 40 and not head.startswith("(") else ""
    return f"`{short}`" if short else "the side stream"
