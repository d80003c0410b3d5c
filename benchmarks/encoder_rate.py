"""The encoder's rate on texts of mixed length, float32 and int8, beside plain float32 matrix products in the same run.

    python benchmarks/encoder_rate.py [--pairs 400]

Counted are 2 operations per weight of the layers and token, padding not counted, so padding and everything that is not
a matrix product lowers the share.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

from sides import machine, one_thread, product_rate
from texts import mixed_texts

from elench.models.base import ModelSet
from elench.requests import Embed

DEPTH, WIDTH, INNER = 6, 384, 1536


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--pairs", type=int, default=400)
    given = options.parse_args()
    one_thread()
    asked = list(dict.fromkeys(Embed(t, DEPTH) for seed in (1, 2) for t in mixed_texts(given.pairs, seed)))
    models = {dtype: ModelSet(dtype=dtype)["encoder"] for dtype in ("float32", "int8")}
    groups = models["float32"].batches(asked)
    busy = dict.fromkeys(models, 0.0)
    rates, tokens = [], 0
    for model in models.values():
        model.answer(asked[:2])
    for k, group in enumerate(groups):
        batch = [asked[i] for i in group]
        for dtype, model in models.items():
            start = time.process_time()
            found = model.answer(batch)
            busy[dtype] += time.process_time() - start
        tokens += sum(len(v.ids) for v in found)
        if k % (len(groups) // 8 + 1) == 0:
            rates.append(product_rate())
    peak = sum(rates) / len(rates)
    print(f"n = {len(asked)} texts, {tokens} tokens in {len(groups)} batches; {machine()}")
    print(f"plain float32 products {peak / 1e9:6.1f} GFLOP/s")
    for dtype, seconds in busy.items():
        rate = 2 * DEPTH * (4 * WIDTH * WIDTH + 2 * WIDTH * INNER) * tokens / seconds
        print(
            f"encoder {dtype:8} {rate / 1e9:6.1f} GFLOP/s, {tokens / seconds:.0f} tokens/s: {rate / peak:.0%} of them"
        )
    print(f"int8 against float32: {busy['float32'] / busy['int8']:.2f} times")


if __name__ == "__main__":
    main()
