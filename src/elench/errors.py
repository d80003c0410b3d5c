"""What can go wrong, in words for the person who caused it or meets it."""

from __future__ import annotations


class ElenchError(Exception):
    """Anything elench raises on purpose."""


class UsageError(ElenchError):
    """Bad input or usage: one clear line for the user; the command line exits with code 2."""


class Unscored(ElenchError):
    """A record that a metric cannot score; the message is the reason written to the output."""


class MissingModel(UsageError):
    """A model that is not on this machine; the message names the command that gets it."""


class MissingExtra(UsageError):
    """A package that is not installed; the message names the pip line that installs it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f'{what} needs an extra that is not installed: pip install "elench[{extra}]"')
