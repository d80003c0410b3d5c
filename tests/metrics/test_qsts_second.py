"""QSTS agrees with a readable second implementation, on made and on real pairs."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from elench.engine.drive import Driver
from elench.metrics import metric
from elench.requests import WordVectors
from tests.metrics import second_qsts
from tests.metrics.qsts_models import FORMS, load_models, pair

DATA = Path(os.environ.get("ELENCH_DATA", Path(__file__).parents[3] / "shared" / "data"))
embedded = pytest.mark.embedded


@pytest.fixture(scope="module")
def models():
    return load_models()


def varied_pairs(n):
    """Questions from shuffled parts: plain, passive, possessive, copular, search-style, lower-cased, two sentences."""
    rng = np.random.default_rng(11)
    frames = (
        "Who {verb} the {noun} of {name} in {place}?",
        "When was {name}'s {noun} {verb} by {name2}?",
        "What is the {adj} {noun} in {place}?",
        "Which {noun} did {name} and {name2} see before {year}?",
        "{name} {noun} {place} {year}",
        "I met {name} in {place}. How can I find both the {adj} {noun} and {name2}'s {noun2}?",
        "There is a {adj} {noun} near {place}: why was it {verb}?",
        "How many {noun}s were {verb} by the {adj} {noun2} that {name} loved?",
    )
    parts = {
        "verb": ["painted", "sold", "written", "found", "destroyed", "born"],
        "noun": ["house", "painting", "book", "brother", "river", "law"],
        "noun2": ["album", "ship", "teacher", "phone"],
        "adj": ["first", "largest", "lucid", "famous", "20th-century"],
        "name": ["Bob Dylan", "Vincent van Gogh", "Marie Curie", "IBM", "Spider-Man"],
        "name2": ["Theo", "Ada Lovelace", "the United Nations", "Björk"],
        "place": ["Germany", "New York City", "the U.S.", "Oslo"],
        "year": ["1999", "the 1880s", "May 4"],
    }

    def words():
        return {k: v[rng.integers(len(v))] for k, v in parts.items()}

    def question(filling):
        text = frames[rng.integers(len(frames))].format(**filling)
        return text.lower() if rng.random() < 0.2 else text

    pairs = []
    for _ in range(n):
        one, two = words(), words()
        near = {k: one[k] if rng.random() < 0.7 else two[k] for k in one}
        pairs.append((question(one), question(near)))
    return pairs


def agree(models, pairs):
    """The second implementation's values in all forms, after checking that the fast one gives the same."""
    pipeline, vectors = models["parser"].pipeline, models["vectors"]
    texts = list(dict.fromkeys(t for p in pairs for t in p))
    documents = dict(zip(texts, pipeline.pipe(texts), strict=True))

    @cache
    def vector(word):
        return vectors.answer([WordVectors((word,))])[0][0].astype(np.float64)

    chosen = [metric(f"qsts[class=off,form={form}]") for form in FORMS]
    records = [pair(candidate, reference) for reference, candidate in pairs]
    fast = Driver(models).run([m.score(r) for m in chosen for r in records])
    slow = [second_qsts.qsts(documents[r], documents[c], vector, form) for form in FORMS for r, c in pairs]
    assert np.array([s.value**3 for s in fast]) == pytest.approx(np.array(slow) ** 3, abs=1e-6)
    return np.array(slow).reshape(len(FORMS), -1)


@embedded
def test_second_implementation_agrees_on_500_varied_pairs(models):
    for values in agree(models, varied_pairs(500)):
        assert len(set(values.round(6))) > 100 and 0 < np.mean(values == 0) < 0.8


@embedded
@pytest.mark.validation
def test_second_implementation_agrees_on_real_pairs(models):
    if not DATA.is_dir():
        pytest.skip("no shared data: set ELENCH_DATA")
    pairs = []
    for name in ("qqp_dev", "firs_train", "simqg_a"):
        with (DATA / "judgements" / f"{name}.jsonl").open(encoding="utf-8") as lines:
            rows = [json.loads(next(lines)) for _ in range(60)]
        pairs += [(row["references"][0], row["question"]) for row in rows]
    agree(models, pairs)
