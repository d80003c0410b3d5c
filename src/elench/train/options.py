"""Options that the trainers share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from elench.errors import UsageError

file_option = click.option(
    "--file", "more", multiple=True, type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Train on this file too: SQuAD JSON or records (.jsonl) with context, question and answer.",
)  # fmt: skip

family_option = click.option(
    "--family", type=click.Choice(["embedded", "large"]), default="embedded", show_default=True,
    help="The base: MiniLM (embedded) or DeBERTa-v3-xsmall (large).",
)  # fmt: skip

start_option = click.option(
    "--start", type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Start from the stored model or checkpoint in this folder instead of the base encoder.",
)  # fmt: skip

teacher_option = click.option(
    "--teacher", type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Learn also the probabilities of the stored model in this folder.",
)  # fmt: skip


def train_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--data, --out, --minutes, --steps, --seed, --threads, --resume."""
    for option in (
        click.option("--resume", is_flag=True, help="Continue from the last checkpoint in --out."),
        click.option("--threads", type=click.IntRange(1), default=1, show_default=True, help="Processor threads."),
        click.option("--seed", type=click.IntRange(0), default=7, show_default=True),
        click.option("--steps", type=click.IntRange(0), default=0, help="Stop after this many steps."),
        click.option(
            "--minutes", type=click.FloatRange(0), default=0.0,
            help="Stop after this many minutes; the learning rate ends at 0.",
        ),
        click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="For checkpoints and the model."),
        click.option(
            "--data", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True,
            help="Folder of the corpora.",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


def destination(out: Path | None) -> Path:
    """The folder that --out names; a training that stores nothing is refused."""
    if out is None:
        raise UsageError("--out names the folder for checkpoints and the model")
    return out
