"""Which hazards of captured code get a fix: one function a rule builds it, from the code there and its facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from capturelint.model import Applicability, Confidence, Finding, Fix, Span

if TYPE_CHECKING:
    import libcst as cst

    from capturelint.fixes.place import Place
    from capturelint.passes.base import Hazard
    from capturelint.passes.run import UnitHazards
    from capturelint.passes.unit import Facts, Unit
    from capturelint.project.module import Module

Builder = Callable[["Place"], "Fix | None"]
Attempt = Callable[..., Any]

#: the rules whose fixes are built from code and facts
RULES = frozenset(("CG101", "CG102", "CG104", "CG105", "CG201", "CG301", "CG401", "CG402"))
#: those whose fixes are built from code alone; those of other rules about the life of a graph come with the hazard
FROM_CODE = frozenset(("CG502", "CG505", "CG704", "CG804"))


def _builders() -> Mapping[str, Builder]:
    from capturelint.fixes import branches, copies, hidden_waits, host_data, reads, shapes, waits

    return {
        "CG101": reads.fix,
        "CG102": copies.fix,
        "CG104": waits.fix,
        "CG105": hidden_waits.fix,
        "CG201": host_data.fix,
        "CG301": branches.fix,
        "CG401": shapes.fix,
        "CG402": shapes.fix,
    }


def with_fixes(
    found: Iterable[Finding], units: Iterable[UnitHazards], modules: Iterable[Module], attempt: Attempt
) -> list[Finding]:
    """The findings, each with its fix if there is one.

    ``units`` hold the hazards in captured code, ``modules`` all code that findings may be about. ``attempt`` calls a
    function on a unit, and sees to it that a fault of ours there stays without consequence for the others.
    """
    results = {each.place: each for each in found}
    open_ = {key for key, finding in results.items() if finding.fix is None}
    for each in units:
        path = each.unit.module.display
        hazards = [
            hazard for hazard in each.hazards if hazard.rule in RULES and (hazard.rule, path, hazard.span) in open_
        ]
        if hazards:
            for hazard, fix in attempt(lambda unit, hazards=hazards: list(_built(unit, hazards)), each.unit) or ():
                key = (hazard.rule, path, hazard.span)
                results[key] = _with(results[key], fix)
    if any(rule in FROM_CODE for rule, _, _ in open_):
        from capturelint.fixes import around

        by_path = {module.display: module for module in modules}
        for key in open_:
            rule, path, span = key
            if rule in FROM_CODE and path in by_path and (fix := around.fix(by_path[path], rule, span)) is not None:
                results[key] = _with(results[key], fix)
    return [_with(finding, finding.fix) if finding.fix is not None else finding for finding in results.values()]


def _with(finding: Finding, fix: Fix) -> Finding:
    """What may well be no hazard is not rewritten by `--fix` alone."""
    if finding.confidence is Confidence.POSSIBLE:
        fix = replace(fix, applicability=Applicability.UNSAFE)
    return replace(finding, fix=fix)


def _built(unit: Unit, hazards: Iterable[Hazard]) -> Iterator[tuple[Hazard, Fix]]:
    import libcst as cst
    from libcst.metadata import MetadataWrapper, PositionProvider

    from capturelint.fixes.code import loses_comment
    from capturelint.fixes.place import Place
    from capturelint.passes.unit import Facts

    builders = _builders()
    wrapper = MetadataWrapper(cst.parse_module(unit.text), unsafe_skip_copy=True)
    facts = Facts(unit, wrapper.resolve(PositionProvider), wrapper.module)
    nodes = _nodes_at({hazard.span for hazard in hazards}, facts, wrapper.module)
    for hazard in hazards:
        node = nodes.get(hazard.span)
        if node is not None:
            fix = builders[hazard.rule](Place(unit.module, facts, node, hazard, unit.text))
            if fix is not None and not loses_comment(unit.module, fix):
                yield hazard, fix


def _nodes_at(spans: set[Span], facts: Facts, tree: cst.CSTNode) -> dict[Span, cst.CSTNode]:
    """The expressions that stand at these places."""
    import libcst as cst

    found: dict[Span, cst.CSTNode] = {}
    stack: list[cst.CSTNode] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, cst.BaseExpression):
            span = facts.span(node)
            if span in spans:
                found.setdefault(span, node)
        stack.extend(node.children)
    return found
