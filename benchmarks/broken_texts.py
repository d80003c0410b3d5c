"""Which metrics see that a text was broken on purpose? AUC of good texts against copies with one thing changed.

    python benchmarks/broken_texts.py DATA [--of answers|summaries] [-m SPEC,SPEC] [--models embedded|large] [--every 5]

Answers: every fifth question of corpora/squad_dev_orig1062.json with its first answer. Summaries: the first reference
of each source of judgements/summeval.jsonl. Positives are the originals and rule paraphrases; no reference is used.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

NEGATIVES = ("negation", "number", "antonym", "entity-swap")
POSITIVES = ("paraphrase-rules",)
SPECS = "support,support[words=off],support[reduce=min],support[reduce=min,words=off]"


@click.command()
@click.argument("data", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--of", "kind", type=click.Choice(["answers", "summaries"]), default="answers", show_default=True)
@click.option("-m", "--metrics", default=SPECS, show_default=True)
@click.option("--models", "family", default="embedded", show_default=True)
@click.option("--every", default=0, help="Take every n-th text (default: 5 for answers, 1 for summaries).")
def main(data: Path, kind: str, metrics: str, family: str, every: int) -> None:
    """Print the AUC of each metric for each kind of change."""
    import elench
    from elench.evaluate.auc import areas, grid, notes
    from elench.metrics import split_specs
    from elench.models.base import ModelSet
    from elench.perturb import Skipped, perturb
    from elench.records.record import Record, read_records
    from elench.show.tables import render

    if kind == "answers":
        squad = read_records(data / "corpora" / "squad_dev_orig1062.json")
        texts = [replace(r, judge="answer", references=()) for r in squad][:: every or 5]
    else:
        rated = {r.group: r for r in reversed(list(read_records(data / "judgements" / "summeval.jsonl")))}
        texts = [Record(str(g), context=r.context, summary=r.references[0], judge="summary") for g, r in rated.items()][
            :: every or 1
        ]
    made = [r for r in perturb(texts, [*NEGATIVES, *POSITIVES]) if not isinstance(r, Skipped)]
    mark = {"kind": "original", "label": "positive"}
    made += [replace(r, extra={**r.extra, "perturbed": {**mark, "of": r.id}}) for r in texts]
    records = [replace(r, id=str(i), references=()) for i, r in enumerate(made)]
    chosen = [str(elench.metric(spec)) for spec in split_specs(metrics)]
    result = elench.score(records, chosen, models=ModelSet(family=family))
    found = areas(made, {spec: result.values(spec) for spec in chosen})
    click.echo(render([grid(found)], notes(found), "markdown", 160))


if __name__ == "__main__":
    main()
