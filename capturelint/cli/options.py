"""Options that commands share, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from capturelint.cli.completion import complete_rules
from capturelint.cli.terminal import COLOR_CHOICES
from capturelint.errors import UsageError
from capturelint.model import Confidence, Severity
from capturelint.report.formats import FORMATS
from capturelint.report.options import ReportOptions
from capturelint.report.outcome import Gate

if TYPE_CHECKING:
    from capturelint.cache.store import Store
    from capturelint.check import CheckOptions
    from capturelint.config import Config

_F = TypeVar("_F", bound=Callable[..., Any])


class GivenPath(click.Path):
    """A path that is not empty: as a Path, an empty one would be the working directory."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        if value == "":
            hint = "" if isinstance(parameter, click.Option) else "; the working directory is `.`"
            raise UsageError(f"{_shown(parameter)}: the path is empty{hint}")
        return super().convert(value, parameter, context)


def _shown(parameter: click.Parameter | None) -> str:
    return parameter.opts[0] if isinstance(parameter, click.Option) else "PATH"


def _split(ctx: click.Context, parameter: click.Parameter, value: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.strip() for text in value for part in text.split(",") if part.strip())


def _split_some(ctx: click.Context, parameter: click.Parameter, value: Sequence[str]) -> tuple[str, ...]:
    """Nothing selected would be everything."""
    names = _split(ctx, parameter, value)
    if value and not names:
        raise UsageError(f"{_shown(parameter)}: names no rule; without the option all are checked")
    return names


paths_argument = click.argument(
    "paths", metavar="[PATH]...", nargs=-1, type=GivenPath(), callback=lambda c, p, v: v or (Path(),)
)
config_option = click.option(
    "--config",
    "config_file",
    metavar="FILE",
    type=GivenPath(),
    help="Read the configuration from FILE.  [default: the project's capturelint.toml, else its pyproject.toml]",
)
color_option = click.option(
    "--color", type=click.Choice(COLOR_CHOICES), default="auto", show_default=True, help="Whether to use colours."
)
force_exclude_option = click.option(
    "--force-exclude", is_flag=True, help="Leave out excluded files even when they are named on the command line."
)
require_regions_option = click.option("--require-regions", is_flag=True, help="Fail when no captured region is found.")
cache_dir_option = click.option(
    "--cache-dir",
    metavar="DIR",
    type=GivenPath(),
    envvar="CAPTURELINT_CACHE_DIR",
    help="Keep results in DIR.  [default: the user's cache folder; env: CAPTURELINT_CACHE_DIR]",
)
jobs_option = click.option(
    "--jobs",
    "-j",
    metavar="N",
    type=click.IntRange(min=1),
    help="Use up to N processes; more than two are of no use.  [default: as many as there are cores]",
)


format_option = click.option(
    "--format", "stdout_format", type=click.Choice(list(FORMATS)), help="Format of the report on stdout."
)
output_option = click.option(
    "--output", "outputs", metavar="FORMAT:FILE", multiple=True, help="Write one more report; - is stdout. Repeatable."
)


def cache_options(command: _F) -> _F:
    """``--no-cache`` and ``--cache-dir``."""
    command = click.option(
        "--no-cache",
        is_flag=True,
        envvar="CAPTURELINT_NO_CACHE",
        help="Work everything out anew, and keep nothing.  [env: CAPTURELINT_NO_CACHE]",
    )(command)
    return cache_dir_option(command)


def rule_list_option(name: str, help_text: str, *, may_be_empty: bool = False) -> Callable[[_F], _F]:
    split = _split if may_be_empty else _split_some
    return click.option(
        name, metavar="RULES", multiple=True, callback=split, shell_complete=complete_rules, help=help_text
    )


def selection_options(command: _F) -> _F:
    """Adds the options about what is reported and what fails."""
    for option in reversed(
        (
            rule_list_option("--select", "Check only these rules: codes, prefixes or names, comma separated."),
            rule_list_option("--ignore", "Leave out these rules.", may_be_empty=True),
            click.option(
                "--min-confidence",
                type=click.Choice([member.value for member in Confidence]),
                help="Report findings at least this sure.  [default: likely]",
            ),
            click.option(
                "--fail-on",
                type=click.Choice([member.value for member in Severity]),
                help="Exit with 1 for findings at least this severe.  [default: error]",
            ),
        )
    ):
        command = option(command)
    return command


def check_options(
    paths: Sequence[Path],
    *,
    config_file: Path | None = None,
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    min_confidence: str | None = None,
    fail_on: str | None = None,
    force_exclude: bool = False,
    jobs: int | None = None,
    beside: Sequence[Path] = (),
    explains: bool = False,
    no_cache: bool = False,
    cache_dir: Path | None = None,
) -> CheckOptions:
    """The options of a run, with the project's configuration. Raises ConfigError.

    ``explains``: the facts behind the result are wanted.
    ``beside``: paths that belong to the same project, though they are not asked about.
    ``select`` and ``ignore`` are the command line's alone: ``check_paths`` puts them together with the configuration's.
    What the command line says counts for all files, whatever ``overrides`` say.
    """
    from capturelint.check import CheckOptions
    from capturelint.config import check_selectors, load_config
    from capturelint.rulebook import load_rulebook
    from capturelint.source.roots import find_project_root

    root = find_project_root([*paths, *beside])
    config = load_config(root, config_file)
    if config.select or config.ignore or config.per_file_ignores or config.overrides:
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
        fail_on=Severity(fail_on) if fail_on else config.fail_on,
        overrides=tuple(
            replace(
                override,
                select=() if select else override.select,
                min_confidence=None if min_confidence else override.min_confidence,
                fail_on=None if fail_on else override.fail_on,
            )
            for override in config.overrides
        ),
        explains=explains,
        cache=None if no_cache else store_of(config, root, cache_dir),
    )


def store_of(config: Config, root: Path, named: Path | None) -> Store | None:
    """The cache: where the command line says, or the configuration, or else in the user's cache folder."""
    from capturelint.cache.location import default_folder
    from capturelint.cache.store import Store

    configured = root / config.cache_dir if config.cache_dir is not None else None
    folder = named or configured or default_folder()
    return Store(folder.absolute()) if folder is not None else None


def gate_of(run: CheckOptions, only_confirmed: bool, require_regions: bool) -> Gate:
    """What fails a run with these options."""
    from capturelint.path_settings import PathSettings
    from capturelint.rulebook import load_rulebook

    return Gate(
        fail_on=run.fail_on,
        min_confidence=run.min_confidence,
        only_confirmed=only_confirmed,
        require_regions=require_regions or run.config.require_regions,
        by_path=PathSettings(load_rulebook(), run).at if run.overrides else None,
    )


def report_options(
    run: CheckOptions, gate: Gate, *, verbose: bool, quiet: bool, unsafe_fixes: bool = False
) -> ReportOptions:
    from capturelint.source.lines import LineReader

    return ReportOptions(
        LineReader(run.contents),
        verbose=verbose,
        quiet=quiet,
        gate=gate,
        rule_url=run.config.rule_url,
        unsafe_fixes=unsafe_fixes,
    )
