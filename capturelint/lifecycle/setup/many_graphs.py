"""CG804, CG805 and CG806: loops that capture one graph after the other, their order, number and pools."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from capturelint.findings import Around
from capturelint.lifecycle.setup.captures import Capture, report, story
from capturelint.lifecycle.setup.kept_graphs import keeps_each
from capturelint.lifecycle.setup.points import Loop, Path, Point, ancestors, loops_at
from capturelint.lifecycle.setup.pools import Pool, pool_in_loop
from capturelint.lifecycle.setup.series import UP, Series
from capturelint.lifecycle.setup.series_reader import SeriesReader
from capturelint.lifecycle.setup.sizes import names_in, sizes_something
from capturelint.model import Confidence, Related

#: so few graphs cost little, whatever their pools are
_FEW = 4


@dataclass(frozen=True, slots=True)
class _Round:
    """A loop at ``path[index]`` that captures in each of its rounds."""

    index: int
    loop: Loop
    series: Series | None
    #: not every round captures, as far as one can tell
    filtered: bool


def find(captures: list[Capture], reader: SeriesReader, limit: int) -> Iterator[Around]:
    for capture in captures:
        for path in capture.paths:
            rounds = list(_rounds(path, reader))
            if rounds:
                yield from _ascending(capture, path, rounds)
                yield from _own_pools(capture, path, rounds)
                yield from _too_many(capture, path, rounds, limit)


def _rounds(path: Path, reader: SeriesReader) -> Iterator[_Round]:
    """The loops that lead to a capture with something that differs from round to round, outermost first."""
    for index in range(len(path) - 1, -1, -1):
        for loop in loops_at(path[index]):
            if _matters(path[index], loop):
                yield _Round(
                    index,
                    loop,
                    reader.read((path[index].at(loop.iter), *path[index + 1 :]), loop.iter),
                    _filtered(path[index], loop),
                )


def _matters(point: Point, loop: Loop) -> bool:
    """Whether the loop's variable is used at all: ``for _ in range(3)`` runs the same again."""
    names = {name for name in names_in(loop.target) if not name.startswith("_")}
    if isinstance(loop, ast.comprehension):
        return bool(names & names_in(point.node))
    return any(names & names_in(statement) for statement in loop.body)


def _filtered(point: Point, loop: Loop) -> bool:
    way = ancestors(point.root, point.node)
    below = way[way.index(loop) + 1 :] if loop in way else []
    if any(isinstance(node, ast.If) for node in below):
        return True
    if isinstance(loop, ast.comprehension):
        return bool(loop.ifs)
    return any(isinstance(node, (ast.Continue, ast.Break)) for each in loop.body for node in ast.walk(each))


def _text(point: Point, loop: Loop) -> str:
    return f"for {point.module.segment(loop.target, 24)} in {point.module.segment(loop.iter, 40)}"


# -- CG804 -----------------------------------------------------------------------------------------------------------


def _ascending(capture: Capture, path: Path, rounds: list[_Round]) -> Iterator[Around]:
    for each in rounds:
        series = each.series
        if series is None or series.order != UP or (series.count is not None and series.count < 2):
            continue
        if pool_in_loop(capture, path, each.index, each.loop) is not Pool.SHARED:
            continue
        if not sizes_something(path, each.index, each.loop):
            continue
        point = path[each.index].at(each.loop.iter)
        yield report(
            "CG804",
            point,
            f"`{_text(point, each.loop)}` captures from small to large into one pool; "
            "what a small graph left there is too small for the next",
            "goes up",
            Confidence.LIKELY,
            [capture],
            help=f"capture the largest first: {_reversed(point, each.loop.iter)}",
            related=[*_listed(series, point), *story(path[: each.index + 1], capture)],
        )


def _reversed(point: Point, node: ast.expr) -> str:
    text = point.module.segment(node, 60)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "sorted":
            return "`sorted(..., reverse=True)`"
        if node.func.id in ("enumerate", "tqdm", "zip"):
            return "go through the sizes from the end, with `reversed(...)`"
    return f"`reversed({text})`"


def _listed(series: Series, point: Point) -> list[Related]:
    made = series.made
    if made.module is point.module and made.line == point.line:
        return []
    return [Related(made.module.display, made.line, "the sizes, from small to large")]


# -- CG805 -----------------------------------------------------------------------------------------------------------


def _too_many(capture: Capture, path: Path, rounds: list[_Round], limit: int) -> Iterator[Around]:
    counted = [(each, each.series.count) for each in rounds if each.series is not None and each.series.count]
    total = 1
    for _, count in counted:
        total *= count
    if total <= limit:
        return
    each, _ = max(counted, key=lambda pair: pair[1])
    point = path[each.index].at(each.loop.iter)
    product = " x ".join(str(count) for _, count in counted if count > 1)
    sum_text = f"{product} = {total}" if len(counted) > 1 else str(total)
    sure = not any(one.filtered for one, _ in counted)
    yield report(
        "CG805",
        point,
        f"`{_text(point, each.loop)}` captures {sum_text} graphs, more than the {limit} of `max-graphs`",
        f"{total} graphs",
        Confidence.LIKELY if sure else Confidence.POSSIBLE,
        [capture],
        related=[*_loops(path, counted, each), *story(path[: each.index + 1], capture)],
    )


def _loops(path: Path, counted: list[tuple[_Round, int]], but: _Round) -> Iterator[Related]:
    for each, count in counted:
        if each is not but and count > 1:
            point = path[each.index].at(each.loop.iter)
            yield Related(point.module.display, point.line, f"{count} times this loop")


# -- CG806 -----------------------------------------------------------------------------------------------------------


def _own_pools(capture: Capture, path: Path, rounds: list[_Round]) -> Iterator[Around]:
    """Reported at the capture, where the pool would be given."""
    for each in reversed(rounds):
        if pool_in_loop(capture, path, each.index, each.loop) is not Pool.OWN:
            continue
        if not keeps_each(capture, path, each.index):
            continue
        loop_point = path[each.index].at(each.loop.iter)
        point = capture.point.at(capture.begins)
        given = capture.argument("pool")
        what = "`pool=None`" if given is not None and isinstance(given, ast.Constant) else "no `pool=`"
        if given is not None and not isinstance(given, ast.Constant):
            what = "a new pool each time"
        yield report(
            "CG806",
            point,
            f"`{_text(loop_point, each.loop)}` captures here with {what}, so each graph keeps memory of its own",
            "a pool for each graph",
            Confidence.LIKELY if _many(path, rounds) else Confidence.POSSIBLE,
            [capture],
            related=[
                Related(loop_point.module.display, loop_point.line, "captured once in each round of this loop"),
                *list(story(path[: each.index + 1], capture))[:-1],
            ],
        )
        return


def _many(path: Path, rounds: list[_Round]) -> bool:
    """More than a few graphs, or one for each of some sizes; what else is gone through may be two or three things."""
    known = 1
    for each in rounds:
        if each.series is not None and each.series.count is not None:
            known *= each.series.count
        elif sizes_something(path, each.index, each.loop):
            return True
    return known > _FEW
