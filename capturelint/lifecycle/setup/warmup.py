"""CG802: a warm-up's backward pass on the default stream, whose autograd graph lives on into the capture."""

from __future__ import annotations

from collections.abc import Iterator

from capturelint.findings import Around
from capturelint.lifecycle.setup import backwards
from capturelint.lifecycle.setup.backwards import Backward, Backwards
from capturelint.lifecycle.setup.before import on_side_stream
from capturelint.lifecycle.setup.captures import GRAPHED_CALLABLES, Capture, report, story
from capturelint.lifecycle.setup.points import Point
from capturelint.model import Confidence, Related


def find(captures: list[Capture], finder: Backwards) -> Iterator[Around]:
    for capture in captures:
        if not backwards.captured(capture):
            continue
        for path in capture.paths:
            if on_side_stream(finder.engine, path):
                continue  # the capture and what prepares it run on a stream that a caller chose
            for each in finder.before(path):
                if not each.side_stream:
                    yield _reported(capture, each)


def _place(capture: Capture, each: Backward) -> Point:
    """The innermost call on the way to the backward pass that the region does not make as well.

    A function that warm-up and capture share is right where it stands: what calls it on the default stream is not.
    """
    captured = {context.function for context in capture.reach.steps if context.is_call}
    return next((point for point in each.inside if point.function not in captured), each.point)


def _reported(capture: Capture, each: Backward) -> Around:
    inner, place = each.inside[0], _place(capture, each)
    if each.kept_by:
        reason = f"`{each.kept_by}` keeps its autograd graph alive, so the captured backward waits on that stream"
    else:
        reason = "if anything keeps its autograd graph alive, the captured backward waits on that stream"
    graphed = capture.declaration.kind == GRAPHED_CALLABLES
    related = [] if inner is place else [Related(inner.module.display, inner.line, "the backward pass")]
    called = [] if place is each.point else [Related(each.point.module.display, each.point.line, "called from here")]
    return report(
        "CG802",
        place,
        f"a backward pass on the default stream before the capture; {reason}",
        "runs backward on the default stream",
        Confidence.LIKELY if each.kept_by else Confidence.POSSIBLE,
        [capture],
        help=_help(graphed, each.kept_by),
        related=[*related, *called, *story(each.path, capture)],
    )


def _help(graphed: bool, kept_by: str) -> str:
    if graphed:
        return (
            "run it under `with torch.cuda.stream(side):`, or drop what it computed before the callables are captured"
        )
    keep = f", and keep `{kept_by}` only after `.detach()`" if kept_by else ""
    return (
        "warm up under `with torch.cuda.stream(side):`, with `side.wait_stream(torch.cuda.current_stream())` before "
        f"and `torch.cuda.current_stream().wait_stream(side)` after it{keep}"
    )
