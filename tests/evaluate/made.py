"""Small tables of records, ratings and scores with a known shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from elench.evaluate.judgements import Judgements
from elench.records.record import Record


def table(items: int = 20, systems: int = 5, metrics: int = 3, seed: int = 0, gaps: float = 0.0) -> Judgements:
    """Items × systems, metrics of falling quality, one of them called a sanity baseline."""
    rng = np.random.default_rng(seed)
    n = items * systems
    quality = np.repeat(rng.normal(size=items), systems) + np.tile(rng.normal(size=systems), items)
    human = np.round(2 * (quality + rng.normal(size=n)))[:, None]
    scores = quality[:, None] + rng.normal(size=(n, metrics)) * np.arange(1, metrics + 1)
    scores[rng.random(scores.shape) < gaps] = np.nan
    names = tuple(f"m{k}" for k in range(metrics))
    kinds = {name: "sanity" if k == metrics - 1 else "metric" for k, name in enumerate(names)}
    records = [Record(id=str(k), group=f"g{k // systems}", system=f"s{k % systems}") for k in range(n)]
    return Judgements(records, names, scores, kinds, ("quality",), human, "made")


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def rated(n: int = 12, **more: Any) -> list[dict[str, Any]]:
    """Answers with a rating and a peer's score."""
    return [
        {
            "id": f"a{k}",
            "group": f"g{k // 3}",
            "system": f"s{k % 3}",
            "question": "Who went to the sea?",
            "answer": "The old man " * (k % 4 + 1),
            "references": ["The old man"],
            "judge": "answer",
            "human": {"correct": float(k % 5)},
            "peers": {"peer": (k * 7 % 11) / 10},
            **more,
        }
        for k in range(n)
    ]
