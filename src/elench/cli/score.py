"""`elench score`: every metric on every record of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elench.cli._input import input_options, set_aside
from elench.cli._options import metric_option, metrics_from, model_options, models_for, table_width

if TYPE_CHECKING:
    from elench.metrics.base import Metric
    from elench.records.source import Source
    from elench.runs import Outcome

EXPLAINED = 5
"""Records whose evidence --explain prints where all of it is written to a file."""


@click.command()
@metric_option
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Scores per record: .jsonl (also .csv, .parquet).")
@click.option(
    "--explain", is_flag=True, help="Print the evidence of every score; with -o of the first 5 records, and write all."
)
@click.option("--strict", is_flag=True, help="Stop at the first bad line; exit code 1 if a record stays unscored.")
@click.option("--resume", is_flag=True, help="Finish an interrupted run.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True)
@click.option("--address", help="Ray cluster to use; default: start one here.")
@click.option("--no-cache", is_flag=True, help="Ask the models again, and keep no answers.")
@click.option(
    "--require-certificate", "certificates", multiple=True, type=click.Path(path_type=Path), metavar="CERT.json",
    help="Refuse a metric that has changed since `elench certify`, or was below its floor (repeatable).",
)  # fmt: skip
@model_options
@input_options
def command(
    file: Source, specs: tuple[str, ...], out: Path | None, explain: bool, strict: bool, resume: bool, workers: int,
    engine: str, address: str | None, no_cache: bool, certificates: tuple[Path, ...], family: str,
    model: tuple[str, ...], dtype: str, device: str | None, pull: bool,
) -> None:  # fmt: skip
    """Score the records of FILE (JSONL, CSV, Excel, Parquet, JSON; - is standard input) and print a table of means."""
    from elench.engine.job import Job, score_file
    from elench.engine.session import Session
    from elench.records.judging import PLURAL
    from elench.records.mapping import as_option
    from elench.runs.clusters import interval_lines
    from elench.runs.summary import summary_grid
    from elench.show.tables import render

    metrics = metrics_from(specs)
    models = models_for(metrics, family, model, dtype, device, pull)
    session = Session(models, not no_cache, workers, engine, address)
    if certificates:
        from elench.evaluate.certify import require

        for line in list(require(certificates, {str(m): session.signature(m) for m in metrics})):
            click.echo(f"elench: {line}", err=True)
    shown = _printer(metrics, EXPLAINED if out else None) if explain else None
    meta = score_file(Job(file, metrics, out, session, strict, resume, explain, shown))
    if explain and out and meta["records"] > EXPLAINED:
        page = out.with_suffix(".html")
        click.echo(
            f"the evidence of all {meta['records']:,} records is in {out}; to read it: elench report {out} -o {page}"
        )
    if meta["judges"]:
        *others, last = [PLURAL[kind] for kind in meta["judges"]]
        judged = f"{', '.join(others)} and {last}" if others else last
        click.echo(f"elench: {file}: judging {judged}", err=True)
    if beside := file.beside():
        column = next(iter(beside.values()))
        click.echo(f"elench: {file}: '{column}' is not read; if a system wrote it: {as_option(beside)}", err=True)
    if meta["records"]:
        count = "1 record" if meta["records"] == 1 else f"{meta['records']:,} records"
        grid = summary_grid(f"{count} of {meta['input']['file']}", meta["metrics"])
        click.echo(render([grid], interval_lines(meta["metrics"].values()), "text", table_width()), nl=False)
    for line in problems(meta, file, out):
        click.echo(f"elench: {line}", err=True)
    raise click.exceptions.Exit(exit_code(meta, strict))


def exit_code(meta: Mapping[str, Any], strict: bool) -> int:
    """0 done; 1 nothing could be scored, or with --strict some record unscored; 2 no line of the file is a record."""
    if not meta["records"]:
        return 2
    found = meta["metrics"].values()
    return int(not any(m["n"] for m in found) or (strict and any(m["unscored"] for m in found)))


def problems(meta: Mapping[str, Any], file: Path | Source, out: Path | None) -> Iterator[str]:
    """What the user must know on stderr: lines set aside, and why records are unscored.

    Where a metric scored records, those of another kind of text are only counted in the table.
    """
    from elench.metrics.base import OTHER_KIND

    first = meta["first_reject"]
    if not meta["records"]:
        yield f"{file}:{first['line']}: {first['reason']}; no line is a valid record"
        return
    if meta["rejected"]:
        where = f"see {out.with_name(out.stem + '.rejects.jsonl')}" if out else "give -o FILE to keep a list"
        yield f"{file}:{first['line']}: {first['reason']}; {set_aside(meta['rejected'])}; {where}"
    for spec, found in meta["metrics"].items():
        reasons = {why: n for why, n in found["reasons"].items() if not found["n"] or OTHER_KIND not in why}
        if reasons:
            ordered = sorted(reasons.items(), key=lambda pair: -pair[1])
            counted = [f"{why} ({n:,})" if len(ordered) > 1 else why for why, n in ordered[:3]]
            counted += [f"{len(ordered) - 3} more reason{'s' * (len(ordered) != 4)}"] if len(ordered) > 3 else []
            others = sum(found["reasons"].values()) - sum(reasons.values())
            count = f"{found['unscored'] - others:,} of {meta['records']:,} record{'s' * (meta['records'] != 1)}"
            yield f"{file}: {spec}: {count} unscored: {'; '.join(counted)}"
    if not any(found["n"] for found in meta["metrics"].values()):
        yield f"{file}: nothing could be scored; elench metrics NAME says which fields a metric reads"


def _printer(metrics: list[Metric], most: int | None) -> Callable[[Outcome], None]:
    """Prints the evidence of the first records, `most` of them (None: all)."""
    from rich.console import Console
    from rich.markup import escape

    from elench.show.evidence import evidence_rich

    console = Console(highlight=False, soft_wrap=True)
    left = iter(range(most)) if most is not None else repeat(0)

    def show(outcome: Outcome) -> None:
        for metric in metrics if outcome.reject is None and next(left, None) is not None else ():
            spec = str(metric)
            head = f"[bold]{escape(outcome.id)}[/] {escape(outcome.system or '')} [cyan]{escape(spec)}[/]"
            if spec in outcome.unscored:
                console.print(f"{head} unscored: {escape(outcome.unscored[spec])}")
                continue
            score = outcome.scores[spec]
            console.print(f"{head} [bold]{score.value:.4f}[/]")
            console.print(evidence_rich(score.evidence))

    return show
