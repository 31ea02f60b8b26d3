"""One verification run: plan, workers, verdicts. Runs in the parent; imports no torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from capturelint.model import CheckResult
from capturelint.verifier.harness import FILE_NAME, Harness, read_file
from capturelint.verifier.observation import Outcome
from capturelint.verifier.parent import Pool, Ran, gpu_list, run_jobs, spread
from capturelint.verifier.plan import Plan, make_plan
from capturelint.verifier.verdicts import apply


@dataclass(frozen=True)
class VerifyOptions:
    """How to verify. ``base`` is the directory that paths in the result are relative to."""

    root: Path
    base: Path
    #: what was checked
    paths: tuple[Path, ...] = ()
    harness: tuple[Harness, ...] = ()
    #: seconds for one region, and how many replays of it are compared
    time_limit: float = 120.0
    comparisons: int = 3
    workers_per_gpu: int = 1
    memory_limit: int = 64 << 30
    #: leave out regions without findings
    only_findings: bool = False
    progress: Callable[[int, int, str], None] | None = None


@dataclass
class Verified:
    """What a run gave: the result with verdicts, and what there is to say about the run itself."""

    result: CheckResult
    plan: Plan
    ran: Ran
    outcomes: dict[int, Outcome] = field(default_factory=dict)

    def problems(self) -> list[str]:
        """One line for each region that could not be verified, or not to the end."""
        lines = []
        for number, outcome in sorted(self.outcomes.items()):
            region = self.plan.regions[number][0]
            if outcome.problem is not None:
                lines.append(f"{region.path}:{region.line}: {region.name}: {outcome.status}: {outcome.problem}")
        return lines


def harness_of(root: Path, configured: Sequence[Harness], files: Sequence[Path]) -> tuple[Harness, ...]:
    """All entries: of the files named, of the project's own file, of the configuration. Raises ConfigError."""
    entries: list[Harness] = []
    for file in files:
        entries.extend(read_file(file, str(file)))
    own = root / FILE_NAME
    if own.is_file() and own.resolve() not in [file.resolve() for file in files]:
        entries.extend(read_file(own, FILE_NAME))
    entries.extend(configured)
    return tuple(entries)


def verify_result(result: CheckResult, options: VerifyOptions) -> Verified:
    """Runs the regions of ``result`` and gives its findings verdicts. Raises NoGpu where that is impossible."""
    chosen = result
    if options.only_findings:
        wanted = {(region.path, region.line) for finding in result.findings for region in finding.regions}
        regions = tuple(region for region in result.regions if (region.path, region.line) in wanted)
        chosen = replace(result, regions=regions)
    plan = make_plan(
        chosen,
        options.harness,
        options.root,
        options.base,
        options.time_limit,
        options.comparisons,
        options.paths,
    )
    devices = spread(gpu_list(), options.workers_per_gpu)
    pool = Pool(devices, options.memory_limit, progress=options.progress)
    ran = run_jobs(plan.jobs, pool) if plan.jobs else Ran()
    judged = apply(result, plan, ran.outcomes, options.base, report_new=True)
    return Verified(judged, plan, ran, ran.outcomes)
