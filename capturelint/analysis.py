"""The analysis: regions, evaluation, reach, passes, the life of graphs. Where no file captures, it isn't imported."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from capturelint import aside, findings
from capturelint.errors import CaptureLintError, SourceError
from capturelint.findings import Around, Made, Place
from capturelint.fixes.offer import with_fixes
from capturelint.lifecycle import (
    autocast,
    caches,
    cold,
    generators,
    hyperparameters,
    life,
    nesting,
    optimizers,
    pinned,
    rules,
    side_effects,
    staging,
)
from capturelint.lifecycle.moments import Moments
from capturelint.lifecycle.setup import find as setup
from capturelint.lifecycle.wrapped import WrappedCallables
from capturelint.model import Confidence, Diagnostic, Finding, Hardware
from capturelint.passes.run import UnitHazards, run_passes, units_of
from capturelint.project.project import Learnt
from capturelint.project.questions import mentions_word
from capturelint.reach import Reach, reach_all
from capturelint.regions.declaration import Declaration
from capturelint.regions.enter import enter
from capturelint.regions.find import find_regions
from capturelint.rulebook.ops import load_ops
from capturelint.stopwatch import Stopwatch
from capturelint.streams.find import Regions
from capturelint.values.engine import Engine
from capturelint.values.facts import Context
from capturelint.values.vocabulary import Vocabulary

if TYPE_CHECKING:
    from capturelint.check import CheckOptions
    from capturelint.config import Config
    from capturelint.project.module import Module
    from capturelint.project.project import Project
    from capturelint.rulebook import Rulebook
    from capturelint.rulebook.presets import Preset
    from capturelint.source.files import SourceFile

#: a second process costs some 50 ms: what so few contexts need is done before it has started
_FEW_CONTEXTS = 300


@dataclass(frozen=True, slots=True)
class Subject:
    """What is analysed: of ``project`` the files ``chosen`` for their findings, and ``searched`` for regions."""

    options: CheckOptions
    rulebook: Rulebook
    codes: frozenset[str]
    project: Project
    chosen: Sequence[SourceFile]
    searched: Sequence[SourceFile]
    presets: Sequence[Preset]
    #: region patterns by the kind that regions found by them get
    patterns: Sequence[tuple[str, tuple[str, ...]]]

    @property
    def paths(self) -> frozenset[Path]:
        return frozenset(file.path for file in self.chosen)


@dataclass(frozen=True, slots=True)
class Analysis:
    """``hidden``: the places of findings that are not sure enough."""

    engine: Engine
    declarations: list[Declaration]
    reaches: list[Reach]
    findings: list[Finding]
    hidden: set[Place]


@dataclass(frozen=True, slots=True)
class _Part:
    """What one part of the work found: plain data, whichever process it comes from."""

    inside: Made
    around: Made
    learnt: Learnt
    seconds: dict[str, float]


def analyse(subject: Subject, watch: Stopwatch) -> Analysis:
    options, project = subject.options, subject.project
    engine = _engine(project, options.config, subject.presets)
    engine.enters_possible = options.min_confidence is Confidence.POSSIBLE
    with watch.stage("regions"):
        declarations = find_regions(engine, subject.searched, subject.patterns)
    with watch.stage("evaluate"):
        entered = [
            region for declaration in declarations if (region := _guarded(enter, engine, declaration, project=project))
        ]
    with watch.stage("reach"):
        everywhere = reach_all(engine, entered)
        reaches = _relevant(everywhere, subject.paths)
        beside = [*reaches, *_spoken_of(everywhere, reaches, subject)]
        engine.settle()
    forks = sum(len(reach.steps) for reach in beside) > _FEW_CONTEXTS and aside.can_fork()

    def code() -> _Part:
        return _code(subject, engine, reaches, beside, Stopwatch(str if forks else watch.progress))

    def graphs() -> Made:
        with watch.stage("lifecycle"):
            lives = life.lives(engine, beside)
            return _made_around(subject, engine, rules.find(lives, beside, subject.codes, _asking(project)))

    if forks:
        part, replayed = aside.both(code, graphs, at_once=(options.jobs or aside.cores()) > 1)
    else:
        part, replayed = code(), graphs()
    watch.add(part.seconds)
    project.take_over(part.learnt)
    with watch.stage("findings"):
        found, hidden = findings.build((part.inside, replayed, part.around))
    return Analysis(engine, declarations, reaches, found, hidden)


def _code(subject: Subject, engine: Engine, reaches: list[Reach], beside: list[Reach], watch: Stopwatch) -> _Part:
    """What captured code does itself, and how captures are set up."""
    reached = dict.fromkeys(context for reach in reaches for context in reach.steps)
    options, project = subject.options, subject.project
    paths = subject.paths
    with watch.stage("passes"):
        units = [unit for unit in units_of(reached, engine.ops) if unit.module.file.path in paths]
        hazards = [opened for unit in units if (opened := _guarded(run_passes, unit, project=project))]
    with watch.stage("streams"):
        hazards.extend(
            each for each in _along_ways(engine, reaches, reached, project) if each.unit.module.file.path in paths
        )
    with watch.stage("setup"):
        around = _around(engine, beside, options.config)
    inside = findings.made_inside(subject.rulebook, subject.codes, hazards, reaches, options.min_confidence)
    inside = _with_fixes(inside, hazards, [each.unit.module for each in hazards], project)
    return _Part(inside, _made_around(subject, engine, around), project.learnt(), watch.seconds)


def _asking(project: Project) -> rules.Ask:
    """Asks about the life of one graph such that a fault of ours costs what is said of that graph alone."""

    def ask(finder: rules.Finder, one: life.Life, moments: Moments) -> Iterable[Around]:
        return _guarded(lambda _: list(finder(one, moments)), one.declaration, project=project) or ()

    return ask


def _made_around(subject: Subject, engine: Engine, around: list[Around]) -> Made:
    paths = subject.paths
    around = [each for each in around if each.module.file.path in paths and not _is_elsewhere(engine.vocabulary, each)]
    made = findings.made_around(subject.rulebook, subject.codes, around, subject.options.min_confidence)
    return _with_fixes(made, [], [each.module for each in around], subject.project)


def _is_elsewhere(vocabulary: Vocabulary, around: Around) -> bool:
    """Whether code of a module for other hardware is spoken of, about regions that are not."""
    modules = {reach.entered.declaration.module.name for reach in around.regions}
    return vocabulary.is_for_other_hardware(around.module.name) and not any(
        vocabulary.is_for_other_hardware(name) for name in modules
    )


def _with_fixes(made: Made, units: list[UnitHazards], modules: list[Module], project: Project) -> Made:
    found = with_fixes(made.findings, units, modules, lambda build, unit: _guarded(build, unit, project=project))
    return replace(made, findings=tuple(found))


def _along_ways(
    engine: Engine, reaches: list[Reach], reached: dict[Context, None], project: Project
) -> list[UnitHazards]:
    """What is told from the calls of a region and their order rather than from one function's code."""
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


def _around(engine: Engine, reaches: list[Reach], config: Config) -> list[Around]:
    """What is told from how captures are set up, and from what runs around them."""
    lives = life.lives(engine, reaches)
    steps = optimizers.captured_steps(engine, reaches)
    return [
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


def _engine(project: Project, config: Config, presets: Sequence[Preset]) -> Engine:
    words = config.vocabulary

    def joined(own: tuple[str, ...], name: str) -> tuple[str, ...]:
        return (*own, *(word for preset in presets for word in getattr(preset, name)))

    on_hardware = _by_hardware(presets, config.hardware, "predicates")
    vocabulary = Vocabulary(
        synchronizes=joined(words.synchronizes, "synchronizes"),
        reads_device=joined(words.reads_device, "reads_device"),
        capture_safe=joined(words.capture_safe, "capture_safe"),
        allows_sync=joined(words.allows_sync, "allows_sync"),
        starts_capture=joined(words.starts_capture, "starts_capture"),
        breaks=joined((), "breaks"),
        eager=joined((), "eager"),
        outside=joined((), "outside"),
        other_hardware=tuple(
            pattern
            for preset in presets
            for hardware, on in preset.hardware.items()
            for pattern in on.code
            if hardware is not config.hardware
        ),
        flags={name: value for preset in presets for name, value in preset.flags.items()}
        | _by_hardware(presets, config.hardware, "flags"),
        predicates={name: value for preset in presets for name, value in preset.predicates.items()}
        | on_hardware
        | dict(words.predicates),
        on_hardware=on_hardware,
    )
    return Engine(project, load_ops(), vocabulary, config.torch_version, config.hardware)


def _by_hardware(presets: Sequence[Preset], used: Hardware, kind: str) -> dict[str, bool]:
    """What tells hardware apart, true where it names the one that is used."""
    named = [
        (name, each is used) for preset in presets for each, on in preset.hardware.items() for name in getattr(on, kind)
    ]
    return {name: any(value for other, value in named if other == name) for name, _ in named}


def _relevant(reaches: list[Reach], paths: frozenset[Path]) -> list[Reach]:
    """Regions that are declared in the chosen files or reach into them."""
    return [
        reach
        for reach in reaches
        if reach.entered.declaration.module.file.path in paths
        or any(context.module.file.path in paths for context in reach.steps)
    ]


def _spoken_of(reaches: list[Reach], relevant: list[Reach], subject: Subject) -> list[Reach]:
    """Other regions whose graphs the chosen files may replay: they name the class, function or module that captures."""
    if len(relevant) == len(reaches):
        return []
    known = {id(reach) for reach in relevant}
    contents = [subject.project.content(file) for file in subject.chosen]
    return [
        reach
        for reach in reaches
        if id(reach) not in known and any(mentions_word(data, _called(reach)) for data in contents)
    ]


def _called(reach: Reach) -> str:
    declaration = reach.entered.declaration
    holder = declaration.holder
    while holder is not None and holder.owner is None and holder.parent is not None:
        holder = holder.parent
    if holder is None:
        return declaration.module.name.rpartition(".")[2]
    return holder.owner.name if holder.owner is not None else holder.name


_T = TypeVar("_T")


def _guarded(work: Callable[..., _T], *arguments: Any, project: Project) -> _T | None:
    """A fault of ours in one region or function becomes a diagnostic that names it; the others go on."""
    try:
        return work(*arguments)
    except SourceError as error:
        project.report(error)
        return None
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
