"""Options that commands share, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from capturelint.cli.terminal import COLOR_CHOICES
from capturelint.model import Confidence

if TYPE_CHECKING:
    from capturelint.check import CheckOptions

_F = TypeVar("_F", bound=Callable[..., Any])


def _split(ctx: click.Context, parameter: click.Parameter, value: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.strip() for text in value for part in text.split(",") if part.strip())


paths_argument = click.argument(
    "paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path), callback=lambda c, p, v: v or (Path(),)
)
config_option = click.option(
    "--config", "config_file", metavar="FILE", type=click.Path(path_type=Path), help="Read the configuration from FILE."
)
color_option = click.option(
    "--color", type=click.Choice(COLOR_CHOICES), default="auto", show_default=True, help="Whether to use colours."
)
force_exclude_option = click.option(
    "--force-exclude", is_flag=True, help="Leave out excluded files even when they are named on the command line."
)
require_regions_option = click.option("--require-regions", is_flag=True, help="Fail when no captured region is found.")
jobs_option = click.option(
    "--jobs",
    "-j",
    metavar="N",
    type=click.IntRange(min=1),
    help="Use N processes.  [default: as many as there are cores]",
)


def rule_list_option(name: str, help_text: str) -> Callable[[_F], _F]:
    return click.option(name, metavar="RULES", multiple=True, callback=_split, help=help_text)


def check_options(
    paths: Sequence[Path],
    *,
    config_file: Path | None = None,
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    min_confidence: str | None = None,
    force_exclude: bool = False,
    jobs: int | None = None,
) -> CheckOptions:
    """The options of a run, with the project's configuration. Raises ConfigError.

    ``select`` and ``ignore`` are the command line's alone: ``check_paths`` puts them together with the configuration's.
    """
    from capturelint.check import CheckOptions
    from capturelint.config import check_selectors, load_config
    from capturelint.rulebook import load_rulebook
    from capturelint.source.roots import find_project_root

    root = find_project_root(paths)
    config = load_config(root, config_file)
    if config.select or config.ignore or config.per_file_ignores:
        check_selectors(config, load_rulebook().resolve)
    return CheckOptions(
        paths=tuple(paths),
        config=config,
        select=select,
        ignore=ignore,
        min_confidence=Confidence(min_confidence) if min_confidence else config.min_confidence,
        root=root,
        force_exclude=force_exclude,
        jobs=jobs,
    )
