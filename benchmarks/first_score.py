"""From a cold process to the first scores: lexical metrics and BERTScore on MiniLM, models pulled, answers not cached.

python benchmarks/first_score.py [--rounds 3]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SAMPLE = Path(__file__).parents[1] / "sample" / "records.jsonl"


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    walls, cpus = [], []
    for _ in range(given.rounds):
        with tempfile.TemporaryDirectory() as folder:
            one = Path(folder) / "one.jsonl"
            lines = SAMPLE.read_text(encoding="utf-8").splitlines()
            one.write_text(next(line for line in lines if '"references"' in line) + "\n", encoding="utf-8")
            command = ["-m", "elench", "score", str(one), "-m", "bleu,rouge-l,bertscore", "-o", f"{folder}/out.jsonl"]
            used, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run([sys.executable, *command], check=True, capture_output=True)
            walls.append(time.perf_counter() - start)
            now = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpus.append(now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime)
    print(f"n = {given.rounds} cold processes, 1 record, bleu + rouge-l + bertscore")
    print(f"wall {min(walls):.1f} to {max(walls):.1f} s   CPU {min(cpus):.1f} to {max(cpus):.1f} s")


if __name__ == "__main__":
    main()
