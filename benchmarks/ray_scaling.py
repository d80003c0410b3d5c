"""The Ray engine against the local one: records per second with 1 and 2 workers, and whether the numbers are equal.

    python benchmarks/ray_scaling.py [--records 2000] [-m bertscore] [--workers 1,2,4]

Every worker has one thread. What it costs to start a cluster and to load models is taken out by subtracting a short run
of the same kind: the rate is (records - short) / (seconds - seconds of the short run). No answer is cached.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path

import click

SHORT = 64


def run(file: Path, spec: str, engine: str, workers: int) -> tuple[dict[str, float | None], float]:
    """Scores by id, and seconds."""
    from elench.engine.job import Job, score_file
    from elench.engine.session import Session
    from elench.metrics import metric
    from elench.models.base import ModelSet

    out = file.with_suffix(f".{engine}{workers}.jsonl")
    begun = time.perf_counter()
    score_file(Job(file, [metric(spec)], out, Session(ModelSet(), False, workers, engine)))
    seconds = time.perf_counter() - begun
    lines = map(json.loads, out.read_text().splitlines())
    return {line["id"]: line["scores"][spec] for line in lines}, seconds


@click.command()
@click.option("--records", default=2000, show_default=True)
@click.option("-m", "spec", default="bertscore", show_default=True)
@click.option("--workers", default="1,2,4", show_default=True)
def main(records: int, spec: str, workers: str) -> None:
    """Local with one worker, then Ray with each number of workers."""
    os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    from texts import mixed_texts

    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for n in (SHORT, records):
            files[n] = Path(folder) / f"{n}.jsonl"
            pairs = zip(mixed_texts(n, 1), mixed_texts(n, 2), strict=True)
            lines = [
                {"id": str(i), "judge": "answer", "answer": a, "references": [b]} for i, (a, b) in enumerate(pairs)
            ]
            files[n].write_text("".join(json.dumps(line) + "\n" for line in lines))
        rates: dict[tuple[str, int], float] = {}
        truth: dict[str, float | None] = {}
        for engine, count in [("local", 1), *(("ray", int(w)) for w in workers.split(","))]:
            _, short = run(files[SHORT], spec, engine, count)
            scores, whole = run(files[records], spec, engine, count)
            rates[engine, count] = (records - SHORT) / (whole - short)
            truth = truth or scores
            assert scores.keys() == truth.keys()
            apart = max(abs((scores[i] or 0) - (truth[i] or 0)) for i in truth)
            print(
                f"{engine:5} {count} worker(s): {rates[engine, count]:6.1f} records/s, {whole:6.1f} s in all "
                f"({short:.1f} s for {SHORT}); largest difference to local {apart:.1e}; n = {records}, {spec}",
                flush=True,
            )
        if ("ray", 1) in rates:
            print(
                f"Ray's overhead with one worker: {rates['local', 1] / rates['ray', 1] - 1:+.1%} (goal: at most 15 %)"
            )
        if {("ray", 1), ("ray", 2)} <= rates.keys():
            print(f"2 workers: {rates['ray', 2] / rates['ray', 1]:.2f} times one (goal: 1.7)")


if __name__ == "__main__":
    main()
