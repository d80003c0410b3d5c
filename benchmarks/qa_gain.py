"""QRelScore §3.3, small: does a reader learn more from questions of an asker that was trained with the reward?

    elench train asker --data CORPORA --reward qrelscore --steps 24 --out REWARDED
    python benchmarks/qa_gain.py --data CORPORA --rewarded REWARDED [--texts 120] [--steps 200] [--seeds 2]

A low-resource setting: a reader learns from the human questions on a seeded sample of SQuAD training paragraphs alone,
and from these plus as many generated questions on the same paragraphs, asked by the shipped asker or by REWARDED
(`elench augment` with the paper's filters, no threshold). All readers start from the same encoder and take the same
number of steps. F1 (an answer is forced) on XQuAD-en, which no training saw; intervals of the differences: bootstrap
over paragraphs of the questions' F1, averaged over seeds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sides import machine, one_thread

from elench.adapters.augment import augment
from elench.models.base import ModelChoice, ModelSet
from elench.models.checkpoints import find
from elench.models.reader import SpanReader
from elench.models.tokens import Tokens
from elench.models.torch_networks import Network
from elench.requests import Read
from elench.train.examples import Example, read_paragraphs, read_squad
from elench.train.loop import BASES, Schedule, Trainer, fit
from elench.train.reader import FILES, EpochSampler, Piece, collate, new_reader, span_loss, tokenised
from elench.train.reader_scores import best_score, read_all

DRAWS = 2000


def paragraphs(data: Path, texts: int) -> list[Example]:
    """The human questions on a sample of training paragraphs."""
    asked = [e for e in read_paragraphs(data / FILES[0]) if e.start >= 0]
    contexts = sorted({e.context for e in asked})
    chosen = set(np.random.default_rng(0).choice(contexts, texts, replace=False).tolist())
    return [e for e in asked if e.context in chosen]


def generated(texts: Sequence[str], asker: Path | None) -> list[Example]:
    """What an asker asks about the texts, as training examples."""
    models = ModelSet({"asker": str(asker)} if asker else {})
    pairs, counts = augment(texts, "length", 0.0, per_text=8, models=models)
    print(f"{asker.name if asker else 'shipped'}: {len(pairs)} questions kept; left out: {counts}", flush=True)
    return [Example(str(k), p.text, p.question, (p.answer,), p.start, p.text[:40]) for k, p in enumerate(pairs)]


def learned(examples: list[Example], steps: int, seed: int) -> SpanReader:
    """A reader that starts from the encoder and sees only these examples."""
    network, tokenizer = new_reader(find(ModelChoice("encoder", BASES["embedded"])).folder, seed)
    sources = tokenised(examples, tokenizer)
    order = np.random.default_rng(seed).permutation(len(sources))
    tokens = Tokens.from_transformers(tokenizer)
    trainer = Trainer[Piece](
        model=network,
        examples=EpochSampler([sources[i] for i in order], tokenizer),
        length=lambda p: len(p.question) + len(p.text),
        loss=lambda m, pieces: span_loss(m, collate(pieces, tokens)),
    )
    with tempfile.TemporaryDirectory() as folder:
        fit(trainer, Schedule(steps=steps, lr=2.5e-4, batch=32, seed=seed), Path(folder), log=lambda line: None)
    return SpanReader(Network(network, tokens), tokens)


def f1_of(reader: SpanReader, test: Sequence[Example]) -> np.ndarray[Any, np.dtype[np.float64]]:
    readings = read_all(reader, [Read(e.question, e.context) for e in test])
    return np.array([100 * best_score(r.best, e.answers)[1] for r, e in zip(readings, test, strict=True)])


def interval(differences: np.ndarray[Any, np.dtype[np.float64]], test: Sequence[Example]) -> tuple[float, float]:
    """95 % of the mean difference when paragraphs are drawn again."""
    groups: dict[str, list[int]] = {}
    for k, e in enumerate(test):
        groups.setdefault(e.context, []).append(k)
    sums = np.array([[differences[own].sum(), len(own)] for own in groups.values()])
    drawn = np.random.default_rng(0).integers(len(sums), size=(DRAWS, len(sums)))
    totals = sums[drawn].sum(1)
    low, high = np.percentile(totals[:, 0] / totals[:, 1], [2.5, 97.5])
    return float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rewarded", type=Path, required=True)
    parser.add_argument("--texts", type=int, default=120)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    one_thread()
    human = paragraphs(given.data, given.texts)
    texts = list(dict.fromkeys(e.context for e in human))
    plain, rewarded = generated(texts, None), generated(texts, given.rewarded)
    n = min(len(plain), len(rewarded))
    rng = np.random.default_rng(0)
    drawn = {
        name: [made[int(i)] for i in rng.choice(len(made), n, replace=False)]
        for name, made in (("plain", plain), ("rewarded", rewarded))
    }
    arms = {
        "human questions alone": human,
        "+ questions of the shipped asker": human + drawn["plain"],
        "+ questions of the asker with the reward": human + drawn["rewarded"],
    }
    test = read_squad(given.data / "xquad_en.json")
    found: dict[str, list[np.ndarray[Any, np.dtype[np.float64]]]] = {name: [] for name in arms}
    for seed in range(given.seeds):
        for name, examples in arms.items():
            found[name].append(f1_of(learned(examples, given.steps, seed), test))
            print(f"seed {seed}, {name} ({len(examples)}): F1 {found[name][-1].mean():.2f}", flush=True)
    scores = {name: np.mean(values, axis=0) for name, values in found.items()}
    print(
        f"\n{machine()}; {time.process_time() / 60:.0f} CPU minutes; {len(texts)} paragraphs, {len(human)} human and {n}"
    )
    print(
        f"generated questions; {given.steps} steps of 32; F1 on {len(test)} questions of XQuAD-en, {given.seeds} seeds\n"
    )
    print("| trained on | F1 | single seeds | against human alone [95 %] | against the shipped asker [95 %] |")
    print("|---|---|---|---|---|")
    first, second, _ = arms
    for name, values in scores.items():
        cells = []
        for base in (first, second):
            gap = values - scores[base]
            low, high = interval(gap, test)
            cells.append("" if not gap.any() else f"{gap.mean():+.2f} [{low:+.2f}, {high:+.2f}]")
        each = ", ".join(f"{v.mean():.2f}" for v in found[name])
        print(f"| {name} | {values.mean():.2f} | {each} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
