"""From hazards to findings: regions and call chains, merging, suppressions, fingerprints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from capturelint.comments import about_comments
from capturelint.fingerprint import fingerprint
from capturelint.model import Confidence, Consequence, Finding, RegionRef, Severity, Span, Suppression
from capturelint.rulebook import Rule, Rulebook
from capturelint.source.files import display_path
from capturelint.source.suppressions import SuppressionSet, parse_suppressions

if TYPE_CHECKING:
    from capturelint.passes.hazard import Hazard
    from capturelint.passes.run import UnitHazards
    from capturelint.project.module import Module
    from capturelint.project.project import Project
    from capturelint.reach import Reach
    from capturelint.source.files import SourceFile
    from capturelint.values.facts import Context


#: a rule, a path and a span: there is one finding for each
Place = tuple[str, str, Span]


@dataclass(frozen=True, slots=True)
class Around:
    """A hazard outside regions, about the life of a graph: it belongs to regions rather than to contexts.

    ``contexts``: the captured code that it is about, where that is not the region's own, one a region.
    """

    module: Module
    scope: str
    hazard: Hazard
    regions: tuple[Reach, ...]
    contexts: tuple[Context, ...] = ()

    @property
    def references(self) -> tuple[RegionRef, ...]:
        contexts = self.contexts or tuple(reach.entered.context for reach in self.regions)
        return tuple(reach.reference(context) for reach, context in zip(self.regions, contexts, strict=True))


@dataclass(frozen=True, slots=True)
class Made:
    """Findings without fingerprints yet, and the places of those that are not sure enough."""

    findings: tuple[Finding, ...]
    hidden: frozenset[Place]


def made_inside(
    rulebook: Rulebook,
    codes: frozenset[str],
    units: Iterable[UnitHazards],
    reaches: list[Reach],
    least: Confidence,
) -> Made:
    """Findings in captured code, each with every region that it is reached from."""
    found: list[Finding] = []
    for each in units:
        for hazard in each.hazards:
            rule = rulebook.rules.get(hazard.rule)
            if rule is not None and hazard.rule in codes:
                finding = _finding(rule, hazard, each.unit.module, reaches)
                if finding is not None:
                    found.append(finding)
    return _sure(found, least)


def made_around(rulebook: Rulebook, codes: frozenset[str], around: Iterable[Around], least: Confidence) -> Made:
    """Findings about the life of graphs."""
    found: list[Finding] = []
    for each in around:
        rule = rulebook.rules.get(each.hazard.rule)
        if rule is not None and rule.code in codes:
            found.append(_made(rule, each.hazard, each.module, each.references,
                               each.hazard.support.confidence, each.scope))  # fmt: skip
    return _sure(found, least)


def _sure(found: list[Finding], least: Confidence) -> Made:
    return Made(
        tuple(finding for finding in found if finding.confidence >= least),
        frozenset(each.place for each in found if each.confidence < least),
    )


def build(parts: Iterable[Made]) -> tuple[list[Finding], set[Place]]:
    """One finding a rule and span, and those that are not sure enough."""
    hidden: set[Place] = set()
    found: dict[Place, Finding] = {}
    for part in parts:
        hidden |= part.hidden
        for finding in part.findings:
            found.setdefault(finding.place, finding)
    return list(found.values()), hidden


def _finding(rule: Rule, hazard: Hazard, module: Module, reaches: list[Reach]) -> Finding | None:
    best: Confidence | None = None
    refs: list[RegionRef] = []
    compiled = True
    for reach in reaches:
        ways = [
            (reach.steps[context].confidence, context) for context in hazard.support.contexts if context in reach.steps
        ]
        if not ways:
            continue
        guessed = all(reach.steps[context].guessed for _, context in ways)
        confidence, context = max(ways, key=lambda way: way[0].rank)
        if guessed and rule.consequence is Consequence.STALE_REPLAY:
            confidence = Confidence.POSSIBLE  # which object's state it is hangs on which of many methods runs
        refs.append(reach.reference(context))
        if reach.entered.declaration.refuses_breaks:
            confidence = Confidence.POSSIBLE
        best = confidence if best is None or confidence > best else best
        compiled = compiled and reach.entered.declaration.compiled
    if best is None:
        return None
    confidence = min(best, hazard.support.confidence, key=lambda c: c.rank)
    finding = _made(rule, hazard, module, tuple(refs), confidence, _scope(hazard.support.contexts))
    if compiled and finding.consequence is Consequence.CAPTURE_ERROR:
        return replace(
            finding,
            severity=Severity.WARNING,
            consequence=Consequence.COST,
            message=finding.message.replace(
                "capture fails on this line", "torch.compile breaks the graph here"
            ).replace("capture fails here", "torch.compile breaks the graph here"),
        )
    return finding


def _scope(contexts: tuple[Context, ...]) -> str:
    return contexts[0].name if contexts else ""


def _made(
    rule: Rule, hazard: Hazard, module: Module, refs: tuple[RegionRef, ...], confidence: Confidence, scope: str
) -> Finding:
    return Finding(
        rule=rule.code,
        name=rule.name,
        path=module.display,
        span=hazard.span,
        message=hazard.message,
        label=hazard.label,
        help=hazard.help or rule.help,
        severity=hazard.consequence.severity if hazard.consequence is not None else rule.severity,
        confidence=confidence,
        consequence=hazard.consequence if hazard.consequence is not None else rule.consequence,
        regions=refs,
        related=hazard.related,
        why=(hazard.support.why,) if hazard.support.why else (),
        fix=hazard.fix,
        scope=scope,
        text=module.text_between(hazard.span),
    )


def _with_fingerprints(found: list[Finding], root: Path) -> list[Finding]:
    """Told by the path within the project: they are the same wherever the run was started."""
    found.sort(key=lambda finding: finding.sort_key)
    paths = {finding.path: display_path(finding.path, str(root)) for finding in found}
    seen: dict[tuple[str, str, str, str], int] = {}
    result = []
    for finding in found:
        key = (finding.rule, finding.path, finding.scope, "".join(finding.text.split()))
        occurrence = seen.get(key, 0)
        seen[key] = occurrence + 1
        mark = fingerprint(finding.rule, paths[finding.path], finding.scope, finding.text, occurrence)
        result.append(replace(finding, fingerprint=mark))
    return result


# -- suppressions ----------------------------------------------------------------------------------------------------


def suppressed(
    rulebook: Rulebook,
    codes: frozenset[str],
    found: list[Finding],
    hidden: set[Place],
    chosen: list[SourceFile],
    project: Project,
) -> list[Finding]:
    """Marks findings that a comment takes, and adds findings about the comments themselves.

    Takes those out of ``hidden`` that a comment covers: such a comment is in use.
    """
    by_path: dict[str, list[Finding]] = {}
    for finding in found:
        by_path.setdefault(finding.path, []).append(finding)
    result: list[Finding] = []
    commented, others = _commented(project)
    for file in chosen:
        ours = by_path.pop(file.display, [])
        if not ours and file.path not in commented and file.path not in others:
            continue
        module = project.module_at(file.path)
        if module is None:
            result.extend(ours)
            continue
        if not ours and file.path not in commented and not any(map(module.holds, _CODES)):
            continue
        comments = parse_suppressions(module.source)
        result.extend(_apply(comments, ours))
        hidden -= {place for place in hidden if place[1] == file.display and _covers(rulebook, comments, place)}
        result.extend(about_comments(rulebook, codes, comments, module))
    for rest in by_path.values():
        result.extend(rest)
    return _with_fingerprints(result, project.root)


#: how the codes of rules begin
_CODES = tuple(f"CG{digit}" for digit in range(1, 10))


def _commented(project: Project) -> tuple[set[Path], set[Path]]:
    """The files in which there are comments or marks to look at, and those whose ``noqa`` may name a code of ours."""
    ours = project.search.holding_in_any_case((b"capturelint", b"capture_region"))
    coded = {file.path for file in project.search.holding((b"CG",))}
    noqa = {file.path for file in project.search.holding_in_any_case((b"noqa",)) if file.path in coded}
    return {file.path for file in ours}, noqa


def _apply(comments: SuppressionSet, found: list[Finding]) -> Iterable[Finding]:
    for finding in found:
        entry = comments.match(finding.rule, finding.name, finding.span.line)
        yield finding if entry is None else replace(finding, suppressed=Suppression("comment", entry.reason))


def _covers(rulebook: Rulebook, comments: SuppressionSet, place: Place) -> bool:
    rule, _, span = place
    return comments.match(rule, rulebook.rules[rule].name, span.line) is not None
