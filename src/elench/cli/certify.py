"""`elench certify`: does this judge, metric or profile agree with people? The answer as a file."""

from __future__ import annotations

import json
from pathlib import Path

import click

from elench.cli._options import draws_option, metrics_from, model_options, models_for, seed_option, table_width


@click.command()
@click.argument("judge", metavar="JUDGE")
@click.argument("rated", type=click.Path(path_type=Path))
@click.option(
    "-o", "--out", required=True, type=click.Path(path_type=Path), help="The certificate, JSON; HTML beside it."
)
@click.option("--floor", type=click.FloatRange(-1, 1), default=0.3, show_default=True, help="The lowest r that passes.")
@click.option("-d", "--dimension", "dimensions", multiple=True, help="Only this human dimension (repeatable).")
@click.option("--by", multiple=True, default=("length", "system"), show_default=True, help="Slices (repeatable).")
@draws_option(500)
@seed_option
@model_options
def command(
    judge: str, rated: Path, out: Path, floor: float, dimensions: tuple[str, ...], by: tuple[str, ...], draws: int,
    seed: int, family: str, model: tuple[str, ...], dtype: str, device: str | None, pull: bool,
) -> None:  # fmt: skip
    """Measure JUDGE (a metric spec: judge[…], profile:FILE#dimension, any metric) against the ratings in RATED.

    Exit code 1 when a dimension is below the floor. Later runs can require it: elench score … --require-certificate."""
    from elench.errors import UsageError
    from elench.evaluate.certify import CertificateOptions, certify
    from elench.show.certificate import certificate_grids, certificate_html, certificate_notes
    from elench.show.tables import render

    metrics = metrics_from((judge,))
    if len(metrics) != 1:
        raise UsageError(f"{judge}: certify one metric at a time, such as {metrics[0]}")
    if not out.parent.is_dir():
        raise UsageError(f"{out}: its folder does not exist")
    models = models_for(metrics, family, model, dtype, device, pull)
    content = certify(metrics[0], rated, CertificateOptions(floor, dimensions, by, draws, seed), models)
    out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    out.with_suffix(".html").write_text(certificate_html(content), encoding="utf-8")
    width = table_width()
    click.echo(render(certificate_grids(content), certificate_notes(content), "text", width), nl=False)
    raise click.exceptions.Exit(0 if content["passed"] else 1)
