"""From what the linter found to jobs: which regions can be called, and what is missing for the others."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from capturelint.model import CheckResult, Consequence, Region
from capturelint.verifier.harness import Harness
from capturelint.verifier.jobs import Job

MARKED = ("capture_region",)
_QUOTED = re.compile(r"`([\w.]+)`")


@dataclass
class Plan:
    """``regions`` gives each job's regions; ``missing`` the line to add for each region without a harness."""

    jobs: list[Job] = field(default_factory=list)
    regions: dict[int, list[Region]] = field(default_factory=dict)
    missing: dict[tuple[str, int], str] = field(default_factory=dict)


def make_plan(
    result: CheckResult,
    harness: Sequence[Harness],
    root: Path,
    base: Path,
    time_limit: float,
    comparisons: int,
    paths: Sequence[Path] = (),
) -> Plan:
    """One job for each marked region, for each region that an entry names, and for each program.

    ``root`` is the project; ``base`` the directory that paths in ``result`` are relative to. A program whose file lies
    below ``paths`` runs even where the linter found no region in it: what it captures is seen then.
    """
    plan = Plan()
    programs: dict[tuple[str, ...], int] = {}
    for region in result.regions:
        absolute = (base / region.path).resolve()
        relative = _relative(absolute, root)
        entry = next((entry for entry in harness if entry.matches(relative, region.name)), None)
        if region.cell is not None:
            plan.missing[region.path, region.line] = "a region in a notebook, which cannot be imported"
            continue
        if entry is None and region.kind not in MARKED:
            plan.missing[region.path, region.line] = _line_to_add(relative, region)
            continue
        key = _key(entry) if entry is not None and entry.run is not None else None
        if key is not None and key in programs:
            plan.regions[programs[key]].append(region)
            continue
        number = len(plan.jobs)
        limit = entry.time_limit if entry is not None and entry.time_limit is not None else time_limit
        job = Job(number, str(root.resolve()), str(absolute), region.line, region.name, entry, comparisons, limit)
        plan.jobs.append(replace(job, suspects=_suspects(result, region)))
        plan.regions[number] = [region]
        if key is not None:
            programs[key] = number
    for entry in harness:
        module = entry.region.partition(":")[0]
        if entry.run is None or _key(entry) in programs or not module.endswith(".py") or "*" in module:
            continue
        file = (root / module).resolve()
        if file.is_file() and any(file.is_relative_to(path.resolve()) for path in paths):
            number = len(plan.jobs)
            region = Region("harness", os.path.relpath(file, base.resolve()), 1, entry.region.partition(":")[2])
            limit = entry.time_limit if entry.time_limit is not None else time_limit
            plan.jobs.append(Job(number, str(root.resolve()), str(file), 1, region.name, entry, comparisons, limit))
            plan.regions[number] = [region]
            programs[_key(entry)] = number
    return plan


def _suspects(result: CheckResult, region: Region) -> tuple[str, ...]:
    """What the reasons of a region's silent findings name first: "`steps` is advanced in Counter.advance"."""
    found: dict[str, None] = {}
    for finding in result.findings:
        if finding.consequence is Consequence.STALE_REPLAY and any(
            (each.path, each.line) == (region.path, region.line) for each in finding.regions
        ):
            for reason in finding.why:
                quoted = _QUOTED.match(reason)
                if quoted is not None:
                    found[quoted.group(1).rpartition(".")[2]] = None
    return tuple(found)


def _key(entry: Harness) -> tuple[str, ...]:
    """What makes two entries one program."""
    return (entry.run or "", *entry.path)


def _relative(path: Path, root: Path) -> str:
    try:
        return path.relative_to(root.resolve()).as_posix()
    except ValueError:
        return path.as_posix()


def _line_to_add(relative: str, region: Region) -> str:
    reference = f"{relative}:{region.name}"
    return f"add a harness: `- region: {reference}` with `run:` or `inputs:` in {_FILE}"


_FILE = "capturelint-harness.yaml"
