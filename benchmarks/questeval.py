"""What questeval costs: seconds per document and summary, cold and with the source's questions kept, and how much
batching and shared passages save against the same models called one question at a time, padded to 512.

    python benchmarks/questeval.py RECORDS.jsonl [--sources 2] [--single 6] [--threads 1] [-m questeval]

    python benchmarks/questeval.py RECORDS.jsonl --sources 10 --seed 0 --subset PART.jsonl

The second form measures nothing: it writes all records of so many sources, drawn by the seed, for a smaller run of
`elench score`. RECORDS holds summaries with their sources (several summaries of a source: the first is scored cold, the second with
the source's questions known). Wall-clock and processor seconds are printed; on a busy machine trust the latter.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from elench.engine.drive import Driver
from elench.metrics import metric
from elench.models.asker import LIMIT, passage_ids, wish_ids
from elench.models.base import ModelSet
from elench.models.cache import AnswerCache
from elench.records.record import Record, read_records, write_records
from elench.requests import Ask, Read


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """(what the work gives, wall-clock seconds, processor seconds)."""
    wall, processor = time.perf_counter(), time.process_time()
    return work(), time.perf_counter() - wall, time.process_time() - processor


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
    """One question, its prompt padded to 512 tokens on the left."""
    import torch

    ids = passage_ids(asker.tokenizer, asker.passage(request)) + wish_ids(asker.tokenizer, request.answer)
    pad, model = 512 - len(ids), asker.branches.model
    end = asker.tokenizer.eos_token_id
    with torch.inference_mode():
        model.generate(
            torch.tensor([[end] * pad + ids]),
            attention_mask=torch.tensor([[0] * pad + [1] * len(ids)]),
            max_new_tokens=LIMIT,
            do_sample=False,
            eos_token_id=end,
            pad_token_id=end,
        )


def read_alone(reader: Any, request: Read) -> None:
    """One question on as much of its text as fits, padded to 512 tokens."""
    import torch

    inputs = reader.tokenizer(
        request.question, request.text, truncation="only_second", max_length=512, padding="max_length",
        return_tensors="pt",
    )  # fmt: skip
    with torch.inference_mode():
        reader.model(**inputs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path)
    parser.add_argument("--sources", type=int, default=2)
    parser.add_argument("-m", "--metric", default="questeval", help="spec of the metric")
    parser.add_argument("--subset", type=Path, help="write the records of --sources drawn by --seed here, and stop")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--single", type=int, default=6, help="questions called one at a time")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--asker", default="trained", help="trained, or the folder of one")
    given = parser.parse_args()
    by_source: dict[str, list[Record]] = defaultdict(list)
    for record in read_records(given.records):
        by_source[record.context or ""].append(record)
    if given.subset:
        order = np.random.default_rng(given.seed).permutation(len(by_source))[: given.sources]
        sources = list(by_source.values())
        write_records([record for i in order for record in sources[i]], given.subset)
        return
    import torch

    torch.set_num_threads(given.threads)
    pairs = [records[:2] for records in by_source.values() if len(records) > 1][: given.sources]
    models = ModelSet(names={"asker": given.asker} if given.asker else {})
    watched = {role: Watch(models[role]) for role in ("parser", "asker", "reader")}
    models.loaded.update(watched)  # type: ignore[arg-type]
    measure = metric(given.metric)
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(models, AnswerCache(Path(folder) / "answers.sqlite"))
        _, wall, cold = timed(lambda: driver.run([measure.score(first) for first, _ in pairs]))
        asked, read = list(watched["asker"].seen), list(watched["reader"].seen)
        _, wall2, kept = timed(lambda: driver.run([measure.score(second) for _, second in pairs]))
    n = len(pairs)
    print(f"{measure}, {given.threads} thread(s), n = {n} sources with 2 summaries each")
    print(f"cold:            {wall / n:6.2f} s wall, {cold / n:6.2f} s processor per source and summary")
    print(f"questions known: {wall2 / n:6.2f} s wall, {kept / n:6.2f} s processor per summary")
    ask_seconds = timed(lambda: [ask_alone(models["asker"], r) for r in asked[: given.single]])[2]
    read_seconds = timed(lambda: [read_alone(models["reader"], r) for r in read[: given.single]])[2]
    alone = ask_seconds / given.single * len(asked) + read_seconds / given.single * len(read)
    print(
        f"one at a time, padded to 512 (n = {given.single} each): {ask_seconds / given.single:.2f} s processor to ask, "
        f"{read_seconds / given.single:.2f} s to read; all {len(asked)} + {len(read)} of the cold run: {alone:.1f} s, "
        f"{alone / cold:.1f} times the batched run's {cold:.1f} s"
    )


if __name__ == "__main__":
    main()
