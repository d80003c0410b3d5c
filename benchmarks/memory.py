"""A million records through two lexical metrics: peak memory and records per second.

python benchmarks/memory.py [--records 1000000]
"""

from __future__ import annotations

import json
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
def main(records: int, metrics: str) -> None:
    """Write a file, score it in a process of its own, and read that process's peak memory."""
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "in.jsonl"
        with source.open("w") as file:
            for i in range(records):
                line = {"id": f"r{i}", "judge": "answer", "answer": " ".join(rng.choices(WORDS, k=8))}
                file.write(json.dumps(line | {"references": [" ".join(rng.choices(WORDS, k=8))]}) + "\n")
        command = [
            sys.executable,
            "-m",
            "quaestor",
            "score",
            str(source),
            "-m",
            metrics,
            "-o",
            str(Path(folder) / "out.jsonl"),
        ]
        started = time.monotonic()
        subprocess.run(command, check=True)
        seconds = time.monotonic() - started
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        lines = sum(1 for _ in (Path(folder) / "out.jsonl").open())
    click.echo(f"{lines} of {records} records, {metrics}: peak memory {peak:.0f} MB, {records / seconds:.0f} records/s")


if __name__ == "__main__":
    main()
