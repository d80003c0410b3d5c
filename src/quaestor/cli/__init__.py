"""The command line: `quaestor COMMAND`. One file per command; a command is loaded only when it is used."""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import iter_modules

import click

from quaestor.errors import QuaestorError, UsageError


class Commands(click.Group):
    """Finds commands by file name, so that `quaestor --help` starts fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(m.name for m in iter_modules(__path__) if not m.name.startswith("_"))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(ctx):
            return None
        command = import_module(f"{__name__}.{name}").command
        assert isinstance(command, click.Command)
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="quaestor")
def cli() -> None:
    """How good are generated questions, answers and summaries, and how far can that number be trusted?"""


def main() -> None:
    """Run the command line: bad input gives one clear line on stderr and exit code 2, never a traceback."""
    try:
        sys.exit(cli.main(standalone_mode=False))
    except click.Abort:
        sys.exit("quaestor: interrupted; with an output file, --resume goes on from here")
    except click.ClickException as wrong:
        wrong.show()
        sys.exit(wrong.exit_code)
    except UsageError as wrong:
        click.echo(f"quaestor: {wrong}", err=True)
        sys.exit(2)
    except QuaestorError as wrong:
        click.echo(f"quaestor: {wrong}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except OSError as wrong:
        click.echo(f"quaestor: {wrong.filename or 'file'}: {wrong.strerror or wrong}", err=True)
        sys.exit(2)
