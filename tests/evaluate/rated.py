"""Records whose human ratings are known functions of what metrics see, for tests of calibration and certificates."""

import json

import numpy as np

WORDS = [
    "river",
    "stone",
    "garden",
    "winter",
    "letter",
    "market",
    "bridge",
    "window",
    "doctor",
    "harbour",
    "lantern",
    "copper",
    "forest",
    "village",
]


def rated_records(n=200, groups=40, seed=0, noise=0.3, systems=("a", "b")):
    """Answers that share more or fewer words with their reference; `good` follows that share, `long` the length."""
    rng = np.random.default_rng(seed)
    rows = []
    for k in range(n):
        reference = list(rng.choice(WORDS, 6, replace=False))
        kept = int(rng.integers(0, 7))
        extra = int(rng.integers(0, 6))
        answer = reference[:kept] + [f"x{rng.integers(1000)}" for _ in range(1 + extra)]
        good = 1 + 4 * kept / 6 + noise * rng.normal()
        rows.append(
            {
                "id": f"r{k}",
                "group": f"g{k % groups}",
                "system": systems[k // groups % len(systems)],
                "question": "What is it?",
                "answer": " ".join(answer),
                "references": [" ".join(reference)],
                "judge": "answer",
                "human": {
                    "good": round(float(np.clip(good, 0, 6)), 3),
                    "long": len(answer) + noise * float(rng.normal()),
                },
            }
        )
    return rows


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
