"""``capturelint cache``: where results of earlier runs are, and how to be rid of them."""

from __future__ import annotations

from pathlib import Path

import click

from capturelint.cache.store import MAX_SIZE, Store
from capturelint.cli import options
from capturelint.cli.streams import write_stdout
from capturelint.errors import UsageError

_MEBIBYTE = 1024 * 1024


@click.group("cache")
@options.config_option
@options.cache_dir_option
@click.pass_context
def command(ctx: click.Context, config_file: Path | None, cache_dir: Path | None) -> None:
    """Show, shrink or delete the results that earlier runs kept. A check does all that is needed by itself."""
    from capturelint.config import load_config
    from capturelint.source.roots import find_project_root

    root = find_project_root([Path()])
    store = options.store_of(load_config(root, config_file), root, cache_dir)
    if store is None:
        raise UsageError("this system names no cache folder for the user; name one with --cache-dir")
    if store.folder.exists() and not store.folder.is_dir():
        raise UsageError(f"{store.folder} is no folder")
    ctx.obj = store


@command.command("dir")
@click.pass_obj
def show_folder(store: Store) -> None:
    """Show where results are kept."""
    write_stdout(f"{store.folder}\n")


@command.command("size")
@click.pass_obj
def show_size(store: Store) -> None:
    """Show how many results are kept, and what they take up."""
    entries, size = store.size()
    write_stdout(f"{_entries(entries)}, {size / _MEBIBYTE:.1f} MiB\n")


@command.command("prune")
@click.option(
    "--max-size",
    metavar="MIB",
    type=click.IntRange(min=0),
    default=MAX_SIZE // _MEBIBYTE,
    show_default=True,
    help="What the results may take up, in MiB.",
)
@click.pass_obj
def prune(store: Store, max_size: int) -> None:
    """Drop the results that were not used for longest, until the others fit. A check does so by itself."""
    write_stdout(f"{_entries(store.prune(max_size * _MEBIBYTE))} dropped\n")


@command.command("clean")
@click.pass_obj
def clean(store: Store) -> None:
    """Delete all results."""
    write_stdout(f"{_entries(store.clean())} deleted\n")


def _entries(number: int) -> str:
    return f"{number} entries" if number != 1 else "1 entry"
