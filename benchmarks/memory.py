"""A million records through two lexical metrics: peak memory and records per second.

    python benchmarks/memory.py [--records 1000000] [--format jsonl|parquet]

    python benchmarks/memory.py --records 20000 --metrics rouge-l-kpqa --twice --format parquet

With --twice the same run follows once more, its answers kept on disk by the first.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

WORDS = "the old boat lay near a red lamp and seven small birds sang about rain all night long while we slept".split()  # noqa: SIM905


@click.command()
@click.option("--records", default=1_000_000, show_default=True)
@click.option("--metrics", default="f1,bleu", show_default=True)
@click.option("--format", "kind", type=click.Choice(["jsonl", "parquet"]), default="jsonl", show_default=True)
@click.option("--twice", is_flag=True, help="Once more, with the answers of the first run in the cache.")
def main(records: int, metrics: str, kind: str, twice: bool) -> None:
    """Write a file, score it in a process of its own, and read that process's peak memory."""
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "in.jsonl"
        with source.open("w") as file:
            for i in range(records):
                question, answer, reference = (" ".join(rng.choices(WORDS, k=8)) for _ in range(3))
                line = {"id": f"r{i}", "judge": "answer", "question": question, "answer": answer}
                file.write(json.dumps(line | {"references": [reference]}) + "\n")
        if kind == "parquet":
            from elench.records.record import read_records, write_records

            write_records(read_records(source), source := source.with_suffix(".parquet"))
        out = Path(folder) / f"out.{kind}"
        command = [sys.executable, "-m", "elench", "score", str(source), "-m", metrics, "-o", str(out)]
        environment = dict(os.environ)
        if twice:
            from elench.models.catalog import cache_folder

            models = environment.get("ELENCH_MODELS", str(cache_folder() / "models"))
            environment |= {"ELENCH_CACHE": str(Path(folder) / "cache"), "ELENCH_MODELS": models}
        for run in range(2 if twice else 1):
            started = time.monotonic()
            subprocess.run(command, check=True, env=environment)
            seconds = time.monotonic() - started
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            click.echo(
                f"{records} records ({kind}), {metrics}, {'answers cached' if run else 'cold'}: "
                f"peak memory {peak:.0f} MB, {records / seconds:.0f} records/s"
            )


if __name__ == "__main__":
    main()
