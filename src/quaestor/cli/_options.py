"""Options that several commands share: which metrics, which models."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from quaestor.errors import UsageError

if TYPE_CHECKING:
    from quaestor.metrics.base import Metric
    from quaestor.models.base import ModelSet

DTYPES = ["float32", "bfloat16", "float16"]


def metric_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "-m", "--metrics", "specs", multiple=True, required=True, metavar="SPEC[,SPEC…]",
        help="Metrics, such as bleu,qrelscore[form=code]; see: quaestor metrics.",
    )(command)  # fmt: skip


def model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--models, --model, --dtype, --device, --pull."""
    for option in (
        click.option("--pull", is_flag=True, help="Fetch models that are missing."),
        click.option("--device", help="cpu, cuda, cuda:1 …; default: cuda where there is one."),
        click.option("--dtype", default="float32", show_default=True, type=click.Choice(DTYPES)),
        click.option("--model", "model", multiple=True, metavar="ROLE=NAME", help="A hub name or folder."),
        click.option(
            "--models", "family", default="embedded", show_default=True, type=click.Choice(["embedded", "paper"]),
            help="embedded: small, offline; paper: the checkpoints the papers used.",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


def metrics_from(specs: tuple[str, ...]) -> list[Metric]:
    from quaestor.metrics import metric, split_specs

    chosen = [metric(spec) for given in specs for spec in split_specs(given)]
    if not chosen:
        raise UsageError("no metric given: -m SPEC[,SPEC…]; see: quaestor metrics")
    return chosen


def models_from(family: str, model: tuple[str, ...], dtype: str, device: str | None, pull: bool) -> ModelSet:
    from quaestor.models.base import ModelSet

    names: dict[str, str] = {}
    for given in model:
        role, equals, name = given.partition("=")
        if not (role and equals and name):
            raise UsageError(f"--model {given}: write ROLE=NAME, such as encoder=roberta-base")
        names[role] = name
    return ModelSet(names, family, dtype, device, pull)
