"""`elench compare`: systems side by side, with paired significance."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elench.cli._input import judge_option, map_option, valid_records
from elench.cli._options import (
    alpha_option,
    draws_option,
    format_option,
    metric_option,
    metrics_from,
    model_options,
    models_for,
    seed_option,
)

if TYPE_CHECKING:
    from elench.records.source import Source


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@metric_option
@click.option("--test", type=click.Choice(["randomisation", "bootstrap"]), default="randomisation", show_default=True)
@click.option(
    "--holm-over",
    type=click.Choice(["metric", "all"]),
    default="metric",
    show_default=True,
    help="Correct over the pairs of each metric, or over all pairs and metrics together.",
)
@click.option("--rated", type=click.Path(path_type=Path), help="Records with ratings: how often do people agree?")
@click.option(
    "--calibrate", is_flag=True, help="Simulate data like this file: actual false-alarm rate, coverage, power."
)
@click.option("--pairs", "all_pairs", is_flag=True, help="Print every pair of systems, not only the first ten.")
@alpha_option
@draws_option(2000)
@seed_option
@format_option("text", "markdown", "latex", "json", "html")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Write the table to a file.")
@model_options
@judge_option
@map_option
def command(
    files: tuple[Source, ...], specs: tuple[str, ...], test: str, holm_over: str, all_pairs: bool, alpha: float,
    rated: Path | None, calibrate: bool, draws: int, seed: int, form: str, out: Path | None, family: str,
    model: tuple[str, ...], dtype: str,
    device: str | None, pull: bool,
) -> None:  # fmt: skip
    """Compare the systems in FILES: the `system` field of the records, or one file per system."""
    from elench.errors import UsageError
    from elench.evaluate.compare import compare
    from elench.records.fields import JUDGES
    from elench.records.record import read_records

    for source in files:
        if "scores" in source.columns and not set(JUDGES) & set(source.columns):
            raise UsageError(
                f"{source}: holds scores, not records; compare the record file, or: elench report {source}"
            )
    metrics = metrics_from(specs)
    records = [
        replace(record, system=source.stem) if record.system is None else record
        for source in files
        for record in valid_records(source.for_metrics(metrics))
    ]
    models = models_for(metrics, family, model, dtype, device, pull)
    table = compare(
        records, metrics, test=test, alpha=alpha, draws=draws, seed=seed, family=holm_over,
        calibrate=calibrate, rated=list(read_records(rated)) if rated else None, all_pairs=all_pairs, models=models,
    )  # fmt: skip
    text = table.render(form).rstrip("\n")
    if out:
        out.write_text(text + "\n", encoding="utf-8")
    else:
        click.echo(text)
