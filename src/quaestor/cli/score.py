"""`quaestor score`: every metric on every record of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quaestor.cli._options import metric_option, metrics_from, model_options, models_from

if TYPE_CHECKING:
    from quaestor.engine.windows import Outcome
    from quaestor.metrics.base import Metric
    from quaestor.records import Record


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@metric_option
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Scores per record: .jsonl (also .csv, .parquet).")
@click.option("--explain", is_flag=True, help="Print the evidence of every score, and write it to the output.")
@click.option("--strict", is_flag=True, help="Stop at the first bad line; exit code 1 if a record stays unscored.")
@click.option("--resume", is_flag=True, help="Finish an interrupted run.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True)
@click.option("--address", help="Ray cluster to use; default: start one here.")
@click.option("--no-cache", is_flag=True, help="Ask the models anew, and keep no answers.")
@model_options
def command(
    file: Path, specs: tuple[str, ...], out: Path | None, explain: bool, strict: bool, resume: bool, workers: int,
    engine: str, address: str | None, no_cache: bool, family: str, model: tuple[str, ...], dtype: str,
    device: str | None, pull: bool,
) -> None:  # fmt: skip
    """Score the records of FILE (JSONL, CSV, Parquet, SQuAD JSON) and print a table of means."""
    from quaestor.engine.run import Job, checked_rows, score_file

    metrics = metrics_from(specs)
    models = models_from(family, model, dtype, device, pull)
    job = Job(
        file, metrics, out, models, explain, strict, resume, workers, not no_cache, engine, address,
        on_outcome=_printer(metrics) if explain else None,
    )  # fmt: skip
    meta = score_file(job)
    _print_table(meta)
    if meta["rejected"]:
        where = f": see {out.with_name(out.stem + '.rejects.jsonl')}" if out else "; give -o to keep them"
        click.echo(f"quaestor: {file}: {meta['rejected']} bad lines were set aside{where}", err=True)
        if not meta["records"]:
            for _ in checked_rows(file, metrics, strict=True):  # no line is good: the first one says why, exit code 2
                pass
    if strict and any(found["unscored"] for found in meta["metrics"].values()):
        raise click.exceptions.Exit(1)


def _printer(metrics: list[Metric]) -> Any:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False, soft_wrap=True)

    def show(record: Record, outcome: Outcome) -> None:
        for metric in metrics:
            spec = str(metric)
            head = f"[bold]{escape(record.id)}[/] {escape(record.system or '')} [cyan]{escape(spec)}[/]"
            if spec in outcome.unscored:
                console.print(f"{head} unscored: {escape(outcome.unscored[spec])}")
                continue
            score = outcome.scores[spec]
            console.print(f"{head} [bold]{score.value:.4f}[/]")
            console.print(metric.explain(score.evidence))

    return show


def _print_table(meta: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=f"{meta['records']} records of {meta['input']['file']}", title_justify="left")
    for column in ("metric", "mean", "95 % interval", "corpus", "n", "unscored"):
        table.add_column(column, justify="left" if column == "metric" else "right", overflow="fold")
    for spec, found in meta["metrics"].items():
        low_high = "–" if found["ci95"] is None else f"{found['ci95'][0]:.4f} … {found['ci95'][1]:.4f}"
        numbers = [f"{found[k]:.4f}" if found[k] is not None else "–" for k in ("mean", "corpus")]
        table.add_row(escape(spec), numbers[0], low_high, numbers[1], str(found["n"]), str(found["unscored"] or ""))
    Console().print(table)
