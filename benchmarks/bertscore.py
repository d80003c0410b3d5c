"""BERTScore: pairs per second of elench and of bert-score 0.3.13, same weights, same process, one after the other.

    python benchmarks/bertscore.py [--pairs 2000] [--threads 1] [--rounds 1]

Times are CPU seconds of this process (with one thread: the work done, whatever else the machine does) and wall seconds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from texts import mixed_texts


def timed(run: Callable[[], list[float]]) -> tuple[list[float], float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    found = run()
    return found, time.process_time() - cpu, time.perf_counter() - wall


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--pairs", type=int, default=2000)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--rounds", type=int, default=1)
    given = options.parse_args()

    import bert_score
    import torch
    from transformers.utils import logging

    import elench
    from elench.models.base import ModelChoice, ModelSet
    from elench.models.checkpoints import find

    logging.disable_progress_bar()
    torch.set_num_threads(given.threads)
    folder = find(ModelChoice("encoder")).folder
    candidates, references = mixed_texts(given.pairs, 1), mixed_texts(given.pairs, 2)
    records = [
        {"id": str(i), "question": c, "references": [r], "judge": "question"}
        for i, (c, r) in enumerate(zip(candidates, references, strict=True))
    ]
    models = ModelSet()
    assert models["encoder"]
    scorer = bert_score.BERTScorer(model_type=str(folder), num_layers=5, device="cpu", nthreads=0)

    def ours() -> list[float]:
        found = elench.score(records, ["bertscore[layer=5]"], models=models, cache=False)["bertscore[layer=5]"]
        return [found[r["id"]] for r in records]

    def theirs() -> list[float]:
        return list(scorer.score(candidates, references)[2].tolist())

    elench.score(records[:8], ["bertscore[layer=5]"], models=models, cache=False)
    scorer.score(candidates[:8], references[:8])
    sums = np.zeros(4)
    for _ in range(given.rounds):
        a, cpu_ours, wall_ours = timed(ours)
        b, cpu_theirs, wall_theirs = timed(theirs)
        sums += (cpu_ours, cpu_theirs, wall_ours, wall_theirs)
    n = given.pairs * given.rounds
    print(f"n = {given.pairs} pairs x {given.rounds}, {given.threads} thread(s), encoder all-minilm-l6-v2, layer 5")
    print(f"elench    {n / sums[0]:7.1f} pairs per CPU second   {n / sums[2]:7.1f} pairs per second")
    print(f"bert-score  {n / sums[1]:7.1f} pairs per CPU second   {n / sums[3]:7.1f} pairs per second")
    print(f"ratio       {sums[1] / sums[0]:7.2f}                    {sums[3] / sums[2]:7.2f}")
    print(f"largest difference {np.abs(np.array(a) - b).max():.1e}")


if __name__ == "__main__":
    main()
