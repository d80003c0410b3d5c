"""elench train reader|asker|keyphrases|classes|weights: retrain elench's own small models."""

from __future__ import annotations

from importlib import import_module

import click

TRAINERS = {
    "reader": "Answers questions from a text, or says that it cannot.",
    "asker": "Asks a question whose answer is given.",
    "keyphrases": "Weighs the words of an answer.",
    "classes": "Tells what kind of answer a question asks for.",
    "paraphrases": "Back-translations that the support model learns from.",
    "masked": "Says how probable the words behind a mask are.",
    "support": "Tells whether a text follows from another.",
    "equivalent": "Tells whether two answers say the same.",
    "wellformed": "Tells whether a question is well formed.",
    "weights": "Tells which questions a summary should answer.",
    "graphs": "Writes the ONNX graphs of the embedded models; trains nothing.",
}


class Trainers(click.Group):
    """One trainer per module `elench.train.NAME`, loaded when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(TRAINERS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in TRAINERS:
            return None
        command = import_module(f"elench.train.{name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the trainers without loading them."""
        with formatter.section("Models"):
            formatter.write_dl(list(TRAINERS.items()))


@click.group(cls=Trainers)
def command() -> None:
    """Train one of elench's own small models from the corpora in a folder."""
