"""QRelScore §3.3, small: does a reader learn more from questions of an asker that was trained with the reward?

    elench train asker --data CORPORA --reward qrelscore --steps 24 --out REWARDED
    python benchmarks/qa_gain.py --data CORPORA --rewarded REWARDED --keep FOLDER [--texts 50] [--steps 100] [--seeds 1]

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
from elench.train.reader import collate, new_reader, span_loss
from elench.train.reader_examples import FILES, EpochSampler, Piece, tokenised
from elench.train.reader_scores import best_score, some

Scores = np.ndarray[Any, np.dtype[np.float64]]
DRAWS, BATCH = 2000, 16
ARMS = {
    "human": "human questions alone",
    "shipped": "+ questions of the shipped asker",
    "rewarded": "+ questions of the asker with the reward",
}


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
        fit(trainer, Schedule(steps=steps, lr=2.5e-4, batch=BATCH, seed=seed), Path(folder), log=lambda line: None)
    return SpanReader(Network(network, tokens), tokens)


def f1_of(reader: SpanReader, test: Sequence[Example]) -> Scores:
    readings = reader.answer_all([Read(e.question, e.context) for e in test])
    return np.array([100 * best_score(r.best, e.answers)[1] for r, e in zip(readings, test, strict=True)])


def interval(differences: Scores, test: Sequence[Example]) -> tuple[float, float]:
    """95 % of the mean difference when paragraphs are drawn again."""
    groups: dict[str, list[int]] = {}
    for k, e in enumerate(test):
        groups.setdefault(e.context, []).append(k)
    sums = np.array([[differences[own].sum(), len(own)] for own in groups.values()])
    drawn = np.random.default_rng(0).integers(len(sums), size=(DRAWS, len(sums)))
    totals = sums[drawn].sum(1)
    low, high = np.percentile(totals[:, 0] / totals[:, 1], [2.5, 97.5])
    return float(low), float(high)


def trained_on(arm: str, human: list[Example], given: argparse.Namespace) -> list[Example]:
    """The examples of an arm: human questions, and as many generated ones as were asked for."""
    if arm == "human":
        return human
    made = generated(list(dict.fromkeys(e.context for e in human)), given.rewarded if arm == "rewarded" else None)
    if len(made) < given.questions:
        raise SystemExit(f"{arm}: {len(made)} questions, {given.questions} wanted: more --texts or fewer --questions")
    drawn = np.random.default_rng(0).choice(len(made), given.questions, replace=False)
    return human + [made[int(i)] for i in drawn]


def show(scores: dict[str, Scores], human: list[Example], test: list[Example], given: argparse.Namespace) -> None:
    """The table; a row for every arm whose readers are there."""
    print(
        f"{len({e.context for e in human})} paragraphs, {len(human)} human and {given.questions} generated questions;"
    )
    print(f"{given.steps} steps of {BATCH}, {given.seeds} seeds; F1 on {len(test)} questions of XQuAD-en\n")
    print("| trained on | F1 | single seeds | against human alone [95 %] | against the shipped asker [95 %] |")
    print("|---|---|---|---|---|")
    for arm, values in scores.items():
        cells = []
        for base in ("human", "shipped"):
            gap = values.mean(0) - scores[base].mean(0) if base in scores and arm != base else np.zeros(0)
            cells.append("{:+.2f} [{:+.2f}, {:+.2f}]".format(gap.mean(), *interval(gap, test)) if gap.size else "")
        each = ", ".join(f"{v:.2f}" for v in values.mean(1))
        print(f"| {ARMS[arm]} | {values.mean():.2f} | {each} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rewarded", type=Path, help="folder of the asker with the reward")
    parser.add_argument(
        "--keep", type=Path, required=True, help="folder for the readers' F1; what is there is not redone"
    )
    parser.add_argument("--arm", choices=ARMS, action="append", help="only this one (repeatable)")
    for name, number in (("texts", 50), ("questions", 200), ("steps", 100), ("seeds", 1), ("test", 0)):
        parser.add_argument(f"--{name}", type=int, default=number)
    given = parser.parse_args()
    one_thread()
    given.keep.mkdir(parents=True, exist_ok=True)
    human, test = paragraphs(given.data, given.texts), some(read_squad(given.data / "xquad_en.json"), given.test)
    scores: dict[str, Scores] = {}
    for arm in given.arm or ARMS:
        kept = [given.keep / f"{arm}-{seed}.npy" for seed in range(given.seeds)]
        examples = [] if all(file.exists() for file in kept) else trained_on(arm, human, given)
        for seed, file in enumerate(kept):
            if not file.exists():
                np.save(file, f1_of(learned(examples, given.steps, seed), test))
        scores[arm] = np.stack([np.load(file) for file in kept])
        print(f"{machine()}: {arm} done, {time.process_time() / 60:.1f} CPU minutes so far", flush=True)
    show(scores, human, test, given)


if __name__ == "__main__":
    main()
