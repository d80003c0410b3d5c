"""Options that several commands share: which metrics, which models."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from elench.errors import ElenchError, UsageError

if TYPE_CHECKING:
    from elench.metrics.base import Metric
    from elench.models.base import Identity, ModelSet

Command = Callable[..., Any]
FAMILIES = ["embedded", "large", "large-lm", "paper"]
DTYPES = ["float32", "int8", "bfloat16", "float16"]


def seed_option(command: Command) -> Command:
    """--seed; the same seed gives the same output."""
    return click.option("--seed", type=click.IntRange(0), default=0, show_default=True)(command)


def draws_option(default: int) -> Callable[[Command], Command]:
    """--draws: resamples of a test or an interval."""
    return click.option(
        "--draws", type=click.IntRange(100), default=default, show_default=True, help="Resamples per test and interval."
    )


def alpha_option(command: Command) -> Command:
    """--alpha: below which p-value a difference counts."""
    return click.option(
        "--alpha", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.05, show_default=True,
        help="Level of significance.",
    )(command)  # fmt: skip


def format_option(*forms: str) -> Callable[[Command], Command]:
    """--format: how tables are printed; reaches the command as `form`."""
    return click.option("--format", "form", type=click.Choice(forms), default=forms[0], show_default=True)


def table_width(least: int = 100) -> int:
    """Characters a printed table may be wide: the terminal's, or a little more than the least in a pipe."""
    return max(shutil.get_terminal_size((least + 20, 24)).columns, least)


def metric_option(command: Command) -> Command:
    return click.option(
        "-m", "--metrics", "specs", multiple=True, required=True, metavar="SPEC[,SPEC…]",
        help="Metrics, such as bleu,qrelscore[form=code]; see: elench metrics.",
    )(command)  # fmt: skip


def _limit(name: str) -> Callable[..., None]:
    """A callback that hands a limit on to the client of a server, in worker processes too."""

    def keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value is not None:
            for key, part in zip(name.split(), str(value).split("/"), strict=False):
                os.environ[f"ELENCH_HTTP_{key}"] = part

    return keep


def server_options(command: Command) -> Command:
    """Limits for models behind a URL."""
    for flag, name, kind, text in (
        ("--price", "PRICE_IN PRICE_OUT", str, "Price of a million tokens read/written, such as 0.15/0.60."),
        ("--max-cost", "MAX_COST", click.FloatRange(0), "Stop when a server's answers have cost this much."),
        ("--max-requests", "MAX_REQUESTS", click.IntRange(1), "Stop after this many requests to a server."),
        ("--rate", "PER_MINUTE", click.FloatRange(0, min_open=True), "Requests per minute to a server, at most."),
        ("--concurrency", "CONCURRENCY", click.IntRange(1, 256), "Requests to a server at a time (default 8)."),
    ):
        command = click.option(flag, type=kind, help=text, expose_value=False, callback=_limit(name))(command)
    return command


def model_options(command: Command) -> Command:
    """--models, --model, --dtype, --device, --pull."""
    for option in (
        click.option("--pull", is_flag=True, help="Fetch models that are missing."),
        click.option("--device", help="cpu, cuda, cuda:1 …; default: cuda where there is one."),
        click.option("--dtype", default="float32", show_default=True, type=click.Choice(DTYPES)),
        click.option(
            "--model", "model", multiple=True, metavar="ROLE=NAME|FOLDER|URL",
            help="A hub name, a folder, a GGUF file, or a server: http://HOST/v1#MODEL.",
        ),
        click.option(
            "--models", "family", default="embedded", show_default=True, type=click.Choice(FAMILIES),
            help="embedded: small, offline; large: better and slower encoder, masked, reader, support, "
            "equivalent, wellformed; large-lm: a bigger judge (needs llama.cpp); paper: the papers' checkpoints.",
        ),
    ):  # fmt: skip
        command = option(command)
    return server_options(command)


def metrics_from(specs: tuple[str, ...]) -> list[Metric]:
    from elench.engine.scoring import parse_metrics

    chosen = parse_metrics(specs)
    if not chosen:
        raise UsageError("no metric given: -m SPEC[,SPEC…]; see: elench metrics")
    return chosen


def models_for(
    metrics: list[Metric], family: str, model: tuple[str, ...], dtype: str, device: str | None, pull: bool,
    others: tuple[str, ...] = (),
) -> ModelSet:  # fmt: skip
    """The models of a run; says which --model no metric asks (nor the command: `others`). --models paper takes these
    metrics' own checkpoints and says which roles are not theirs."""
    models = models_from(family, model, dtype, device, pull)
    say_unasked(models, metrics, others)
    if family == "paper":
        from elench.metrics.paper_models import paper_checkpoints
        from elench.models.base import ModelSet

        models = ModelSet({**models.names, **paper_checkpoints(metrics, models.names)}, family, dtype, device, pull)
        say_unlike_paper(models, metrics)
    say_unlike_asked(models, metrics)
    return models


def say_unasked(models: ModelSet, metrics: Sequence[Metric], others: Sequence[str] = ()) -> None:
    """One line on a --model whose role none of the metrics asks."""
    asked = {role for metric in metrics for role in metric.roles}.union(others)
    if metrics and (idle := [f"{role}={name}" for role, name in models.names.items() if role not in asked]):
        roles = f"roles they ask: {', '.join(sorted(asked))}" if asked else "they need no model"
        click.echo(f"elench: --model {' '.join(idle)}: not used by the chosen metrics; {roles}", err=True)


def say_unlike_paper(models: ModelSet, metrics: Sequence[Metric]) -> None:
    """One line on the roles that --models paper cannot fill as the metrics' papers did."""
    from elench.metrics.paper_models import unlike_paper

    if models.family == "paper" and (unlike := unlike_paper(metrics, models.names)):
        click.echo(f"elench: {unlike}", err=True)


def say_unlike_asked(models: ModelSet, metrics: Sequence[Metric]) -> None:
    """One line on the models that do not run as --dtype and --device ask."""
    if models.device is None and models.dtype == "float32":
        return
    if others := [i for i in _identities(metrics, models) if not i.runs_as(models.dtype, models.device)]:
        named = ", ".join(f"{identity} on {identity.device}" for identity in others)
        click.echo(f"elench: not run as --dtype and --device ask: {named}", err=True)


def _identities(metrics: Sequence[Metric], models: ModelSet) -> Iterator[Identity]:
    """The models that the metrics ask; one that is missing is reported where it is used."""
    for role in dict.fromkeys(role for metric in metrics for role in metric.roles):
        with suppress(ElenchError):
            yield models.identity(role)


def models_from(family: str, model: tuple[str, ...], dtype: str, device: str | None, pull: bool) -> ModelSet:
    from elench.models.base import ModelSet

    names: dict[str, str] = {}
    for given in model:
        role, equals, name = given.partition("=")
        if not (role and equals and name):
            raise UsageError(f"--model {given}: write ROLE=NAME, such as encoder=roberta-base")
        names[role] = name
    return ModelSet(names, family, dtype, device, pull)
