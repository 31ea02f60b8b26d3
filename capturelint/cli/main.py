"""The command group and the entry point."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import click

from capturelint import __version__
from capturelint.cli.errors import guarded
from capturelint.cli.terminal import make_safe
from capturelint.errors import UsageError
from capturelint.report.outcome import WENT_WRONG
from capturelint.suggest import did_you_mean

#: each command is the object ``command`` of its module, imported when it is asked for
_COMMANDS = ("check", "verify", "regions", "rules", "explain")


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        if cmd_name not in _COMMANDS:
            raise UsageError(f"no command {cmd_name!r}{did_you_mean(cmd_name, _COMMANDS)}")
        command = import_module(f"capturelint.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

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
    given = None if arguments is None else list(arguments)
    return guarded(lambda: cli.main(given, prog_name="capturelint", standalone_mode=False))
