"""Data loaders whose thread pins memory while a capture runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.lifecycle.setup.before import calls_in, earlier, external_name
from capturelint.lifecycle.setup.points import Path, Point, loops_at, value_at
from capturelint.lifecycle.setup.sources import Sources
from capturelint.project.syntax import last_name
from capturelint.values.domain import ClassValue, options

_THROUGH = ("enumerate", "tqdm", "iter", "zip", "islice", "chain", "cycle")


def pinning_loaders(sources: Sources, path: Path) -> Iterator[tuple[Point, Point]]:
    """Where a loader is gone through while the capture runs, and where that loader was made."""
    for index, point in enumerate(path):
        for loop in loops_at(point):
            here = point.at(loop.iter)
            for made in _loaders(sources, (here, *path[index + 1 :]), loop.iter, 0):
                yield here, made
    for each in earlier(path):
        for call in calls_in(each.statement):
            if isinstance(call.func, ast.Name) and call.func.id == "iter" and call.args:
                here = each.point.at(call)
                if not each.point.module.uses.names_given_to(call):
                    continue  # used up at once
                for made in _loaders(sources, (here, *each.path[1:]), call.args[0], 0):
                    yield here, made


def _loaders(sources: Sources, path: Path, node: ast.expr, depth: int) -> Iterator[Point]:
    if depth > 6:
        return
    if isinstance(node, ast.Call):
        if _is_loader(sources, path[0], node):
            if _pins(node):
                yield path[0].at(node)
        elif last_name(node.func) in _THROUGH:
            for argument in node.args:
                yield from _loaders(sources, path, argument, depth + 1)
    elif isinstance(node, (ast.Name, ast.Attribute)):
        for source in sources.of(path, node):
            yield from _loaders(sources, source.path, source.node, depth + 1)


def _is_loader(sources: Sources, point: Point, call: ast.Call) -> bool:
    if external_name(sources.engine, point, call.func).endswith("DataLoader"):
        return True
    return any(
        isinstance(option, ClassValue)
        and any(isinstance(base, str) and base.endswith("DataLoader") for base in sources.engine.mro(option.info))
        for option in options(value_at(sources.engine, point, call.func))
    )


def _pins(call: ast.Call) -> bool:
    """With workers, a thread pins what they load; without, the caller's own thread does."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    pins, workers = given.get("pin_memory"), given.get("num_workers")
    if not (isinstance(pins, ast.Constant) and pins.value is True) or workers is None:
        return False
    return not (isinstance(workers, ast.Constant) and not workers.value)
