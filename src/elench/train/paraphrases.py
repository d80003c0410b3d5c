"""Translate sentences of the corpora to Portuguese and back (`elench train paraphrases`): positives for `support`.

A file of lines {"sentence", "paraphrase"}; sentences that came back unchanged, much shorter, or without one of their
numbers are left out.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import numpy as np

from elench.errors import UsageError
from elench.models.base import ModelChoice, load_model
from elench.requests import BackTranslate
from elench.text.passages import sentences
from elench.train.examples import read_paragraphs
from elench.train.options import train_options

FILE = "paraphrases.jsonl"
NUMBERS = re.compile(r"\d+")


def faithful(sentence: str, back: str) -> bool:
    """Did the way there and back change the words, and keep numbers and length?"""
    same = sentence.lower().split() == back.lower().split()
    kept = sorted(NUMBERS.findall(sentence)) == sorted(NUMBERS.findall(back))
    return not same and kept and 0.7 < len(back) / len(sentence) < 1.4


@click.command()
@train_options
def command(data: Path, out: Path | None, minutes: float, steps: int, seed: int, threads: int, resume: bool) -> None:
    """Paraphrase --steps sentences of SQuAD's training paragraphs by translating them there and back."""
    if out is None or steps <= 0:
        raise UsageError("--out names the folder, --steps the number of sentences")
    out.mkdir(parents=True, exist_ok=True)
    contexts = list(dict.fromkeys(e.context for e in read_paragraphs(data / "squad11_train.jsonl.gz")))
    found = [c[a:b] for c in contexts for a, b in sentences(c) if 8 <= len(c[a:b].split()) <= 40]
    chosen = [found[int(i)] for i in np.random.default_rng(seed).permutation(len(found))[:steps]]
    done = sum(1 for _ in (out / FILE).open(encoding="utf-8")) if resume and (out / FILE).exists() else 0
    model, kept = load_model(ModelChoice("translator")), 0
    with (out / FILE).open("a" if done else "w", encoding="utf-8") as lines:
        for sentence in chosen[done:]:
            (back,) = model.answer([BackTranslate(sentence)])
            good = faithful(sentence, back)
            kept += good
            lines.write(
                json.dumps({"sentence": sentence, "paraphrase": back if good else None}, ensure_ascii=False) + "\n"
            )
            lines.flush()
    click.echo(f"{out / FILE}: {kept} paraphrases of {len(chosen) - done} sentences")
