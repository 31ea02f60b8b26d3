"""From outcomes to verdicts: which finding an observation confirms, what is refuted, and what the linter missed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from capturelint.model import (
    CheckResult,
    Confidence,
    Consequence,
    Finding,
    Region,
    RegionRef,
    Span,
    Verdict,
    VerdictStatus,
)
from capturelint.rulebook import load_rulebook
from capturelint.verifier.observation import CAPTURE_ERROR, CORRUPTION, STALE, Observation, Outcome
from capturelint.verifier.plan import Plan
from capturelint.verifier.tolerance_text import STATED

_CAPTURE_FALLBACK, _REPLAY_FALLBACK = "CG100", "CG600"
#: a hazard of streams shows as an error or as work that is left out, depending on what the allocator holds
_EITHER_WAY = frozenset({"CG701", "CG703"})
#: what these are about, that nothing ran before the capture, the verifier's own first run puts right
_NEEDS_A_COLD_START = frozenset({"CG801", "CG802"})


@dataclass(frozen=True)
class _Seen:
    """An observation with the outcome that it comes from."""

    observation: Observation
    outcome: Outcome
    regions: tuple[Region, ...]


def apply(
    result: CheckResult, plan: Plan, outcomes: dict[int, Outcome], base: Path, *, report_new: bool
) -> CheckResult:
    """``result`` with a verdict on every finding and, with ``report_new``, findings for what the linter missed."""
    seen = [
        _Seen(observation, outcomes[number], tuple(plan.regions[number]))
        for number in plan.regions
        for observation in outcomes[number].observations
    ]
    by_region = {
        (region.path, region.line): outcomes[number] for number, regions in plan.regions.items() for region in regions
    }
    judged: list[Finding] = []
    used: set[int] = set()
    for finding in result.findings:
        matching = [item for item in seen if _confirms(item.observation, finding, base)]
        used.update(id(item.observation) for item in matching)
        judged.append(replace(finding, verdict=_verdict(finding, matching, by_region, plan, base)))
    if report_new:
        for item in seen:
            if item.observation.only_confirms:
                continue
            if id(item.observation) not in used and not _repeats(item.observation, judged, base):
                judged.append(_new_finding(item, base))
    return replace(result, findings=tuple(sorted(judged, key=lambda finding: finding.sort_key)))


def _confirms(observation: Observation, finding: Finding, base: Path) -> bool:
    if not _same_kind(observation, finding):
        return False
    if finding.rule.startswith("CG8") and finding.rule == observation.rules[0]:
        # about how the region is set up, which shows wherever capture happens to stop
        return any(str((base / region.path).resolve()) == observation.path for region in finding.regions)
    path = str((base / finding.path).resolve())
    lines = range(finding.span.line, finding.span.end_line + 1)
    own = [(observation.path, observation.line), *(observation.also if _is_wide(observation) else ())]
    if finding.rule == "CG702" and "CG702" in observation.rules:
        # forked on one line, entered on another, at work on a third: any of them is the place
        seen = [line for where, line in own if str(Path(where).resolve()) == path]
        return bool(seen) and min(seen) <= lines[-1] and lines[0] <= max(seen)
    return any(str(Path(where).resolve()) == path and line in lines for where, line in own)


def _is_wide(observation: Observation) -> bool:
    """Whether the other lines of an observation are as much its place as the first: streams are."""
    return bool(set(observation.rules) & {"CG701", "CG702", "CG703"})


def _same_kind(observation: Observation, finding: Finding) -> bool:
    wanted = finding.consequence
    if finding.rule in observation.rules or (finding.rule in _EITHER_WAY and _EITHER_WAY & set(observation.rules)):
        return True
    if wanted is Consequence.CAPTURE_ERROR:
        return observation.consequence == CAPTURE_ERROR
    if wanted in (Consequence.STALE_REPLAY, Consequence.CORRUPTION):
        return observation.consequence in (STALE, CORRUPTION)
    return False


def _verdict(
    finding: Finding, matching: list[_Seen], by_region: dict[tuple[str, int], Outcome], plan: Plan, base: Path
) -> Verdict:
    if matching:
        first = matching[0]
        return Verdict(VerdictStatus.CONFIRMED, f"on {first.outcome.device}: {first.observation.text}")
    outcomes = [by_region[key] for region in finding.regions if (key := (region.path, region.line)) in by_region]
    if finding.consequence in (Consequence.COST, Consequence.NONE):
        return Verdict(VerdictStatus.UNVERIFIED, "the verifier tries errors and results, not cost")
    if not outcomes:
        missing = next((plan.missing.get((region.path, region.line)) for region in finding.regions), None)
        return Verdict(VerdictStatus.UNVERIFIED, missing or "no region of it can be called")
    return _unconfirmed(finding, outcomes, base)


def _unconfirmed(finding: Finding, outcomes: Sequence[Outcome], base: Path) -> Verdict:
    path = str((base / finding.path).resolve())
    lines = range(finding.span.line, finding.span.end_line + 1)
    inside = finding.consequence is Consequence.CAPTURE_ERROR
    reached = [
        outcome
        for outcome in outcomes
        if any(
            where == path and line in lines for where, line in (outcome.seen if inside else outcome.seen | outcome.ran)
        )
    ]
    problems = [outcome for outcome in outcomes if outcome.problem is not None]
    if problems and not any(outcome.problem is None for outcome in reached):
        return Verdict(VerdictStatus(problems[0].status), problems[0].problem or "")
    if not reached and any(outcome.cut for outcome in outcomes):
        text = "an error that cannot be shielded ends every trial before this line"
        return Verdict(VerdictStatus.INCONCLUSIVE, f"on {outcomes[0].device}: {text}")
    if not reached:
        return Verdict(VerdictStatus.UNREACHED, f"on {outcomes[0].device}: the line did not run in the region")
    best = reached[0]
    if finding.rule in _NEEDS_A_COLD_START:
        text = "the verifier runs the region before it captures it, which is what this one lacks"
        return Verdict(VerdictStatus.INCONCLUSIVE, f"on {best.device}: {text}")
    if inside:
        text = f"capture of this line raised nothing in {best.trials} trials"
        return Verdict(VerdictStatus.REFUTED, f"on {best.device}: {text}")
    if best.comparisons == 0:
        why = best.notes[0] if best.notes else "no replay could be compared"
        return Verdict(VerdictStatus.INCONCLUSIVE, f"on {best.device}: {why}")
    tried = "; ".join(best.tried[:4])
    text = f"ran in {best.trials} trials and {best.comparisons} replays ({tried}), results {STATED}"
    return Verdict(VerdictStatus.REFUTED, f"on {best.device}: {text}")


def _repeats(observation: Observation, judged: Iterable[Finding], base: Path) -> bool:
    """Whether a finding on the same line says it already, or a confirmed one explains it by another line."""
    path = _shown(observation.path, base)
    return any(
        finding.path == path
        and finding.span.line <= observation.line <= finding.span.end_line
        and _same_kind(observation, finding)
        for finding in judged
    )


def _new_finding(item: _Seen, base: Path) -> Finding:
    observation = item.observation
    rulebook = load_rulebook()
    code = next((code for code in observation.rules if code in rulebook.rules), None)
    if code is None:
        code = _CAPTURE_FALLBACK if observation.consequence == CAPTURE_ERROR else _REPLAY_FALLBACK
    rule = rulebook.rules[code]
    path = _shown(observation.path, base)
    consequence = Consequence(observation.consequence)
    column, end = _columns(observation.path, observation.line)
    regions = tuple(RegionRef(region.kind, region.path, region.line, region.name) for region in item.regions[:1])
    text = f"on {item.outcome.device}: {observation.text}"
    return Finding(
        rule=code,
        name=rule.name,
        path=path,
        span=Span(observation.line, column, observation.line, end),
        message=f"found by running it: {observation.text}",
        label="observed on the GPU",
        help=rule.help,
        severity=consequence.severity,
        confidence=Confidence.CERTAIN,
        consequence=consequence,
        regions=regions,
        verdict=Verdict(VerdictStatus.CONFIRMED, text),
        scope=observation.function,
    )


def _shown(path: str, base: Path) -> str:
    return Path(os.path.relpath(Path(path).resolve(), base.resolve())).as_posix()


def _columns(path: str, line: int) -> tuple[int, int]:
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace").split("\n")[line - 1]
    except (OSError, IndexError):
        return 1, 2
    stripped = text.strip()
    return len(text) - len(text.lstrip()) + 1, len(text) - len(text.lstrip()) + 1 + max(len(stripped), 1)
