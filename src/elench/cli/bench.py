"""`elench bench`: the leaderboard over all rated files at hand."""

from __future__ import annotations

from pathlib import Path

import click

from elench.cli._options import metrics_from, model_options, models_for, seed_option


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Rated files; without them nothing is measured, and the pages are written from OUT as it is.",
)
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="The results, one JSON; resumes it.")
@click.option("-m", "--metrics", "specs", multiple=True, metavar="SPEC[,SPEC…]", help="Only these metrics.")
@click.option("--docs", type=click.Path(path_type=Path), help="Write the leaderboard pages into this folder.")
@click.option(
    "--fill",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Bring the figures marked in this Markdown file up to date (repeatable).",
)
@click.option("--budget", type=click.FloatRange(0), default=0, help="Minutes after which no metric is started.")
@click.option(
    "--sample", type=click.IntRange(0), default=0, help="At most this many records per file, in whole groups."
)
@seed_option
@model_options
def command(
    data: Path | None, out: Path, specs: tuple[str, ...], docs: Path | None, fill: tuple[Path, ...], budget: float,
    sample: int, seed: int, family: str, model: tuple[str, ...], dtype: str, device: str | None,
    pull: bool,
) -> None:  # fmt: skip
    """Score every rated file in DATA with every metric, form and profile that applies, and write one JSON.

    A page that --fill names holds marks such as <!-- r FILE METRIC DIMENSION -->.505<!-- end -->, or n for r."""
    from elench.engine.session import Session
    from elench.errors import UsageError
    from elench.evaluate.bench import Bench, read_bench, run, stale
    from elench.show.figures import fill as fill_figures
    from elench.show.leaderboard import write_pages

    if not out.parent.is_dir():
        raise UsageError(f"{out}: its folder does not exist")
    session = Session(models_for(metrics_from(specs) if specs else [], family, model, dtype, device, pull))

    def say(line: str) -> None:
        click.echo(f"elench: {line}", err=True)

    if data:
        content = run(Bench(data, out, session, specs, budget, sample, seed, say))
    elif out.exists():
        content = read_bench(out)
    else:
        raise UsageError(f"{out}: no such file; give --data DIR to measure")
    old = stale(content, session, say)
    click.echo(f"{len(content['entries'])} figures in {out}; stale: {', '.join(sorted(set(old.values()))) or 'none'}")
    for page in write_pages(content, docs, old) if docs else ():
        click.echo(f"wrote {page}")
    for page in fill:
        click.echo(f"{page}: {'brought up to date' if fill_figures(page, content, old) else 'up to date'}")
