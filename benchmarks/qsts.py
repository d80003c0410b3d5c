"""How many question pairs QSTS compares in a second of processor time, cold, against one text at a time.

    python benchmarks/qsts.py RECORDS.jsonl [--n 300] [--single 40] [--spec qsts] [--dtype int8]

Models are loaded before the clock starts; no answer is cached before it; parsing, classifying, word vectors and scoring
are inside. The slow side asks for each text when it is needed: spaCy's pipeline called with one text, the classifier in
transformers, on the same weights. "At most" is the ratio if nothing but spaCy, fed all texts in one stream, and the
classifier's float32 products, at the rate of plain ones, took time.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import click
from sides import counted_operations, cpu_seconds, in_torch, machine, one_thread, product_rate

from elench.engine.drive import Driver
from elench.metrics import metric
from elench.models.base import ModelSet
from elench.records.record import Record, read_records
from elench.requests import ClassifyQuestion, Parse


def batched(spec: str, records: list[Record], models: ModelSet) -> list[float]:
    """Scores as the engine makes them: duplicates dropped, batches packed, nothing from disk."""
    chosen = metric(spec)
    return [s.value for s in Driver(models).run([chosen.score(r) for r in records])]


def one_by_one(spec: str, records: list[Record], models: dict[str, Any]) -> list[float]:
    """The same scores, each request answered by a call of its own."""
    chosen, values = metric(spec), []
    for record in records:
        coroutine = chosen.score(record)
        try:
            requests = coroutine.send(None)
            while True:
                requests = coroutine.send([models[r.role].answer([r])[0] for r in requests])
        except StopIteration as done:
            values.append(done.value.value)
    return values


@click.command()
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--n", default=300, show_default=True, help="Pairs scored by the engine.")
@click.option("--single", default=40, show_default=True, help="Pairs scored one text at a time.")
@click.option("--spec", default="qsts", show_default=True)
@click.option("--dtype", default="float32", show_default=True)
def main(path: Path, n: int, single: int, spec: str, dtype: str) -> None:
    """Print pairs per CPU second of both sides and the ratio."""
    one_thread()
    records = list(islice(read_records(path), n))
    models = ModelSet(dtype=dtype)
    alone = {role: models[role] for role in ("parser", "vectors")}
    alone["classes"] = in_torch(ModelSet()["classes"].identity)
    for side in (batched(spec, records[-2:], models), one_by_one(spec, records[-2:], alone)):
        assert len(side) == 2  # all models are loaded, all sessions made
    found, fast = cpu_seconds(lambda: batched(spec, records, models))
    values, slow = cpu_seconds(lambda: one_by_one(spec, records[:single], alone))
    texts = list(dict.fromkeys(t for r in records for t in (r.question or "", *r.references)))
    _, parsing = cpu_seconds(lambda: models["parser"].answer([Parse(t) for t in texts]))
    with counted_operations() as operations:
        classes = ModelSet()["classes"]
        for batch in classes.batches(asked := [ClassifyQuestion(t) for t in texts]):
            classes.answer([asked[i] for i in batch])
    least = parsing + operations.least_seconds(product_rate())
    apart = max(abs(a - b) for a, b in zip(found, values, strict=False))
    rates = len(records) / fast, single / slow, len(records) / least
    print(f"{spec} in {dtype} on {path.name}, n = {len(records)} pairs, {single} one text at a time; {machine()}")
    print(
        f"{rates[0]:.0f} pairs/s, one text at a time {rates[1]:.0f}: {rates[0] / rates[1]:.1f} times (apart {apart:.0e})"
    )
    print(f"spaCy {len(texts) / parsing:.0f} texts/s; at most {rates[2]:.0f} pairs/s, {rates[2] / rates[1]:.1f} times")


if __name__ == "__main__":
    main()
