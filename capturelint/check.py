"""The check pipeline: sources, regions, reach, passes, findings. Runs none of the code that it checks."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from capturelint.asked import are_some_of_all, only_directories, patterns_of, presets_of, project_of, sources
from capturelint.cells import in_cells
from capturelint.config import Config, Override
from capturelint.deep import RECURSION_LIMIT, with_large_stack
from capturelint.errors import UsageError
from capturelint.model import CheckResult, Confidence, Diagnostic, Severity
from capturelint.path_settings import PathSettings
from capturelint.rulebook import Rulebook, load_rulebook
from capturelint.source.files import SourceFile
from capturelint.stopwatch import Stopwatch

if TYPE_CHECKING:
    from capturelint.baseline import Baseline
    from capturelint.cache.store import Store
    from capturelint.project.project import Project
    from capturelint.regions.declaration import Declaration
    from capturelint.rulebook.presets import Preset

#: in a tree of at most so many files all are parsed, so that every syntax error is reported
_PARSE_ALL = 400


@dataclass(frozen=True)
class CheckOptions:
    """What to check. ``root`` is the project that calls are followed in; findings are reported below ``paths``."""

    paths: tuple[Path, ...]
    config: Config
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    min_confidence: Confidence
    root: Path
    force_exclude: bool = False
    jobs: int | None = None
    #: findings that do not count
    baseline: Baseline | None = None
    fail_on: Severity = Severity.ERROR
    #: the configuration's, less what the command line settles for all files
    overrides: tuple[Override, ...] = ()
    #: whether the facts behind the result are wanted, as ``explain-finding`` wants them
    explains: bool = False
    #: where results of earlier runs are; None for a run that looks at none
    cache: Store | None = None
    #: what files hold in place of what is on disk, by absolute path
    contents: Mapping[Path, bytes] = field(default_factory=dict)


def check_paths(options: CheckOptions, progress: Callable[[str], object] = str) -> CheckResult:
    """Checks files and directories. Raises UsageError, ConfigError and RulebookError; nothing for bad source files.

    ``progress`` is called with the name of each stage that begins.
    """
    watch = Stopwatch(progress)
    with _interpreter_settings():
        return with_large_stack(lambda: _check(options, watch))


def _check(options: CheckOptions, watch: Stopwatch) -> CheckResult:
    rulebook = load_rulebook()
    settings = PathSettings(rulebook, options)
    if options.select and not settings.base.codes:
        raise UsageError("no rule is left to check: all that --select names is ignored too")
    with watch.stage("walk"):
        chosen, others = sources(options)
    if are_some_of_all(options, chosen, others):
        result = _about(chosen, others, replace(options, paths=(options.root,), force_exclude=False), settings, watch)
    else:
        known = {file.path for file in chosen}
        project = project_of(options, [*chosen, *(file for file in others if file.path not in known)])
        result = _found(options, settings, chosen, project, watch)
    if options.baseline is not None:
        result = _against(options.baseline, result, options, chosen, settings.codes)
    return in_cells(result, [*chosen, *others])


def _about(
    chosen: list[SourceFile],
    everything: list[SourceFile],
    options: CheckOptions,
    settings: PathSettings,
    watch: Stopwatch,
) -> CheckResult:
    """What a check of the whole project says of some files.

    What is found in a file hangs on all of the project anyway. So that is worked out once for whichever files are asked
    about next, and files that are named get what they get as a part of the whole.
    """
    project = project_of(options, everything)
    result = _found(options, settings, everything, project, watch)
    for file in chosen:
        project.check_syntax(file.path)
    known = {each.path for each in result.diagnostics}
    wrong = [each for each in _diagnostics(project, chosen) if each.path not in known]
    diagnostics = tuple(sorted((*result.diagnostics, *wrong), key=_place_of))
    return replace(result, diagnostics=diagnostics).about(frozenset(file.display for file in chosen))


def _found(
    options: CheckOptions,
    settings: PathSettings,
    chosen: list[SourceFile],
    project: Project,
    watch: Stopwatch,
) -> CheckResult:
    """What an earlier run found, where that holds still, or else what this one finds."""
    if options.cache is None or options.explains or os.environ.get("CAPTURELINT_DEBUG"):
        return _work_out(options, settings, chosen, project, watch)
    from capturelint.reuse.entries import Reuse

    with watch.stage("cache"):
        reuse = Reuse(options.cache, options, chosen, project)
        known = reuse.find()
    if known is not None:
        return replace(known, timings=watch.seconds)
    result = _work_out(options, settings, chosen, project, watch)
    with watch.stage("cache"):
        reuse.keep(result)
    return result


def _work_out(
    options: CheckOptions,
    settings: PathSettings,
    chosen: list[SourceFile],
    project: Project,
    watch: Stopwatch,
) -> CheckResult:
    with watch.stage("prefilter"):
        presets = presets_of(project, options.config)
        captures = options.explains or _may_capture(project, presets, options.config)
    analyse = _with_regions if captures else _without_regions
    wide = replace(options, min_confidence=settings.least_confidence)
    return settings.narrowed(analyse(wide, settings.rulebook, settings.codes, chosen, project, presets, watch))


def _against(
    baseline: Baseline, result: CheckResult, options: CheckOptions, chosen: list[SourceFile], codes: frozenset[str]
) -> CheckResult:
    """The result with the baseline's findings suppressed, and what is to be said about the baseline itself."""
    from capturelint.baseline import View, compare

    failed = {diagnostic.path for diagnostic in result.diagnostics}
    view = View(
        known=frozenset(load_rulebook().rules),
        codes=codes,
        files=frozenset(file.path for file in chosen),
        failed=frozenset(file.path for file in chosen if file.display in failed),
        directories=tuple(SourceFile.at(path).path for path in options.paths if path.is_dir()),
        least=options.min_confidence,
    )
    compared = compare(baseline, result.findings, view)
    return replace(result, findings=compared.findings, stale=compared.stale, update=compared.update)


def _may_capture(project: Project, presets: list[Preset], config: Config) -> bool:
    """Whether some file may declare a region; where none does, the analysis is not even imported."""
    from capturelint.regions.needles import may_declare

    patterns = [pattern for _, named in patterns_of(presets, config) for pattern in named]
    words = (*config.vocabulary.starts_capture, *(word for preset in presets for word in preset.starts_capture))
    return may_declare(project, patterns, words)


def _without_regions(
    options: CheckOptions,
    rulebook: Rulebook,
    codes: frozenset[str],
    chosen: list[SourceFile],
    project: Project,
    presets: list[Preset],
    watch: Stopwatch,
) -> CheckResult:
    from capturelint import findings

    with watch.stage("findings"):
        found = findings.suppressed(rulebook, codes, [], set(), chosen, project)
        _parse_rest(project, chosen, options)
    narrow = only_directories(options) and len(chosen) < len(project.files)
    return CheckResult(
        findings=tuple(sorted(found, key=lambda finding: finding.sort_key)),
        diagnostics=_diagnostics(project, chosen),
        files=len(chosen),
        notes=() if narrow else _notes([], options.config),
        timings=watch.seconds,
    )


def _with_regions(
    options: CheckOptions,
    rulebook: Rulebook,
    codes: frozenset[str],
    chosen: list[SourceFile],
    project: Project,
    presets: list[Preset],
    watch: Stopwatch,
) -> CheckResult:
    from capturelint import findings
    from capturelint.analysis import Subject, analyse
    from capturelint.reach import Evidence

    narrow = only_directories(options) and len(chosen) < len(project.files)
    searched = chosen if narrow else project.files
    patterns = patterns_of(presets, options.config)
    analysis = analyse(Subject(options, rulebook, codes, project, chosen, searched, presets, patterns), watch)
    with watch.stage("findings"):
        found = findings.suppressed(rulebook, codes, analysis.findings, analysis.hidden, chosen, project)
    _parse_rest(project, chosen, options)
    return CheckResult(
        findings=tuple(sorted(found, key=lambda finding: finding.sort_key)),
        regions=tuple(sorted((reach.region() for reach in analysis.reaches), key=lambda region: region.sort_key)),
        diagnostics=_diagnostics(project, chosen),
        files=len(chosen),
        hidden_in=tuple(sorted(Counter(path for _, path, _ in analysis.hidden).items())),
        notes=() if narrow else _notes(analysis.declarations, options.config),
        timings=watch.seconds,
        behind=Evidence(analysis.engine, analysis.reaches),
    )


def _notes(declarations: list[Declaration], config: Config) -> tuple[str, ...]:
    """Region patterns of the config's that match nothing: a misspelt one would check nothing without a word."""
    if not config.regions:
        return ()
    from capturelint.regions.configured import matches

    return tuple(
        f"the region pattern {pattern!r} in {config.source or 'the config'} matches no function"
        for pattern in config.regions
        if not any(each.target is not None and matches(pattern, each.module.name, each.name) for each in declarations)
    )


def _parse_rest(project: Project, chosen: list[SourceFile], options: CheckOptions) -> None:
    """Files that no region reaches are parsed for their syntax errors alone, where that is cheap or asked for."""
    named = {Path(os.path.realpath(path)) for path in options.paths if path.is_file()}
    for file in chosen:
        if len(chosen) <= _PARSE_ALL or file.path in named:
            project.check_syntax(file.path)


def _diagnostics(project: Project, chosen: list[SourceFile]) -> tuple[Diagnostic, ...]:
    displays = {file.display for file in chosen}
    found = [each for each in project.diagnostics.values() if each.path in displays]
    return tuple(sorted(found, key=_place_of))


def _place_of(diagnostic: Diagnostic) -> tuple[str, int, str]:
    return diagnostic.path, diagnostic.line, diagnostic.message


@contextmanager
def _interpreter_settings() -> Iterator[None]:
    """Deep recursion, and no garbage collection: trees and facts live until the end."""
    before, collecting = sys.getrecursionlimit(), gc.isenabled()
    sys.setrecursionlimit(max(before, RECURSION_LIMIT))
    gc.disable()
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
        if collecting:
            gc.freeze()  # a collection would go through everything that the result keeps
            gc.enable()
