"""BERTScore: pairs per CPU second of elench (float32 and int8) and of bert-score 0.3.13, same weights, same process.

python benchmarks/bertscore.py [--pairs 2000]
"""

from __future__ import annotations

import argparse

import numpy as np
from sides import cpu_seconds, machine, one_thread
from texts import mixed_texts

SPEC = "bertscore[layer=5]"


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--pairs", type=int, default=2000)
    given = options.parse_args()
    one_thread()
    import bert_score
    from transformers.utils import logging

    import elench
    from elench.models.base import ModelChoice, ModelSet
    from elench.models.checkpoints import find

    logging.disable_progress_bar()
    folder = find(ModelChoice("encoder")).folder
    candidates, references = mixed_texts(given.pairs, 1), mixed_texts(given.pairs, 2)
    records = [
        {"id": str(i), "question": c, "references": [r], "judge": "question"}
        for i, (c, r) in enumerate(zip(candidates, references, strict=True))
    ]
    scorer = bert_score.BERTScorer(model_type=str(folder), num_layers=5, device="cpu", nthreads=0)
    scorer.score(candidates[:8], references[:8])
    theirs, slow = cpu_seconds(lambda: scorer.score(candidates, references)[2].numpy())
    print(f"n = {given.pairs} pairs of 2 to 200 words, all-minilm-l6-v2, layer 5; {machine()}")
    print(f"bert-score     {given.pairs / slow:7.1f} pairs/s")
    for dtype in ("float32", "int8"):
        models = ModelSet(dtype=dtype)
        elench.score(records[:8], SPEC, models=models, cache=False)
        found, fast = cpu_seconds(lambda m=models: elench.score(records, SPEC, models=m, cache=False)[SPEC])
        apart = max(abs(found[r["id"]] - t) for r, t in zip(records, theirs, strict=True))
        r = np.corrcoef([found[r["id"]] for r in records], theirs)[0, 1]
        print(
            f"elench {dtype:8}{given.pairs / fast:7.1f} pairs/s: {slow / fast:.2f} times; "
            f"largest difference {apart:.1e}, r {r:.5f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
