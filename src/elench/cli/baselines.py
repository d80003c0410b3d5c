"""`elench baselines`: what QRelScore's parts give to unrelated pairs, stored for rescaling."""

from __future__ import annotations

from pathlib import Path

import click

from elench.cli._options import model_options, models_from, seed_option


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-m", "--metrics", "specs", multiple=True, help="Parts with parameters; default: qrel-lrm,qrel-grg.")
@click.option("--name", help="Name of the data set; default: the file's name without its ending.")
@click.option("--pairs", type=click.IntRange(2), default=500, show_default=True, help="Unrelated pairs to score.")
@seed_option
@model_options
def command(
    file: Path, specs: tuple[str, ...], name: str | None, pairs: int, seed: int, family: str, model: tuple[str, ...],
    dtype: str, device: str | None, pull: bool,
) -> None:  # fmt: skip
    """Compute b_LRM and b_GRG on FILE (QRelScore, appendix F): the mean over questions paired with other contexts."""
    from elench.evaluate.rescaling import compute_baselines, unrelated_pairs
    from elench.metrics import metric, split_specs
    from elench.metrics.qrelscore import QRelGRG, QRelLRM, unscaled
    from elench.records.record import read_records

    parts = [metric(s) for given in specs or ("qrel-lrm,qrel-grg",) for s in split_specs(given)]
    chosen = [part for part in parts if isinstance(part, (QRelLRM, QRelGRG))]
    if len(chosen) < len(parts):
        raise click.UsageError("baselines are kept for qrel-lrm and qrel-grg; qrelscore is rescaled by both")
    models = models_from(family, model, dtype, device, pull)
    found, left_out = unrelated_pairs(read_records(file), pairs, seed, str(file))
    for part, value in compute_baselines(found, chosen, models, name or file.stem).items():
        click.echo(f"b({unscaled(part)}) = {value:.4f}   n = {len(found)} pairs, {left_out} left out for shared words")
