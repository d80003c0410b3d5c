"""The command line: `elench COMMAND`. One file per command; a command is loaded only when it is used."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from pkgutil import iter_modules

import click

from elench.errors import ElenchError, MissingExtra, UsageError

STUDY_PACKAGES = ("sqlalchemy", "starlette", "uvicorn", "jinja2", "python_multipart", "multipart")
"""What `elench study` imports and the core installation does not have."""


class Commands(click.Group):
    """Finds commands by file name, so that `elench --help` starts fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(m.name for m in iter_modules(__path__) if not m.name.startswith("_"))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(ctx):
            return None
        command = import_module(f"{__name__}.{name}").command
        assert isinstance(command, click.Command)
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="elench")
def cli() -> None:
    """How good are generated questions, answers and summaries, and how far can that number be trusted?"""


def _show_warning(message: Warning | str, *details: object, **more: object) -> None:
    """A warning as one line, without the place in the code."""
    click.echo(f"elench: {message}", err=True)


def main() -> None:
    """Run the command line: bad input gives one clear line on stderr and exit code 2, never a traceback."""
    warnings.showwarning = _show_warning
    try:
        sys.exit(cli.main(standalone_mode=False))
    except click.Abort:
        sys.exit("elench: interrupted; with an output file, --resume continues from here")
    except click.ClickException as wrong:
        wrong.show()
        sys.exit(wrong.exit_code)
    except UsageError as wrong:
        click.echo(f"elench: {wrong}", err=True)
        sys.exit(2)
    except ElenchError as wrong:
        click.echo(f"elench: {wrong}", err=True)
        sys.exit(1)
    except ModuleNotFoundError as wrong:
        if (wrong.name or "").partition(".")[0] not in STUDY_PACKAGES:
            raise
        click.echo(f"elench: {MissingExtra('this command', 'study')}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except OSError as wrong:
        click.echo(f"elench: {wrong.filename or 'output'}: {wrong.strerror or wrong}", err=True)
        sys.exit(2)
