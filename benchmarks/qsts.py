"""How many question pairs QSTS compares in a second, cold, against the same models asked one text per call.

    python benchmarks/qsts.py RECORDS.jsonl [--n 2000] [--workers 2] [--spec qsts] [--single 200]

Models are loaded before the clock starts; no answer is cached before it; parsing, classifying, word vectors and scoring
are inside. The baseline asks the same models for one text at a time, each time it is needed, as published.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

import click

from elench.engine.drive import Driver
from elench.metrics import metric
from elench.models.base import ModelSet
from elench.records.record import Record, read_records

MODELS = ModelSet()


def warm(spec: str) -> None:
    """Load the models a metric asks, in this process, on one thread."""
    batched(spec, [Record(id="warm", question="Who lives in Oslo?", references=("Who lives there?",), context="Anna.")])


def batched(spec: str, records: list[Record]) -> list[float]:
    """Scores as the engine makes them: duplicates dropped, batches packed, nothing from disk."""
    chosen = metric(spec)
    return [s.value for s in Driver(MODELS).run([chosen.score(r) for r in records])]


def timed(spec: str, records: list[Record]) -> float:
    """Seconds of processor time that scoring took in this process: a busy machine stretches the clock, not these."""
    before = time.process_time()
    batched(spec, records)
    return time.process_time() - before


def one_by_one(spec: str, records: list[Record]) -> list[float]:
    """The same scores, each request answered by a call of its own."""
    chosen, values = metric(spec), []
    for record in records:
        coroutine = chosen.score(record)
        try:
            requests = coroutine.send(None)
            while True:
                requests = coroutine.send([MODELS[r.role].answer([r])[0] for r in requests])
        except StopIteration as done:
            values.append(done.value.value)
    return values


@click.command()
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--n", default=2000, show_default=True, help="Pairs scored by the engine.")
@click.option("--single", default=200, show_default=True, help="Pairs scored one text per call, in one process.")
@click.option("--workers", default=2, show_default=True)
@click.option("--spec", default="qsts", show_default=True)
def main(path: Path, n: int, single: int, workers: int, spec: str) -> None:
    os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    records = list(islice(read_records(path), n))
    with ProcessPoolExecutor(workers, get_context("spawn"), warm, (spec,)) as pool:
        list(pool.map(timed, [spec] * workers, [records[:1]] * workers))  # all processes have started
        begun = time.perf_counter()
        busy = sum(pool.map(timed, [spec] * workers, [records[i::workers] for i in range(workers)]))
        wall = time.perf_counter() - begun
    warm(spec)
    begun, before = time.perf_counter(), time.process_time()
    slow_values = one_by_one(spec, records[:single])
    slow_wall, slow_busy = time.perf_counter() - begun, time.process_time() - before
    worst = max(abs(a - b) for a, b in zip(batched(spec, records[:single]), slow_values, strict=True))
    fast, slow = len(records) / busy, single / slow_busy
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    for what, clock, processor in (
        (f"{spec} on {path.name}, n={len(records)}, {workers} processes, cold", len(records) / wall, fast),
        (f"one text per call, n={single}, 1 process", single / slow_wall, slow),
    ):
        print(f"{what}: {clock:.0f} pairs/s on the clock, {processor:.0f} per second of processor time")
    print(f"ratio, by processor time: {fast / slow:.1f}")
    print(f"largest difference between the two: {worst:.1e}; load of the machine {load:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
