"""What a check is asked about: its files, the project that they are of, and the presets that speak of it."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from capturelint.source.files import SourceFile, find_sources

if TYPE_CHECKING:
    from capturelint.check import CheckOptions
    from capturelint.config import Config
    from capturelint.project.project import Project
    from capturelint.rulebook.presets import Preset


def sources(options: CheckOptions) -> tuple[list[SourceFile], list[SourceFile]]:
    """The files that were asked about, and those of the whole project where these are others."""
    exclude = options.config.exclude
    chosen = find_sources(
        options.paths,
        root=options.root,
        exclude=exclude,
        force_exclude=options.force_exclude,
        present=options.contents,
    )
    rest: list[SourceFile] = []
    if options.root.is_dir() and [*map(os.path.realpath, options.paths)] != [os.path.realpath(options.root)]:
        rest = find_sources((options.root,), root=options.root, exclude=exclude, force_exclude=True)
    if options.contents:
        chosen, rest = (
            [replace(each, content=options.contents.get(each.path)) for each in files] for files in (chosen, rest)
        )
    return chosen, rest


def project_of(options: CheckOptions, files: list[SourceFile]) -> Project:
    from capturelint.project.project import Project

    return Project(options.root, files)


def are_some_of_all(options: CheckOptions, chosen: list[SourceFile], everything: list[SourceFile]) -> bool:
    """Whether files were named, all of which a check of the whole project looks at."""
    if options.explains or only_directories(options):
        return False
    return {file.path for file in chosen} < {file.path for file in everything}


def only_directories(options: CheckOptions) -> bool:
    return all(path.is_dir() for path in options.paths)


def presets_of(project: Project, config: Config) -> list[Preset]:
    """Presets that are always on, that the project's packages or imports switch on, and that config names."""
    from capturelint.rulebook.presets import choose, load_presets

    found = [preset for preset in load_presets().values() if preset.always or project.uses_package(preset.when)]
    chosen = choose(config.presets, project.root)
    return [*found, *(preset for preset in chosen if preset not in found)]


def patterns_of(presets: list[Preset], config: Config) -> list[tuple[str, tuple[str, ...]]]:
    """Region patterns by the kind that regions found by them get."""
    contracts = [(preset.name, preset.regions) for preset in presets if preset.regions]
    return [("config", config.regions), *contracts] if config.regions else contracts
