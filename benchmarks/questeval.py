"""What questeval costs: seconds per document and summary, cold and with the source's questions kept, and how much
batching and shared passages save against the same models called one question at a time, padded to 512.

    python benchmarks/questeval.py RECORDS.jsonl [--sources 2] [--single 6] [-m questeval]

    python benchmarks/questeval.py RECORDS.jsonl --sources 10 --seed 0 --subset PART.jsonl

The second form measures nothing: it writes all records of so many sources, drawn by the seed, for a smaller run of
`elench score`. RECORDS holds summaries with their sources (several summaries of a source: the first is scored cold, the second with
the source's questions known). CPU seconds are printed.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from sides import cpu_seconds, in_torch, machine, one_thread

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
    given = parser.parse_args()
    by_source: dict[str, list[Record]] = defaultdict(list)
    for record in read_records(given.records):
        by_source[record.context or ""].append(record)
    if given.subset:
        order = np.random.default_rng(given.seed).permutation(len(by_source))[: given.sources]
        sources = list(by_source.values())
        write_records([record for i in order for record in sources[i]], given.subset)
        return
    one_thread()
    pairs = [records[:2] for records in by_source.values() if len(records) > 1][: given.sources]
    models = ModelSet()
    watched = {role: Watch(models[role]) for role in ("parser", "asker", "reader")}
    models.loaded.update(watched)  # type: ignore[arg-type]
    measure = metric(given.metric)
    Driver(models).run([measure.score(pairs[0][0])])  # sessions are made
    for watch in watched.values():
        watch.seen.clear()
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(models, AnswerCache(Path(folder) / "answers.sqlite"))
        _, cold = cpu_seconds(lambda: driver.run([measure.score(first) for first, _ in pairs]))
        asked, read = list(watched["asker"].seen), list(watched["reader"].seen)
        _, kept = cpu_seconds(lambda: driver.run([measure.score(second) for _, second in pairs]))
    n = len(pairs)
    print(f"{measure}, n = {n} sources with 2 summaries each; {machine()}")
    print(f"source and summary: {cold / n:6.2f} s ({len(asked) / n:.0f} questions written, {len(read) / n:.0f} read)")
    print(f"another summary of the source: {kept / n:6.2f} s")
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
