"""The command group and the entry point."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from capturelint import __version__
from capturelint.cli.errors import guarded, reader_gone
from capturelint.cli.streams import require_stdout
from capturelint.cli.terminal import make_safe
from capturelint.errors import UsageError
from capturelint.report.outcome import WENT_WRONG
from capturelint.suggest import did_you_mean

#: each command is the object ``command`` of its module, imported when it is asked for
_COMMANDS = ("check", "verify", "regions", "rules", "explain", "explain-finding", "config", "cache")


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            if ctx.resilient_parsing:  # a shell asks what could follow
                return None
            raise UsageError(f"no command {cmd_name!r}{did_you_mean(cmd_name, _COMMANDS)}")
        command = import_module(f"capturelint.cli.{cmd_name.replace('-', '_')}").command
        assert isinstance(command, click.Command)
        return command

    def make_context(self, *arguments: Any, **settings: Any) -> click.Context:
        # where click writes the group's help, and would end the process itself for a reader that has gone away
        try:
            return super().make_context(*arguments, **settings)
        except BrokenPipeError as error:
            raise click.exceptions.Exit(reader_gone()) from error

    def invoke(self, ctx: click.Context) -> int:
        # guarded here as well as outside: click's own main would turn an interrupt and a broken pipe into other things
        return guarded(lambda: super(_Commands, self).invoke(ctx))


@click.group(cls=_Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="capturelint", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> int:
    """Finds what breaks CUDA graphs before capture does."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        return WENT_WRONG
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit status. ``arguments`` are those of the process when left out."""
    make_safe()
    return guarded(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> Any:
    require_stdout()
    given = None if arguments is None else list(arguments)
    return cli.main(given, prog_name="capturelint", standalone_mode=False)
