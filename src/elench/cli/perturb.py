"""`elench perturb`: adversarial sets from good text."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elench.cli._input import judge_option, map_option, valid_records
from elench.cli._options import model_options, models_from, seed_option

if TYPE_CHECKING:
    from elench.records.record import Record
    from elench.records.source import Source


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-k", "--kinds", "kinds", multiple=True, required=True, metavar="KIND[,KIND…]",
              help="given, back-translation, paraphrase-rules (positives); entity-swap, pronoun-swap, negation, "
                   "antonym, question-word, number, drop, shuffle, bad-reference (negatives).")  # fmt: skip
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True)
@click.option("--paraphrases", type=click.Path(path_type=Path), help="A file with the same ids and human paraphrases.")
@click.option("--originals", is_flag=True, help="Also write each original, labelled positive.")
@seed_option
@model_options
@judge_option
@map_option
def command(
    file: Source, kinds: tuple[str, ...], out: Path, paraphrases: Path | None, originals: bool, seed: int,
    family: str, model: tuple[str, ...], dtype: str, device: str | None, pull: bool,
) -> None:  # fmt: skip
    """Change the judged text of each record of FILE in known ways; each new record says what was done where."""
    from elench.errors import UsageError
    from elench.perturb import Skipped, perturb
    from elench.perturb.paraphrase import paired
    from elench.records.record import read_records, write_records

    chosen = list(dict.fromkeys(k.strip() for given in kinds for k in given.split(",") if k.strip()))
    records = valid_records(file)
    given: dict[str, str] = {}
    if paraphrases:
        given, elsewhere = paired(records, read_records(paraphrases))
        if not given:
            raise UsageError(f"{paraphrases}: no paraphrase has the id and context, or context and answer, of a record")
        if elsewhere:
            click.echo(
                f"{paraphrases}: {elsewhere} paraphrases matched by context and answer, their ids differ", err=True
            )
    made: list[Record] = []
    counts: Counter[str] = Counter()
    for item in perturb(records, chosen, seed, given, models_from(family, model, dtype, device, pull)):
        if isinstance(item, Skipped):
            counts[f"{item.kind} skipped"] += 1
        else:
            made.append(item)
            counts[item.extra["perturbed"]["kind"]] += 1
    if originals:
        for record in records:
            name = record.judged
            mark = {"of": record.id, "kind": "original", "label": "positive", "field": name}
            references = record.references or (record.judged_text,)
            made.append(replace(record, judge=name, references=references, extra={**record.extra, "perturbed": mark}))
    if not made:
        raise UsageError(f"{file}: no record could be changed")
    write_records(_distinct(made), out)
    for kind in chosen:
        click.echo(f"{kind}: {counts[kind]} changed, {counts[f'{kind} skipped']} left alone, of {len(records)}")


def _distinct(made: list[Record]) -> list[Record]:
    """The same records; an id that another one of its system has already gets a number."""
    seen: set[tuple[str, str | None]] = set()
    kept = []
    for record in made:
        name, number = record.id, 1
        while (name, record.system) in seen:
            number += 1
            name = f"{record.id}.{number}"
        seen.add((name, record.system))
        kept.append(replace(record, id=name))
    return kept
