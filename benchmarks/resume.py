"""Kill -9 at random moments, resume, and compare with an uninterrupted run, to the byte.

python benchmarks/resume.py [--trials 20]
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click


@click.command()
@click.option("--trials", default=20, show_default=True)
@click.option("--seed", default=0, show_default=True)
def main(trials: int, seed: int) -> None:
    """Each trial is killed one to three times."""
    import json

    from memory import WORDS  # the same words as the memory benchmark

    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        with (here / "in.jsonl").open("w") as file:
            for i in range(8000):
                texts = [" ".join(rng.choices(WORDS, k=rng.randint(3, 20))) for _ in range(2)]
                file.write(
                    json.dumps({"id": str(i), "judge": "answer", "answer": texts[0], "references": [texts[1]]}) + "\n"
                )
            file.write("a bad line\n")
        base = [
            sys.executable,
            "-m",
            "elench",
            "score",
            str(here / "in.jsonl"),
            "-m",
            "bleu,f1,cider",
            "--resume",
            "-o",
        ]
        subprocess.run([*base, str(here / "whole.jsonl")], check=True, capture_output=True)
        same = kills = 0
        for trial in range(trials):
            out = here / f"cut{trial}.jsonl"
            for _ in range(rng.randint(1, 3)):
                process = subprocess.Popen([*base, str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                deadline = time.monotonic() + 30
                while process.poll() is None and not out.exists() and time.monotonic() < deadline:
                    time.sleep(0.01)
                time.sleep(rng.random() * 1.5)
                if process.poll() is None:
                    os.kill(process.pid, signal.SIGKILL)
                    kills += 1
                process.wait()
            subprocess.run([*base, str(out)], check=True, capture_output=True)
            pairs = [(out, here / "whole.jsonl"), (here / f"cut{trial}.rejects.jsonl", here / "whole.rejects.jsonl")]
            same += all(a.read_bytes() == b.read_bytes() for a, b in pairs)
    click.echo(f"{trials} trials, {kills} times killed with -9: {same} of {trials} outputs identical to the byte")


if __name__ == "__main__":
    main()
