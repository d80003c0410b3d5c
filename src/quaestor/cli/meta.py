"""`quaestor meta`: metrics against human judgements."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("meta")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--scores", "score_files", multiple=True, type=click.Path(path_type=Path), help="Output of `quaestor score`."
)
@click.option(
    "--by", help="Do it for each value of a field: system, length, question-word, or any field of the records."
)
@click.option("--level", type=click.Choice(["segment", "group", "system"]), default="segment", show_default=True)
@click.option(
    "--coefficient",
    type=click.Choice(["pearson", "spearman", "kendall-b", "kendall-c", "accuracy"]),
    default="pearson",
    show_default=True,
    help="The one that ranks, marks and clusters; the others stand beside it.",
)
@click.option("-d", "--dimension", "dimensions", multiple=True, help="Only this human dimension (repeatable).")
@click.option("-m", "--metric", "metrics", multiple=True, help="Only this metric or peer (repeatable).")
@click.option(
    "--resample",
    "over",
    type=click.Choice(["items", "systems", "both"]),
    default="items",
    show_default=True,
    help="What the bootstrap draws; an item is a group of records about one context.",
)
@click.option("--interval", type=click.Choice(["bootstrap", "fisher"]), default="bootstrap", show_default=True)
@click.option("--draws", type=click.IntRange(100), default=1000, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--correction", type=click.Choice(["holm", "bh", "none"]), default="holm", show_default=True)
@click.option(
    "--alpha", type=click.FloatRange(0.0, 0.5), default=0.05, show_default=True, help="Level of significance."
)
@click.option("--baselines/--no-baselines", default=True, help="Put the sanity baselines into the table.")
@click.option(
    "--format", "form", type=click.Choice(["text", "markdown", "latex", "json"]), default="text", show_default=True
)
@click.option("--compare", nargs=2, metavar="METRIC METRIC", help="Also: these two head to head, by three tests.")
@click.option("--agreement", is_flag=True, help="Also: Krippendorff's alpha of the single `ratings`.")
@click.option("--redundancy", is_flag=True, help="Also: which metrics add information, and which are alike.")
@click.option("--estimate", metavar="METRIC", help="Also: system means from the ratings there are and this metric.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write here instead of the terminal.")
def command(
    file: Path,
    score_files: tuple[Path, ...],
    by: str | None,
    level: str,
    coefficient: str,
    dimensions: tuple[str, ...],
    metrics: tuple[str, ...],
    over: str,
    interval: str,
    draws: int,
    seed: int,
    correction: str,
    alpha: float,
    baselines: bool,
    compare: tuple[str, str] | None,
    agreement: bool,
    redundancy: bool,
    estimate: str | None,
    form: str,
    output: Path | None,
) -> None:
    """How well do metrics follow people? FILE holds records with human ratings (`human` or `ratings`).

    Metrics are the columns of --scores, the `peers` that came with the records, and the sanity baselines."""
    import shutil

    from quaestor.meta import sections
    from quaestor.meta.evaluation import evaluate
    from quaestor.meta.judgements import load
    from quaestor.meta.sanity import with_baselines
    from quaestor.meta.tables import render_evaluation

    table = load(file, score_files).choose(metrics, dimensions)
    if baselines:
        table = with_baselines(table)
    found = evaluate(
        table,
        level=level,
        by=by,
        coefficient=coefficient,
        over=over,
        draws=draws,
        seed=seed,
        correction=correction,
        alpha=alpha,
        interval=interval,
    )
    added = []
    if compare:
        added.append(sections.duel(table, *compare, coefficient, draws, seed, correction))
    if agreement:
        added.append(sections.agreement(table, draws, seed))
    if redundancy:
        added.append(sections.redundancy(table, 6, seed))
    if estimate:
        added.append(sections.estimates(table, estimate))
    text = render_evaluation(found, form, max(shutil.get_terminal_size((140, 24)).columns, 100), added)
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
