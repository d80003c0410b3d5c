"""`elench meta`: metrics against human judgements."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elench.cli._input import judge_option, map_option
from elench.cli._options import draws_option, format_option, seed_option, table_width

if TYPE_CHECKING:
    from elench.records.source import Source


@click.command("meta")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--scores", "score_files", multiple=True, type=click.Path(path_type=Path), help="Output of `elench score`."
)
@click.option(
    "--by", help="Repeat for each value of a field: system, length, question-word, or any field of the records."
)
@click.option("--level", type=click.Choice(["segment", "group", "system"]), default="segment", show_default=True)
@click.option(
    "--coefficient",
    type=click.Choice(["pearson", "spearman", "kendall-b", "kendall-c", "accuracy", "soft-accuracy"]),
    default="pearson",
    show_default=True,
    help="The one that ranks, marks and clusters; the others are shown beside it.",
)
@click.option("-d", "--dimension", "dimensions", multiple=True, help="Only this human dimension (repeatable).")
@click.option("-m", "--metric", "metrics", multiple=True, help="Only this metric or peer (repeatable).")
@click.option(
    "--resample",
    "over",
    type=click.Choice(["items", "systems", "both"]),
    help="What is resampled; an item is a group of records about one context. Default: items; at system level both.",
)
@click.option("--interval", type=click.Choice(["bootstrap", "fisher"]), default="bootstrap", show_default=True)
@draws_option(1000)
@seed_option
@click.option("--correction", type=click.Choice(["holm", "bh", "none"]), default="holm", show_default=True)
@click.option(
    "--alpha", type=click.FloatRange(0.0, 0.5), default=0.05, show_default=True, help="Level of significance."
)
@click.option(
    "--lower-is-better", "lower", multiple=True, metavar="NAME", help="A metric or peer for which lower is better."
)
@click.option("--baselines/--no-baselines", default=True, help="Put the sanity baselines into the table.")
@format_option("text", "markdown", "latex", "json")
@click.option("--compare", nargs=2, metavar="METRIC METRIC", help="Also: these two compared directly, by three tests.")
@click.option("--agreement", is_flag=True, help="Also: Krippendorff's alpha of the single `ratings`.")
@click.option("--redundancy", is_flag=True, help="Also: which metrics add information, and which are alike.")
@click.option(
    "--calibrate", is_flag=True, help="Also: simulate data like this file: actual false-alarm rate, coverage, power."
)
@click.option("--estimate", metavar="METRIC", help="Also: system means from the available ratings and this metric.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write here instead of the terminal.")
@judge_option
@map_option
def command(
    file: Source,
    score_files: tuple[Path, ...],
    dimensions: tuple[str, ...],
    metrics: tuple[str, ...],
    lower: tuple[str, ...],
    baselines: bool,
    form: str,
    output: Path | None,
    compare: tuple[str, str] | None,
    agreement: bool,
    redundancy: bool,
    estimate: str | None,
    calibrate: bool,
    **testing: Any,
) -> None:
    """How well do metrics agree with human judgements? FILE holds records with ratings (`human` or `ratings`).

    Metrics are the columns of --scores, the `peers` that came with the records, and the sanity baselines."""

    from elench.evaluate import meta_sections as sections
    from elench.evaluate.judgements import load, with_directions
    from elench.evaluate.meta import evaluate
    from elench.evaluate.sanity_baselines import with_baselines
    from elench.show.meta_tables import render_evaluation

    table = with_directions(load(file, score_files), lower).choose(metrics, dimensions)
    if baselines:
        table = with_baselines(table)
    found = evaluate(table, **testing)
    added = []
    if compare:
        added.append(sections.duel(table, *compare, testing))
    if agreement:
        added.append(sections.agreement(table, testing["draws"], testing["seed"]))
    if redundancy:
        added.append(sections.redundancy(table, 6, testing["seed"]))
    if estimate:
        added.append(sections.estimates(table, estimate))
    if calibrate:
        added.append(sections.calibration(table, testing))
    text = render_evaluation(found, form, table_width(), added)
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
