"""`elench report`: one or several runs as one HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from elench.cli._options import draws_option, seed_option


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="The HTML file to write.")
@click.option("--records", type=click.Path(path_type=Path), help="The record file; default: the one RUN was made from.")
@draws_option(2000)
@seed_option
def command(runs: tuple[Path, ...], out: Path, records: Path | None, draws: int, seed: int) -> None:
    """Write a self-contained report of RUNS, the output files of elench score (with --explain: with evidence).

    Several runs are compared with each other: the same records before and after a change, or one file per system.
    """
    from elench.show.report import build, load_view

    view = load_view(runs, records)
    html = build(view, draws, seed)
    out.write_text(html, encoding="utf-8")
    size = f"{len(html.encode()) / 1e6:.2f} MB"
    click.echo(f"{out}: {len(view.rows)} records, {len(view.specs)} metrics, {size}")
    for warning in view.warnings:
        click.echo(f"elench: {warning}", err=True)
