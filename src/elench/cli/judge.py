"""`elench judge`: how good is this? The shipped profiles on one record or a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elench.cli._input import open_input
from elench.cli._options import metrics_from, model_options, models_for, table_width

if TYPE_CHECKING:
    from elench.engine.result import Result
    from elench.grid import Grid
    from elench.records.record import Record

PROFILES = {"question": "questions", "answer": "answers", "summary": "summaries"}


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--context", help="Passage or source text, instead of FILE.")
@click.option("--question", help="Question.")
@click.option("--answer", help="Answer.")
@click.option("--summary", help="Summary.")
@click.option("--reference", "references", multiple=True, help="Reference of what is judged (repeatable).")
@click.option("--judge", type=click.Choice(list(PROFILES)), help="Which text is judged, where it is not clear.")
@click.option("--map", "mapping", metavar="FIELD=COLUMN,…", help="Which columns of FILE hold the fields.")
@click.option("--profile", help="Another profile file; default: the one that comes with elench.")
@model_options
def command(
    file: Path | None, context: str | None, question: str | None, answer: str | None, summary: str | None,
    references: tuple[str, ...], judge: str | None, mapping: str | None, profile: str | None, family: str,
    model: tuple[str, ...], dtype: str, device: str | None, pull: bool,
) -> None:  # fmt: skip
    """Predict the ratings people would give, per dimension, with intervals: for FILE, or for one text on the command
    line."""
    import elench
    from elench.errors import UsageError
    from elench.metrics.profile import read_profile
    from elench.records.record import Record, read_records
    from elench.show.tables import render

    texts = {"context": context, "question": question, "answer": answer, "summary": summary}
    given = {name: value for name, value in texts.items() if value is not None}
    if (file is None) == (not given):
        raise UsageError("give a FILE of records, or one text: --question … --context … --answer …")
    if file is not None:
        records = list(read_records(open_input(file, mapping, judge)))
    else:
        records = [Record.from_object({"id": "1", **given, "judge": judge, "references": list(references)})]
    kinds = sorted({record.judged for record in records})
    if len(kinds) > 1:
        raise UsageError(f"{file}: records judge different things ({', '.join(kinds)}); give one file for each")
    click.echo(f"elench: judging {PROFILES[kinds[0]]}{'' if judge else _instead(kinds[0], records)}", err=True)
    name = profile or PROFILES[kinds[0]]
    metrics = metrics_from((f"profile:{name}",))
    result = elench.score(records, metrics, models=models_for(metrics, family, model, dtype, device, pull))
    grids = [_one(result) if len(records) == 1 else _systems(result, name), _trust(name)]
    learned = read_profile(name).content["data"]["file"]
    notes = [
        "r: on groups that the profile was not trained on, with its 95 % interval",
        f"profile {name}, learned from {learned}: intervals hold for texts like those",
        f"for texts of your own: elench certify {result.specs[0]} RATED.jsonl -o cert.json",
    ]
    notes += _unscored(result, len(records))
    click.echo(render(grids, notes, "text", table_width(90)), nl=False)
    scored = any(value is not None for spec in result.specs for value in result.values(spec))
    raise click.exceptions.Exit(0 if scored else 1)


def _instead(kind: str, records: Sequence[Record]) -> str:
    """How to have the answers judged, where the questions are and both are there."""
    both = kind == "question" and any(record.answer is not None for record in records)
    return "; for the answer: --judge answer, with a reference" if both else ""


def _unscored(result: Result, records: int) -> list[str]:
    """The three most frequent reasons why records have no rating, each with their number."""
    reasons = Counter(why for o in result.outcomes for why in dict.fromkeys(map(o.reason, result.specs)) if why)
    return [f"{count} of {records} record{'s' * (records != 1)}: {why}" for why, count in reasons.most_common(3)]


def _one(result: Result) -> Grid:
    """One record: every dimension with the interval in which 95 % of such texts were rated, and what made it."""
    from elench.grid import Grid

    rows = []
    for spec in result.specs:
        (outcome,) = result.outcomes
        if spec not in outcome.scores:
            continue
        score = outcome.scores[spec]
        most = ", ".join(f"{c['metric']} {c['adds']:+.2f}" for c in score.evidence["contributions"][:3])
        low, high = score.evidence["interval95"]
        predicted = min(max(score.value, low), high)  # within the rating scale
        rows.append((spec.partition("#")[2], f"{predicted:.2f}", f"{low:.2f} to {high:.2f}", most))
    return Grid("", ("dimension", "predicted", "95 % of such ratings", "what counts most"), tuple(rows), "lrrl")


def _trust(name: str) -> Grid:
    """What the predictions are worth, by the profile's own data."""
    from elench.grid import Cell, Grid, limits, number
    from elench.metrics.profile import read_profile

    rows = []
    for dimension, found in read_profile(name).content["dimensions"].items():
        full, (low, high) = found["full"], found["scale"]
        agreement = Cell(number(full["r"]), under=limits(*full["ci95"]).strip("[]"))
        rows.append((dimension, f"{low:g} to {high:g}", agreement, str(full["n"])))
    return Grid("Agreement with people", ("dimension", "scale", "r", "n"), tuple(rows), "llrr")


def _systems(result: Result, name: str) -> Grid:
    """A file: the mean of each system and dimension, with the interval of the mean human rating."""
    from elench.evaluate.predicted import predicted_mean
    from elench.grid import Grid
    from elench.metrics.profile import read_profile

    about = read_profile(name).content["dimensions"]
    rows = []
    for spec in result.specs:
        dimension = spec.partition("#")[2]
        by_system: dict[str, list[Any]] = {}
        for record, value in zip(result.records, result.values(spec), strict=True):
            if value is not None:
                by_system.setdefault(record.system or "all", []).append((value, record.group or record.id))
        for system, pairs in sorted(by_system.items()):
            values, groups = [v for v, _ in pairs], [g for _, g in pairs]
            mean = predicted_mean(values, groups, about[dimension]["noise"])
            low, high = about[dimension]["scale"]
            shown, *ends = (f"{min(max(x, low), high):.3f}" for x in (mean.value, mean.low, mean.high))
            rows.append((dimension, system, shown, " to ".join(ends), str(mean.n)))
    return Grid("", ("dimension", "system", "predicted mean", "95 % interval", "n"), tuple(rows), "llrrr")
