"""Sentences of judged summaries, to train `support` on: does each follow from its source?

SummEdits' small edits, and XSum's one-sentence summaries. One source in four is kept back. A sentence of a consistent
summary is supported. Of an inconsistent edit only the sentences that the summary before the edit does not have are
taken; whether the source contradicts or lacks them was not asked.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elench.evaluate.kept_back import is_kept_back
from elench.metrics.grounding import SourceText, cut_source, vector
from elench.metrics.support import claims
from elench.models.base import ModelChoice, load_model
from elench.requests import LAST, Embed
from elench.train.claims import SUPPORTED, UNSUPPORTED
from elench.train.pairs import TextPair

FILES = {"summedits.jsonl": "consistent", "xsumfaith.jsonl": "faithful"}
TESTS = ("aggrefact.jsonl", "qags_cnndm.jsonl", "summeval.jsonl", "polytope.jsonl")
"""Files that stay a test: their sources are not trained on, whichever file they are in."""
SHARES = {
    ("summedits.jsonl", True): 0.35, ("summedits.jsonl", False): 0.35,
    ("xsumfaith.jsonl", True): 0.08, ("xsumfaith.jsonl", False): 0.22,
}  # fmt: skip
"""Of the claims drawn, by file and whether they are supported; only 57 of XSum's to train on are."""
SHOWN = (4, 11)
"""How many of a source's sentences a claim is shown with: from this many to below that many."""


@dataclass(frozen=True)
class JudgedClaim:
    """A sentence of a judged summary and the sentences of the source, nearest first."""

    claim: str
    nearest: tuple[int, ...]
    source: SourceText
    supported: bool
    file: str

    def pair(self, most: int) -> TextPair:
        """As the model sees it: with this many of the nearest sentences, in their order."""
        return TextPair(
            self.source.passage(self.nearest[:most]),
            self.claim,
            SUPPORTED if self.supported else UNSUPPORTED,
            self.file,
        )


def judged_claims(folder: Path) -> tuple[list[JudgedClaim], list[JudgedClaim]]:
    """Claims to train on, and those of the sources kept back."""
    tested = {json.loads(line)["group"] for name in TESTS for line in _lines(folder / name)}
    rows: dict[str, list[tuple[str, str, bool]]] = defaultdict(list)
    kept: dict[str, bool] = {}
    for name, dimension in FILES.items():
        for line in _lines(folder / name):
            row = json.loads(line)
            good = row["human"][dimension] > 0.5
            known = set() if good else set(claims(row.get("seed_summary", "")))
            rows[row["context"]] += [(name, said, good) for said in claims(row["summary"]) if said not in known]
            kept[row["context"]] = is_kept_back(name.removesuffix(".jsonl"), "", row["group"])
            if row["group"] in tested and not kept[row["context"]]:
                del rows[row["context"]]
    parts: tuple[list[JudgedClaim], list[JudgedClaim]] = ([], [])
    nearest = Nearest()
    for context, found in rows.items():
        source = nearest.source(context)
        for name, said, good in dict.fromkeys(found):
            parts[kept[context]].append(JudgedClaim(said, nearest(said, source), source, good, name))
    return parts


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


class Nearest:
    """The sentences of a source by their nearness to a claim, as the metric chooses them."""

    def __init__(self) -> None:
        self.encoder = load_model(ModelChoice("encoder"))

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([vector(found) for found in self.encoder.answer([Embed(text, LAST) for text in texts])])

    def source(self, context: str) -> SourceText:
        found = cut_source(context)
        return SourceText(found, self.vectors(found))

    def __call__(self, claim: str, source: SourceText) -> tuple[int, ...]:
        return tuple(source.nearest(self.vectors([claim])[0], SHOWN[1]))


def draw(found: Sequence[JudgedClaim], n: int, rng: np.random.Generator) -> list[TextPair]:
    """`n` pairs, files and verdicts in fixed shares."""
    made = []
    for (name, good), share in SHARES.items():
        group = [c for c in found if c.file == name and c.supported == good]
        picked = rng.integers(len(group), size=round(n * share))
        made += [group[int(i)].pair(int(rng.integers(*SHOWN))) for i in picked]
    return made
