"""`quaestor report`: a run as one HTML file."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="The HTML file to write.")
@click.option("--records", type=click.Path(path_type=Path), help="The record file; default: the one RUN was made from.")
@click.option("--draws", type=click.IntRange(100), default=1000, show_default=True, help="Bootstrap draws.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
def command(run: Path, out: Path, records: Path | None, draws: int, seed: int) -> None:
    """Write a self-contained report of RUN, the output file of quaestor score (with --explain: with evidence)."""
    from quaestor.errors import UsageError
    from quaestor.report import build, load_run

    if records is not None and not records.is_file():
        raise UsageError(f"{records}: no such file")
    loaded = load_run(run, records)
    out.write_text(build(loaded, draws, seed), encoding="utf-8")
    click.echo(f"{out}: {len(loaded.lines)} records, {len(loaded.specs)} metrics")
    for warning in loaded.warnings:
        click.echo(f"quaestor: {warning}", err=True)
    if not loaded.records and not loaded.warnings:
        click.echo(
            "quaestor: the record file was not found, so texts and systems are left out: give --records", err=True
        )
