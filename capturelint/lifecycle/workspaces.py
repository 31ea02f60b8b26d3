"""CG501, workspaces: a buffer that captured code uses is replaced by a larger one when a later call asks for more.

The region runs the very code that replaces it, which finds it large enough at capture. What counts are the calls of
that code outside the region: one that comes after the capture with other arguments than those captured may make it
grow. Where such a call comes before the capture too, as a run with the largest shapes does, it is only possible.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from capturelint.findings import Around
from capturelint.lifecycle import story
from capturelint.lifecycle.life import Life
from capturelint.lifecycle.moments import Moments
from capturelint.lifecycle.places import Place
from capturelint.model import Confidence, Related
from capturelint.project.definitions import FunctionInfo
from capturelint.project.syntax import contains, dotted_name, store_targets, walk_own
from capturelint.values.call_sites import CallSite

_MAX_DEPTH = 6
_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


@dataclass(frozen=True, slots=True)
class _Growth:
    """``target`` is bound to a larger tensor in ``function``, or resized."""

    function: FunctionInfo
    target: ast.expr


def find(life: Life, moments: Moments) -> Iterator[Around]:
    if not life.is_block:
        return
    for function in sorted(life.entered, key=lambda info: (info.module.display, info.line)):
        for growth in _growths(function):
            if _is_read(life, growth):
                yield from _judged(life, moments, growth)


def _judged(life: Life, moments: Moments, growth: _Growth) -> Iterator[Around]:
    captured = _captured_calls(life)
    best: tuple[Confidence, CallSite] | None = None
    prepared = False
    for site in _outside(life, growth.function, 0, set()):
        if _same_as_captured(life, site, captured):
            continue
        sure = moments.between(site.holder, site.module, site.call, lasts=True)
        if sure is None and _follows_capture(life, moments, site, 0):
            sure = Confidence.LIKELY
        if sure is None:
            prepared = True
            continue
        if _is_alternative(site):
            continue
        if best is None or sure > best[0]:
            best = (sure, site)
    if best is None:
        return
    sure, site = best
    module, text = growth.function.module, growth.function.module.segment(growth.target, 48)
    yield story.finding(
        life,
        "CG501",
        growth.function,
        module,
        growth.target,
        f"`{text}` is replaced by a larger tensor when more is asked for than at capture, but the graph captured at "
        f"{story.where(life)} goes on using the old one",
        "grows after capture",
        Confidence.POSSIBLE if prepared else min(sure, Confidence.LIKELY, key=lambda each: each.rank),
        help="run the largest shapes before the first capture, and refuse to grow after it",
        related=(
            Related(site.module.display, site.call.lineno, "runs the same code after the capture"),
            story.captured_at(life),
            *story.replayed_at(life, site.holder),
        ),
    )


# -- what grows ------------------------------------------------------------------------------------------------------


def _growths(function: FunctionInfo) -> Iterator[_Growth]:
    """``if self.buf.numel() < n: self.buf = torch.empty(n)``; a function that may refuse is left alone."""
    own = list(walk_own(function.node))
    if any(isinstance(node, (ast.Raise, ast.Assert)) for node in own):
        return
    shared = {name for node in own if isinstance(node, ast.Global) for name in node.names}
    for branch in own:
        if not isinstance(branch, ast.If):
            continue
        for statement in branch.body:
            for target in (each for node in (statement, *walk_own(statement)) for each in _replaced(node)):
                kept = target.value if isinstance(target, ast.Subscript) else target
                if isinstance(kept, ast.Attribute) or (isinstance(kept, ast.Name) and kept.id in shared):
                    if _asks_size(function, branch, kept):
                        yield _Growth(function, target)


def _replaced(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Call, ast.Name)):
        return [each for each in store_targets(node) if isinstance(each, (ast.Attribute, ast.Name, ast.Subscript))]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "resize_":
        return [node.func.value]
    return []


def _asks_size(function: FunctionInfo, branch: ast.If, kept: ast.expr) -> bool:
    """Whether the branch is taken because what is kept, or what is noted of its size, is smaller than is needed."""
    named = {dotted_name(kept)}
    stored = (target for node in branch.body for target in store_targets(node))
    named |= {dotted_name(target) for target in stored if isinstance(target, ast.Attribute)}
    for name, values in function.assigned.items():
        if any(dotted_name(kept) == dotted_name(part) for value in values for part in ast.walk(value)):
            named.add(name)
    named.discard(None)
    return any(
        isinstance(test, ast.Compare)
        and any(isinstance(op, _ORDERED) for op in test.ops)
        and any(dotted_name(part) in named for part in ast.walk(test))
        for test in ast.walk(branch.test)
    )


def _is_read(life: Life, growth: _Growth) -> bool:
    kept = growth.target.value if isinstance(growth.target, ast.Subscript) else growth.target
    function = growth.function
    if isinstance(kept, ast.Attribute):
        return not life.reads.isdisjoint(life.origins.attribute(function, function.module, kept))
    return isinstance(kept, ast.Name) and Place(function.module, kept.id) in life.reads


# -- what asks for more ----------------------------------------------------------------------------------------------


def _outside(life: Life, function: FunctionInfo, depth: int, seen: set[FunctionInfo]) -> Iterator[CallSite]:
    """The calls by which code outside the region enters what makes it grow."""
    if depth > _MAX_DEPTH or function in seen:
        return
    seen.add(function)
    for site in life.origins.callers(function):
        if site.holder is not None and site.holder in life.entered:
            yield from _outside(life, site.holder, depth + 1, seen)
        elif not contains(life.declaration.node, site.call):
            yield site


def _follows_capture(life: Life, moments: Moments, site: CallSite, depth: int) -> bool:
    """The call comes after the capture in one function, or in one that calls its function: as the setup goes on."""
    order = moments.order(site.holder, site.module)
    captures = moments.captures(site.holder, site.module)
    if captures:
        return any(order.may_follow(each, site.call) for each in captures) and not any(
            order.may_follow(site.call, each) for each in captures
        )
    if site.holder is None or depth > _MAX_DEPTH:
        return False
    return any(_follows_capture(life, moments, each, depth + 1) for each in life.origins.callers(site.holder))


def _captured_calls(life: Life) -> set[str]:
    body = life.declaration.body or []
    return {ast.dump(node) for statement in body for node in ast.walk(statement) if isinstance(node, ast.Call)}


def _same_as_captured(life: Life, site: CallSite, captured: set[str]) -> bool:
    """A warm-up, or an eager twin, with what is captured: it asks for no more."""
    if ast.dump(site.call) in captured:
        return True
    given = [*site.call.args, *(keyword.value for keyword in site.call.keywords)]
    return bool(given) and all(_is_input(life, site, each) for each in given)


def _is_input(life: Life, site: CallSite, node: ast.expr) -> bool:
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Constant):
        return True
    if not isinstance(node, ast.Attribute):
        return False
    return not life.reads.isdisjoint(life.origins.attribute(site.holder, site.module, node))


def _is_alternative(site: CallSite) -> bool:
    """``if self.eager: return self.model(x)``: where no graph is used; one chosen by size comes beside the graph."""
    if site.holder is None:
        return False
    for node in walk_own(site.holder.node):
        if isinstance(node, ast.If) and any(contains(each, site.call) for each in (*node.body, *node.orelse)):
            orders = (op for test in ast.walk(node.test) if isinstance(test, ast.Compare) for op in test.ops)
            if not any(isinstance(op, (*_ORDERED, ast.NotIn, ast.In)) for op in orders):
                return True
    return False
