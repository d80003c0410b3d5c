"""The encoder's rate on pairs of mixed length, beside the rate of plain matrix products in the same run; peak memory.

    python benchmarks/encoder_rate.py [--pairs 2000] [--threads 1]

Counted are 2 operations per weight of the layers and token, padding not counted, so padding and everything that is no
matrix product lowers the share.
"""

from __future__ import annotations

import argparse
import resource
import time

from texts import mixed_texts


def gemm(rows: int, width: int, inner: int) -> float:
    """Operations per second of products of the encoder's own shape, 10 at a time."""
    import torch

    a, b, c = torch.randn(rows, width), torch.randn(width, inner), torch.randn(inner, width)
    start = time.process_time()
    for _ in range(10):
        (a @ b) @ c
    return 10 * 4 * rows * width * inner / (time.process_time() - start)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--pairs", type=int, default=2000)
    options.add_argument("--threads", type=int, default=1)
    given = options.parse_args()

    import torch

    from elench.models.base import ModelSet
    from elench.requests import Embed

    torch.set_num_threads(given.threads)
    model = ModelSet()["encoder"]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    config = model.model.config  # type: ignore[attr-defined]
    width, inner, depth = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    asked = [
        Embed(t, depth)
        for pair in zip(mixed_texts(given.pairs, 1), mixed_texts(given.pairs, 2), strict=True)
        for t in pair
    ]
    rates = [gemm(1024, width, inner)]
    tokens, busy = 0, 0.0
    groups = model.batches(asked)
    for k, group in enumerate(groups):
        start = time.process_time()
        tokens += sum(len(v.ids) for v in model.answer([asked[i] for i in group]))
        busy += time.process_time() - start
        if k % (len(groups) // 8 + 1) == 0:
            rates.append(gemm(1024, width, inner))
    products = sum(rates) / len(rates)
    rate = 2 * depth * (4 * width * width + 2 * width * inner) * tokens / busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"n = {given.pairs} pairs, {tokens} tokens in {len(groups)} batches, {given.threads} thread(s), {model.name}")
    print(
        f"encoder {rate / 1e9:6.1f} GFLOP/s ({tokens / busy:.0f} tokens per CPU second)   products {products / 1e9:6.1f} GFLOP/s"
    )
    print(
        f"share   {rate / products:6.0%}   peak memory {peak / 1e3:.0f} MB, {(peak - before) / 1e3:.0f} MB above the loaded model"
    )


if __name__ == "__main__":
    main()
