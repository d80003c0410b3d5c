"""What questeval costs: seconds per document and summary, cold and with the source's questions kept, and how much
batching and shared passages save against the same models called one question at a time, padded to 512.

    python benchmarks/questeval.py RECORDS.jsonl [--sources 2] [--single 6] [-m questeval] [--dtype int8] [--threads 2]

    python benchmarks/questeval.py RECORDS.jsonl --sources 10 --seed 0 --subset PART.jsonl

The second form measures nothing: it writes all records of so many sources, drawn by the seed, for a smaller run of
`elench score`. RECORDS holds summaries with their sources (several summaries of a source: the first is scored cold, the second with
the source's questions known). CPU seconds are printed, and those of the clock: they count with more than one thread. "The
products alone" is the time of all float32 products with weights at the rate of plain ones, measured in the same run.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from sides import counted_operations, cpu_seconds, in_torch, machine, one_thread, product_rate

from elench.engine.drive import Driver
from elench.metrics import metric
from elench.models.asker import LIMIT, passage_ids, wish_ids
from elench.models.base import ModelSet
from elench.models.cache import AnswerCache
from elench.records.record import Record, read_records, write_records
from elench.requests import Ask, Read


class Watch:
    """Remembers what a model was asked."""

    def __init__(self, model: Any) -> None:
        self.watched, self.seen = model, list[Any]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.watched, name)

    def answer(self, batch: Any) -> Any:
        self.seen += batch
        return self.watched.answer(batch)


def ask_alone(asker: Any, request: Ask) -> None:
    """One question by transformers' generate, its prompt padded to 512 tokens on the left."""
    import torch

    ids = passage_ids(asker.tokens, asker.passage(request)) + wish_ids(asker.tokens, request.answer)
    pad, end = 512 - len(ids), asker.tokens.eos
    with torch.inference_mode():
        asker.writer.model.generate(
            torch.tensor([[end] * pad + ids]),
            attention_mask=torch.tensor([[0] * pad + [1] * len(ids)]),
            max_new_tokens=LIMIT,
            do_sample=False,
            eos_token_id=end,
            pad_token_id=end,
        )


def read_alone(reader: Any, request: Read) -> None:
    """One question on as much of its text as fits, padded to 512 tokens, in transformers."""
    tokens = reader.tokens
    question, text = tokens.ids([request.question, request.text])
    row, begin = tokens.pair(question, text[: 512 - len(question) - 3])
    row = [*row, *[tokens.filler] * (512 - len(row))]
    reader.network.spans([row], np.array([[int(k >= begin) for k in range(512)]]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path)
    parser.add_argument("--sources", type=int, default=2)
    parser.add_argument("-m", "--metric", default="questeval", help="spec of the metric")
    parser.add_argument("--subset", type=Path, help="write the records of --sources drawn by --seed here, and stop")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--single", type=int, default=6, help="questions called one at a time")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    by_source: dict[str, list[Record]] = defaultdict(list)
    for record in read_records(given.records):
        by_source[record.context or ""].append(record)
    if given.subset:
        order = np.random.default_rng(given.seed).permutation(len(by_source))[: given.sources]
        sources = list(by_source.values())
        write_records([record for i in order for record in sources[i]], given.subset)
        return
    one_thread(given.threads)
    pairs = [records[:2] for records in by_source.values() if len(records) > 1][: given.sources]
    models = ModelSet(dtype=given.dtype)
    watched = {role: Watch(models[role]) for role in ("parser", "asker", "reader")}
    models.loaded.update(watched)  # type: ignore[arg-type]
    measure, n, rate = metric(given.metric), len(pairs), product_rate()
    print(f"{measure} in {given.dtype}, {given.threads} thread(s), n = {n} sources with 2 summaries each; {machine()}")
    with counted_operations() as operations, tempfile.TemporaryDirectory() as folder:
        Driver(models).run([measure.score(pairs[0][0])])  # sessions are made
        for watch in watched.values():
            watch.seen.clear()
        driver = Driver(models, AnswerCache(Path(folder) / "answers.sqlite"))
        for k, what in enumerate(("source and summary", "another summary of the source")):
            operations.count, begun = 0.0, time.perf_counter()
            _, spent = cpu_seconds(lambda k=k: driver.run([measure.score(pair[k]) for pair in pairs]))
            clock, least = time.perf_counter() - begun, operations.least_seconds(rate)
            written, answered = len(watched["asker"].seen), len(watched["reader"].seen)
            print(
                f"{what}: {spent / n:6.2f} s, {clock / n:.2f} on the clock; the products alone {least / n:.2f} s; "
                f"{written / n:.0f} questions written, {answered / n:.0f} read so far"
            )
            if k == 0:
                cold, asked, read = spent, list(watched["asker"].seen), list(watched["reader"].seen)
    if not given.single:
        return
    asker, reader = (in_torch(watched[role].identity) for role in ("asker", "reader"))
    asking = cpu_seconds(lambda: [ask_alone(asker, r) for r in asked[: given.single]])[1] / given.single
    reading = cpu_seconds(lambda: [read_alone(reader, r) for r in read[: given.single]])[1] / given.single
    alone = asking * len(asked) + reading * len(read)
    print(
        f"one at a time in transformers, padded to 512 (n = {given.single} each): {asking:.2f} s to ask, {reading:.2f} s "
        f"to read; for all {len(asked)} + {len(read)}: {alone:.1f} s, {alone / cold:.1f} times"
    )


if __name__ == "__main__":
    main()
