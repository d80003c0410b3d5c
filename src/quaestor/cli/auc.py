"""`quaestor auc`: can metrics tell good text from perturbed text?"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import click


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--scores", "score_files", multiple=True, required=True, type=click.Path(path_type=Path),
              help="Output of quaestor score on FILE; may be given several times.")  # fmt: skip
@click.option("--draws", type=click.IntRange(100), default=1000, show_default=True, help="Bootstrap draws.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--format", "form", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True)
@click.option("-o", "--out", type=click.Path(path_type=Path))
def command(file: Path, score_files: tuple[Path, ...], draws: int, seed: int, form: str, out: Path | None) -> None:
    """AUC of each metric between the positives and each kind of negative in FILE (made by quaestor perturb)."""
    from quaestor.meta.adversarial import areas, table
    from quaestor.meta.judgements import from_records, join_scores
    from quaestor.metrics import higher_is_better
    from quaestor.records import read_records

    records = [replace(r, human={"positive": 1.0}, ratings={}, peers={}) for r in read_records(file)]
    joined = from_records(records, str(file))
    for path in score_files:
        joined = join_scores(joined, path)
    columns = {
        name: [None if v != v else float(v) for v in joined.scores[:, k]] for k, name in enumerate(joined.metrics)
    }
    found = areas(records, columns, {name: higher_is_better(name) for name in columns}, draws, seed)
    text = (
        json.dumps([asdict(area) for area in found], indent=1) if form == "json" else table(found, form == "markdown")
    )
    if out:
        out.write_text(text + "\n", encoding="utf-8")
    else:
        click.echo(text)
