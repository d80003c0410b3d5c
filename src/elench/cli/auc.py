"""`elench auc`: can metrics tell good text from perturbed text?"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import click

from elench.cli._options import alpha_option, format_option
from elench.errors import UsageError


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--scores", "score_files", multiple=True, required=True, type=click.Path(path_type=Path),
              help="Output of elench score on FILE; may be given several times.")  # fmt: skip
@click.option(
    "--human", metavar="DIMENSION", help="Take positives from a human judgement with two values, such as 0 and 1."
)
@click.option("--lower-is-better", "lower", multiple=True, metavar="NAME", help="A metric for which lower is better.")
@alpha_option
@format_option("text", "markdown", "latex", "json")
@click.option("-o", "--out", type=click.Path(path_type=Path))
def command(
    file: Path, score_files: tuple[Path, ...], human: str | None, lower: tuple[str, ...], alpha: float, form: str,
    out: Path | None,
) -> None:  # fmt: skip
    """AUC of each metric between the positives and each kind of negative in FILE (made by elench perturb), or between
    the outputs that people called good and bad (--human)."""
    from elench.evaluate.auc import areas, grid, notes
    from elench.evaluate.judgements import from_records, join_scores, with_directions
    from elench.records.record import read_records
    from elench.show.tables import render

    if human:
        records = [r for r in read_records(file) if human in r.human]
        if not records:
            raise UsageError(f"{file}: no record has a judgement {human!r}")
    else:
        records = [replace(r, human={"positive": 1.0}, ratings={}, peers={}) for r in read_records(file)]
    joined = from_records(records, str(file))
    for path in score_files:
        joined = join_scores(joined, path)
    joined = with_directions(joined, lower)
    columns = {
        name: [None if v != v else float(v) for v in joined.scores[:, k]] for k, name in enumerate(joined.metrics)
    }
    found = areas(records, columns, alpha=alpha, human=human)
    told = [
        *notes(found, "groups" if human else "originals", alpha),
        *(note for note in joined.notes if "reversed sign" in note),
    ]
    text = render([grid(found)], told, form, 160, [asdict(area) for area in found])
    if out:
        out.write_text(text, encoding="utf-8")
    else:
        click.echo(text, nl=False)
