"""From a cold process to the first scores: `elench score` of two records, models pulled, no answer cached.

    python benchmarks/cold.py [--rounds 2] [--python PATH] [-m bleu]

Printed are CPU seconds (user + system, the least of the rounds), wall seconds and peak memory of each command. --python
names another environment's interpreter, such as one with `elench[models]` alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

import click
from sides import machine

SAMPLE = Path(__file__).resolve().parents[1] / "sample"
FILES = {
    "bleu": "answers", "rouge-l-kpqa": "answers", "qascore": "questions", "support": "summaries",
    "qrelscore": "questions", "qsts": "questions", "questeval": "summaries",
}  # fmt: skip


def once(command: list[str]) -> tuple[float, float, float]:
    """CPU seconds, wall seconds and peak memory (MB) of a process."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"failed: {' '.join(command)}")
    return used.ru_utime + used.ru_stime, time.perf_counter() - begun, used.ru_maxrss / 1024


@click.command()
@click.option("--rounds", default=2, show_default=True)
@click.option("--python", "interpreter", default=sys.executable, help="Interpreter of the environment to measure.")
@click.option("-m", "only", default=",".join(FILES), help="Metrics, separated by commas.")
@click.option("--option", "more", multiple=True, help="A further argument of `elench score`.")
def main(rounds: int, interpreter: str, only: str, more: tuple[str, ...]) -> None:
    """Print a Markdown table."""
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the first round compiles what is imported, as after an install
    click.echo(f"Two records, {rounds} cold processes each; {machine()}\n")
    click.echo("| metric | CPU seconds | wall seconds | peak MB |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for spec in only.split(","):
            two = Path(folder) / "two.jsonl"
            with (SAMPLE / f"{FILES[spec]}.jsonl").open(encoding="utf-8") as lines:
                two.write_text("".join(islice(lines, 2)), encoding="utf-8")
            command = [interpreter, "-m", "elench", "score", str(two), "-m", spec, "-o", f"{folder}/out.jsonl"]
            runs = [once([*command, "--no-cache", *more]) for _ in range(rounds)]
            cpu, wall, peak = (min(side) for side in zip(*runs, strict=True))
            click.echo(f"| `{spec}` | {cpu:.2f} | {wall:.1f} | {peak:.0f} |")


if __name__ == "__main__":
    main()
