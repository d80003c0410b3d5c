"""`elench replicate`: a paper's tables, ours beside theirs."""

from __future__ import annotations

from pathlib import Path

import click

from elench.cli._options import format_option, model_options, models_for, seed_option, table_width


@click.command("replicate")
@click.argument("paper", type=click.Choice(["qrelscore", "questeval", "kpqa", "qascore", "qsts"]))
@click.option("--data", type=click.Path(path_type=Path), help="Folder with the rated records; default: ELENCH_DATA.")
@click.option(
    "--scores", multiple=True, type=click.Path(path_type=Path), help="Score files to use instead of scoring again."
)
@click.option(
    "--only", default="", metavar="TEXT", help='Compute only tables with this in their name, such as "Table 4".'
)
@click.option("--lexical", is_flag=True, help="Compute only metrics that ask no model; others only from --scores.")
@click.option("--limit", type=click.IntRange(50), help="At most this many records of each file (a seeded sample).")
@click.option("--groups", type=click.IntRange(2), help="Only the records of so many groups, such as sources.")
@seed_option
@format_option("text", "markdown", "latex", "json")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write here instead of the terminal.")
@model_options
def command(
    paper: str, data: Path | None, scores: tuple[Path, ...], only: str, lexical: bool, limit: int | None,
    groups: int | None, seed: int, form: str, output: Path | None, family: str, model: tuple[str, ...], dtype: str,
    device: str | None, pull: bool,
) -> None:  # fmt: skip
    """The tables of PAPER that the data at hand can support; says plainly what cannot be replicated and why."""

    from elench.evaluate.replicate.compute import metrics_of, replicate
    from elench.evaluate.replicate.sources import Materials, data_folder
    from elench.show.replication_tables import show

    models = models_for(metrics_of(paper, only), family, model, dtype, device, pull, ("encoder",))
    source = Materials(
        data_folder(data), models, scores, lexical, limit, groups, seed,
        tell=lambda line: click.echo(f"elench: scoring {line}", err=True),
    )  # fmt: skip
    text = show(replicate(paper, source, only), form, table_width(110))
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
