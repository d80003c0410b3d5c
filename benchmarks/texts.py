"""Made-up texts of mixed length for the benchmarks: words of the sample, drawn with a seed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

SAMPLE = Path(__file__).parents[1] / "sample" / "records.jsonl"


def mixed_texts(count: int, seed: int = 0, typical: float = 20.0, longest: int = 200) -> list[str]:
    """Texts whose lengths in words spread log-normally around `typical`."""
    rng = np.random.default_rng(seed)
    records = [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
    words = " ".join(r.get("context") or r.get("question") or "" for r in records).split()
    lengths = np.clip(rng.lognormal(np.log(typical), 0.8, count), 2, longest).astype(int)
    starts = rng.integers(0, len(words), count)
    return [" ".join((words * 3)[a : a + n]) for a, n in zip(starts, lengths, strict=True)]
