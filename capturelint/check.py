"""The check pipeline: sources, regions, reach, passes, findings. Runs none of the code that it checks."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from capturelint.cells import in_cells
from capturelint.config import Config, Override
from capturelint.errors import CaptureLintError, UsageError
from capturelint.model import CheckResult, Confidence, Diagnostic, Severity
from capturelint.path_settings import PathSettings
from capturelint.rulebook import Rulebook, load_rulebook
from capturelint.source.files import SourceFile, find_sources

if TYPE_CHECKING:
    from capturelint.baseline import Baseline
    from capturelint.cache.store import Store
    from capturelint.findings import Around
    from capturelint.passes.run import UnitHazards
    from capturelint.project.project import Project
    from capturelint.reach import Reach
    from capturelint.regions.declaration import Declaration
    from capturelint.rulebook.presets import Preset
    from capturelint.values.engine import Engine
    from capturelint.values.facts import Context

#: in a tree of at most so many files all are parsed, so that every syntax error is reported
_PARSE_ALL = 400
#: evaluation follows calls by recursion: some 15 Python frames for each call in the code that is checked
_RECURSION_LIMIT = 12_000


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


@dataclass(slots=True)
class _Stopwatch:
    progress: Callable[[str], object]
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        self.progress(name)
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def check_paths(options: CheckOptions, progress: Callable[[str], object] = str) -> CheckResult:
    """Checks files and directories. Raises UsageError, ConfigError and RulebookError; nothing for bad source files.

    ``progress`` is called with the name of each stage that begins.
    """
    watch = _Stopwatch(progress)
    with _interpreter_settings():
        return _check(options, watch)


def _check(options: CheckOptions, watch: _Stopwatch) -> CheckResult:
    rulebook = load_rulebook()
    settings = PathSettings(rulebook, options)
    if options.select and not settings.base.codes:
        raise UsageError("no rule is left to check: all that --select names is ignored too")
    with watch.stage("walk"):
        chosen, project = _load(options)
    result = _found(options, rulebook, settings, chosen, project, watch)
    if options.baseline is not None:
        result = _against(options.baseline, result, options, chosen, settings.codes)
    return in_cells(result, project.files)


def _found(
    options: CheckOptions,
    rulebook: Rulebook,
    settings: PathSettings,
    chosen: list[SourceFile],
    project: Project,
    watch: _Stopwatch,
) -> CheckResult:
    """What an earlier run found, where that holds still, or else what this one finds."""
    if options.cache is None or options.explains or os.environ.get("CAPTURELINT_DEBUG"):
        return _work_out(options, rulebook, settings, chosen, project, watch)
    from capturelint.reuse import Reuse

    with watch.stage("cache"):
        reuse = Reuse(options.cache, options, chosen, project)
        known = reuse.find()
    if known is not None:
        return replace(known, timings=watch.seconds)
    result = _work_out(options, rulebook, settings, chosen, project, watch)
    with watch.stage("cache"):
        reuse.keep(result)
    return result


def _work_out(
    options: CheckOptions,
    rulebook: Rulebook,
    settings: PathSettings,
    chosen: list[SourceFile],
    project: Project,
    watch: _Stopwatch,
) -> CheckResult:
    with watch.stage("prefilter"):
        presets = _presets(project, options.config)
        captures = options.explains or _may_capture(project, presets, options.config)
    analyse = _analyse if captures else _without_regions
    wide = replace(options, min_confidence=settings.least_confidence)
    return settings.narrowed(analyse(wide, rulebook, settings.codes, chosen, project, presets, watch))


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

    patterns = [pattern for _, named in _patterns(presets, config) for pattern in named]
    words = (*config.vocabulary.starts_capture, *(word for preset in presets for word in preset.starts_capture))
    return may_declare(project, patterns, words)


def _without_regions(
    options: CheckOptions,
    rulebook: Rulebook,
    codes: frozenset[str],
    chosen: list[SourceFile],
    project: Project,
    presets: list[Preset],
    watch: _Stopwatch,
) -> CheckResult:
    from capturelint import findings

    with watch.stage("findings"):
        found = findings.suppressed(rulebook, codes, [], set(), chosen, project)
        _parse_rest(project, chosen, options)
    narrow = _only_directories(options) and len(chosen) < len(project.files)
    return CheckResult(
        findings=tuple(sorted(found, key=lambda finding: finding.sort_key)),
        diagnostics=_diagnostics(project, chosen),
        files=len(chosen),
        notes=() if narrow else _notes([], options.config),
        timings=watch.seconds,
    )


def _analyse(
    options: CheckOptions,
    rulebook: Rulebook,
    codes: frozenset[str],
    chosen: list[SourceFile],
    project: Project,
    presets: list[Preset],
    watch: _Stopwatch,
) -> CheckResult:
    from capturelint import findings
    from capturelint.fixes.offer import with_fixes
    from capturelint.passes.run import run_passes, units_of
    from capturelint.reach import Evidence, reach_all
    from capturelint.regions.enter import enter
    from capturelint.regions.find import find_regions

    engine = _engine(project, options.config, presets)
    engine.enters_possible = options.min_confidence is Confidence.POSSIBLE
    with watch.stage("regions"):
        narrow = _only_directories(options) and len(chosen) < len(project.files)
        searched = chosen if narrow else project.files
        declarations = find_regions(engine, searched, _patterns(presets, options.config))
    with watch.stage("evaluate"):
        entered = [
            region for declaration in declarations if (region := _guarded(enter, engine, declaration, project=project))
        ]
    with watch.stage("reach"):
        reaches = reach_all(engine, entered)
        reaches = _relevant(reaches, chosen)
        engine.settle()
    with watch.stage("passes"):
        reached = dict.fromkeys(context for reach in reaches for context in reach.steps)
        paths = {file.path for file in chosen}
        units = [unit for unit in units_of(reached, engine.ops) if unit.module.file.path in paths]
        hazards = [opened for unit in units if (opened := _guarded(run_passes, unit, project=project))]
    with watch.stage("streams"):
        hazards.extend(
            each for each in _along_ways(engine, reaches, reached, project) if each.unit.module.file.path in paths
        )
    with watch.stage("lifecycle"):
        around = _lifecycle(engine, reaches, codes, options.config)
    with watch.stage("findings"):
        found, hidden = findings.build(rulebook, codes, hazards, around, reaches, options)
        modules = [*(each.unit.module for each in hazards), *(each.module for each in around)]
        found = with_fixes(found, hazards, modules, lambda build, unit: _guarded(build, unit, project=project))
        found = findings.suppressed(rulebook, codes, found, hidden, chosen, project)
    _parse_rest(project, chosen, options)
    return CheckResult(
        findings=tuple(sorted(found, key=lambda finding: finding.sort_key)),
        regions=tuple(sorted((reach.region() for reach in reaches), key=lambda region: region.sort_key)),
        diagnostics=_diagnostics(project, chosen),
        files=len(chosen),
        hidden=len(hidden),
        notes=_notes(declarations, options.config) if searched is project.files else (),
        timings=watch.seconds,
        behind=Evidence(engine, reaches),
    )


_T = TypeVar("_T")


def _guarded(work: Callable[..., _T], *arguments: Any, project: Project) -> _T | None:
    """A fault of ours in one region or function becomes a diagnostic that names it; the others go on."""
    try:
        return work(*arguments)
    except (KeyboardInterrupt, CaptureLintError):
        raise
    except Exception as error:
        if os.environ.get("CAPTURELINT_DEBUG"):
            raise
        subject = arguments[-1]
        path, line = subject.module.display, getattr(subject.node, "lineno", 1)
        if isinstance(error, RecursionError):
            text = "nested too deeply to follow; nothing in this region is reported"
            project.diagnostics.setdefault(path, Diagnostic(path, line, text))
            return None
        text = f"internal error: {type(error).__name__}: {error} (please report it; CAPTURELINT_DEBUG=1 shows where)"
        project.diagnostics.setdefault(path, Diagnostic(path, line, " ".join(text.split())))
        return None


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


def _load(options: CheckOptions) -> tuple[list[SourceFile], Project]:
    from capturelint.project.project import Project

    exclude = options.config.exclude
    chosen = find_sources(
        options.paths,
        root=options.root,
        exclude=exclude,
        force_exclude=options.force_exclude,
        present=options.contents,
    )
    rest: list[SourceFile] = []
    if [path.resolve() for path in options.paths] != [options.root.resolve()]:
        rest = find_sources((options.root,), root=options.root, exclude=exclude, force_exclude=True)
    if options.contents:
        chosen, rest = (
            [replace(each, content=options.contents.get(each.path)) for each in files] for files in (chosen, rest)
        )
    known = {file.path for file in chosen}
    return chosen, Project(options.root, [*chosen, *(file for file in rest if file.path not in known)])


def _engine(project: Project, config: Config, presets: list[Preset]) -> Engine:
    from capturelint.rulebook.ops import load_ops
    from capturelint.values.engine import Engine
    from capturelint.values.vocabulary import Vocabulary

    words = config.vocabulary

    def joined(own: tuple[str, ...], name: str) -> tuple[str, ...]:
        return (*own, *(word for preset in presets for word in getattr(preset, name)))

    vocabulary = Vocabulary(
        synchronizes=joined(words.synchronizes, "synchronizes"),
        reads_device=joined(words.reads_device, "reads_device"),
        capture_safe=joined(words.capture_safe, "capture_safe"),
        allows_sync=joined(words.allows_sync, "allows_sync"),
        starts_capture=joined(words.starts_capture, "starts_capture"),
        breaks=joined((), "breaks"),
        eager=joined((), "eager"),
        outside=joined((), "outside"),
        flags={name: value for preset in presets for name, value in preset.flags.items()},
        predicates={name: value for preset in presets for name, value in preset.predicates.items()}
        | dict(words.predicates),
    )
    return Engine(project, load_ops(), vocabulary, config.torch_version)


def _presets(project: Project, config: Config) -> list[Preset]:
    """Presets that are always on, that the project's packages or imports switch on, and that config names."""
    from capturelint.rulebook.presets import choose, load_presets

    found = [preset for preset in load_presets().values() if preset.always or project.uses_package(preset.when)]
    chosen = choose(config.presets, project.root)
    return [*found, *(preset for preset in chosen if preset not in found)]


def _patterns(presets: list[Preset], config: Config) -> list[tuple[str, tuple[str, ...]]]:
    """Region patterns by the kind that regions found by them get."""
    contracts = [(preset.name, preset.regions) for preset in presets if preset.regions]
    return [("config", config.regions), *contracts] if config.regions else contracts


def _only_directories(options: CheckOptions) -> bool:
    return all(path.is_dir() for path in options.paths)


def _relevant(reaches: list[Reach], chosen: list[SourceFile]) -> list[Reach]:
    """Regions that are declared in the chosen files or reach into them."""
    paths = {file.path for file in chosen}
    return [
        reach
        for reach in reaches
        if reach.entered.declaration.module.file.path in paths
        or any(context.module.file.path in paths for context in reach.steps)
    ]


def _along_ways(
    engine: Engine, reaches: list[Reach], reached: dict[Context, None], project: Project
) -> list[UnitHazards]:
    """What is told from the calls of a region and their order rather than from one function's code."""
    from capturelint.lifecycle import cold, generators, nesting
    from capturelint.lifecycle.wrapped import WrappedCallables
    from capturelint.streams.find import Regions

    wrapped = WrappedCallables(engine, dict.fromkeys(context.module for context in reached))
    streams = Regions(engine, reaches)
    for reach in streams.dealing:
        _guarded(streams.walk, reach, reach.entered.declaration, project=project)
    return [
        *generators.find(engine, reached),
        *nesting.find(reaches, wrapped),
        *cold.find(engine, reaches, wrapped),
        *streams.hazards(),
    ]


def _lifecycle(engine: Engine, reaches: list[Reach], codes: frozenset[str], config: Config) -> list[Around]:
    from capturelint.lifecycle import (
        autocast,
        caches,
        hyperparameters,
        life,
        optimizers,
        pinned,
        rules,
        side_effects,
        staging,
    )
    from capturelint.lifecycle.setup import find as setup

    lives = life.lives(engine, reaches)
    steps = optimizers.captured_steps(engine, reaches)
    return [
        *rules.find(lives, reaches, codes),
        *side_effects.find(engine, reaches),
        *caches.find(engine, reaches),
        *optimizers.find(engine, steps),
        *optimizers.find_foreign(reaches),
        *hyperparameters.find(engine, steps),
        *autocast.find(engine, reaches),
        *setup.find(engine, reaches, lives, config.max_graphs),
        *pinned.find(reaches),
        *staging.find(engine, lives),
    ]


def _parse_rest(project: Project, chosen: list[SourceFile], options: CheckOptions) -> None:
    """Files that no region reaches are parsed for their syntax errors alone, where that is cheap or asked for."""
    named = {path.resolve() for path in options.paths if path.is_file()}
    for file in chosen:
        if len(chosen) <= _PARSE_ALL or file.path in named:
            project.check_syntax(file.path)


def _diagnostics(project: Project, chosen: list[SourceFile]) -> tuple[Diagnostic, ...]:
    displays = {file.display for file in chosen}
    found = [each for each in project.diagnostics.values() if each.path in displays]
    return tuple(sorted(found, key=lambda each: (each.path, each.line, each.message)))


@contextmanager
def _interpreter_settings() -> Iterator[None]:
    """Deep recursion, and no garbage collection: trees and facts live until the end."""
    before, collecting = sys.getrecursionlimit(), gc.isenabled()
    sys.setrecursionlimit(max(before, _RECURSION_LIMIT))
    gc.disable()
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
        if collecting:
            gc.freeze()  # a collection would go through everything that the result keeps
            gc.enable()
