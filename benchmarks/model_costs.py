"""What a family's models cost: size on disk and milliseconds per request, on the shipped sample, one thread.

    python benchmarks/model_costs.py > costs.md
    python benchmarks/model_costs.py --models large reader support equivalent wellformed

Each role answers the requests that a metric would put to it for the sample's records, batched as in a run, after a
first batch that is not timed. CPU time, so that other programs on the machine matter little.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import click

from elench.models.base import ModelSet
from elench.records.record import Record, read_records
from elench.requests import (
    Classify,
    ClassifyQuestion,
    Continue,
    Embed,
    Parse,
    Read,
    Recover,
    Request,
    Weigh,
)

SAMPLE = Path(__file__).parents[1] / "sample" / "records.jsonl"
MOST = 60


def texts(record: Record) -> tuple[str, str, str, str]:
    """Context, question, answer and first reference of a record, '' where it has none."""
    reference = record.references[0] if record.references else record.answer or ""
    return record.context or "", record.question or "", record.answer or reference, reference


ASKED: dict[str, Callable[[str, str, str, str], Request[object]]] = {
    "encoder": lambda c, q, a, r: Embed(c),
    "causal": lambda c, q, a, r: Continue(q + "\n", c),
    "masked": lambda c, q, a, r: Recover(c, q, a),
    "reader": lambda c, q, a, r: Read(q, c, gold=a),
    "keyphrases": lambda c, q, a, r: Weigh(q, a),
    "classes": lambda c, q, a, r: ClassifyQuestion(q),
    "support": lambda c, q, a, r: Classify("support", c, f"{q} {a}"),
    "equivalent": lambda c, q, a, r: Classify("equivalent", f"{q} {r}", f"{q} {a}"),
    "wellformed": lambda c, q, a, r: Classify("wellformed", q),
    "parser": lambda c, q, a, r: Parse(q),
}


def size(models: ModelSet, role: str) -> float:
    """Megabytes of the model's own files (a shipped model's base not counted)."""
    identity = models[role].identity
    assert identity is not None
    return sum(f.stat().st_size for f in identity.folder.rglob("*") if f.is_file()) / 1e6


@click.command()
@click.option("--models", "family", default="embedded", show_default=True)
@click.argument("roles", nargs=-1)
def main(family: str, roles: tuple[str, ...]) -> None:
    """Print a table of the roles (default: all)."""
    models = ModelSet(family=family)
    records = [r for r in read_records(SAMPLE) if r.context and r.question and (r.answer or r.references)]
    print(
        f"| role | model | MB | ms per request | n |\n|---|---|---|---|---|  <!-- {os.cpu_count()} cores, 1 thread -->"
    )
    for role in roles or tuple(ASKED):
        ask, model = ASKED[role], models[role]
        requests = list(dict.fromkeys(islice((ask(*texts(r)) for r in records), MOST)))
        model.answer(requests[:2])
        begun = time.process_time()
        for group in model.batches(requests):
            model.answer([requests[i] for i in group])
        spent = 1000 * (time.process_time() - begun) / len(requests)
        print(f"| {role} | {model.name} | {size(models, role):.1f} | {spent:.1f} | {len(requests)} |", flush=True)


if __name__ == "__main__":
    main()
