"""quaestor train reader|asker|keyphrases|classes|weights: make quaestor's own small models again."""

from __future__ import annotations

from importlib import import_module

import click

TRAINERS = {
    "reader": "Answers questions from a text, or says that it cannot.",
    "asker": "Asks a question whose answer is given.",
    "keyphrases": "Weighs the words of an answer.",
    "classes": "Tells what kind of answer a question asks for.",
    "weights": "Tells which questions a summary should answer.",
}


class Trainers(click.Group):
    """One trainer per module `quaestor.train.NAME`, loaded when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(TRAINERS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in TRAINERS:
            return None
        command = import_module(f"quaestor.train.{name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the trainers without loading them."""
        with formatter.section("Models"):
            formatter.write_dl(list(TRAINERS.items()))


@click.group(cls=Trainers)
def command() -> None:
    """Train one of quaestor's own small models from the corpora in a folder."""
