"""Scores of version 0.1 beside today's: which metrics give the same numbers, to 1e-6, and how far the others are off.

    git archive 2af7430 src | tar x -C OLD           # 0.1.0, then called quaestor; it needs torch
    python benchmarks/nothing_lost.py OLD/src FILE… [-n 50] [-m SPEC…]

QUAESTOR_CACHE names the folder of the old program's models. A spec may be OLD>NEW where a metric has another name now.
One line per metric: records compared, records that differ, the largest difference and where it is.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

LEXICAL = [
    "answer-leak",
    "answerability",
    "bleu",
    "bleu[n=1]",
    "bleu[dialect=coco]",
    "cider",
    "cider-d",
    "em",
    "f1",
    "gleu",
    "lead-overlap",
    "length",
    "meteor",
    "near-answer",
    "novel-f1",
    "q-bleu",
    "q-meteor",
    "q-rouge",
    "rouge-1",
    "rouge-2",
    "rouge-l",
    "rouge-lsum",
    "source-overlap",
]
PROGRAM = """
import importlib.metadata, json, sys, warnings
known = importlib.metadata.version
importlib.metadata.version = lambda name: "0.1.0" if name == "quaestor" else known(name)  # it is not installed
warnings.simplefilter("ignore")
name, specs, lines = json.load(sys.stdin)
score = __import__(name).score
for spec in specs:
    try:
        print(json.dumps(score(lines, spec).values(spec)))
    except Exception as error:
        print(json.dumps(str(error)))
"""


def scores(name: str, path: str, specs: list[str], lines: list[object]) -> list[list[float | None] | str]:
    """For each spec the score (or None) of each record, or why the program refused."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps([name, specs, lines]), capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(("[", '"'))]
    if len(found) != len(specs):
        sys.exit(f"{name}: {done.stderr}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("old")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("-n", type=int, default=50)
    parser.add_argument("-m", "--metrics", nargs="+", default=LEXICAL)
    given = parser.parse_args()
    pairs = [(spec.partition(">")[0], spec.partition(">")[2] or spec) for spec in given.metrics]
    total = {spec: [0, 0, 0.0, ""] for spec in given.metrics}
    for file in given.files:
        lines = [json.loads(line) for line in file.open().readlines()[: given.n]]
        before = scores("quaestor", given.old, [old for old, _ in pairs], lines)
        after = scores("elench", os.environ.get("PYTHONPATH", ""), [new for _, new in pairs], lines)
        for spec, old, new in zip(given.metrics, before, after, strict=True):
            if isinstance(old, str) or isinstance(new, str):
                total[spec][3] = total[spec][3] or f"{file.name}: {old if isinstance(old, str) else new}"
                continue
            for line, value, now in zip(lines, old, new, strict=True):
                if value is None and now is None:
                    continue
                gap = abs(value - now) if value is not None and now is not None else float("inf")
                total[spec][0] += 1
                total[spec][1] += gap > 1e-6
                if gap > max(total[spec][2], 1e-6):
                    total[spec][2:] = gap, f"{file.name} {line['id']}: {value} → {now}"
    for spec, (compared, differ, worst, where) in total.items():
        print(f"{spec}\t{compared}\t{differ}\t{worst:.2g}\t{where}", flush=True)


if __name__ == "__main__":
    main()
