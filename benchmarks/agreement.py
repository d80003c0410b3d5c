"""Agreement with people on a part of a rated file: whole groups, chosen by their name's hash, scored and correlated.

    python benchmarks/agreement.py qgeval_squad.jsonl --groups 30 -m qrelscore,qascore -o docs/results/x.md --work DIR

The part is the same on every machine. Scores are kept in --work and resumed, so that a slow run can be interrupted.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import click

from elench.cli._options import metrics_from
from elench.engine.job import Job, score_file
from elench.records.record import read_records, write_records


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-m", "specs", multiple=True, required=True)
@click.option("--groups", default=0, help="How many groups; 0 takes all.")
@click.option("--work", type=click.Path(path_type=Path), default=Path("agreement-work"), show_default=True)
@click.option("-o", "--out", type=click.Path(path_type=Path))
@click.option("--coefficients", default="pearson,spearman", show_default=True)
def main(file: Path, specs: tuple[str, ...], groups: int, work: Path, out: Path | None, coefficients: str) -> None:
    """Score a part of FILE with each metric and print the agreement table."""
    from elench.evaluate.judgements import load
    from elench.evaluate.meta import evaluate
    from elench.evaluate.sanity_baselines import with_baselines
    from elench.show.meta_tables import render_evaluation

    records = list(read_records(file))
    names = sorted({r.group or r.id for r in records}, key=lambda g: hashlib.sha256(g.encode()).hexdigest())
    kept = set(names[:groups] if groups else names)
    part = [r for r in records if (r.group or r.id) in kept]
    work.mkdir(parents=True, exist_ok=True)
    source = work / f"{file.stem}-{groups or 'all'}.jsonl"
    if not source.exists():
        write_records(part, source)
    outputs = []
    for metric in metrics_from(specs):
        name = str(metric).replace("[", "-").replace("]", "").replace("=", "_").replace(",", "-")
        outputs.append(work / f"{source.stem}-{name}.jsonl")
        meta = score_file(Job(source, [metric], outputs[-1], resume=True))
        click.echo(f"{metric}: {meta['seconds']} s, {meta['records']} records", err=True)
    table = with_baselines(load(source, outputs))
    found = evaluate(table, coefficients=tuple(coefficients.split(",")))
    text = render_evaluation(found, "markdown" if out else "text", 200)
    if out:
        out.write_text(text + "\n", encoding="utf-8")
    else:
        click.echo(text)


if __name__ == "__main__":
    main()
