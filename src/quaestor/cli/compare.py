"""`quaestor compare`: systems side by side, with paired significance."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from quaestor.cli._options import metric_option, metrics_from, model_options, models_from


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@metric_option
@click.option("--test", type=click.Choice(["randomisation", "bootstrap"]), default="randomisation", show_default=True)
@click.option("--alpha", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.05, show_default=True)
@click.option("--draws", type=click.IntRange(100), default=2000, show_default=True, help="Resamples per test.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "--format", "form", type=click.Choice(["text", "markdown", "latex", "json"]), default="text", show_default=True
)
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Write the table to a file.")
@model_options
def command(
    files: tuple[Path, ...], specs: tuple[str, ...], test: str, alpha: float, draws: int, seed: int, form: str,
    out: Path | None, family: str, model: tuple[str, ...], dtype: str, device: str | None, pull: bool,
) -> None:  # fmt: skip
    """Compare the systems in FILES: the `system` field of the records, or one file per system."""
    from quaestor.comparison import compare
    from quaestor.records import read_records

    records = [
        replace(record, system=path.stem) if record.system is None else record
        for path in files
        for record in read_records(path)
    ]
    models = models_from(family, model, dtype, device, pull)
    table = compare(records, metrics_from(specs), test=test, alpha=alpha, draws=draws, seed=seed, models=models)
    text = {"text": table.to_text, "markdown": table.to_markdown, "latex": table.to_latex, "json": table.to_json}[
        form
    ]()
    if out:
        out.write_text(text + "\n", encoding="utf-8")
    else:
        click.echo(text)
