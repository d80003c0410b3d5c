"""Which passages to show when not all can be rated: those on which systems and metrics disagree, unlike each other."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elench.errors import UsageError
from elench.perturb.bad_reference import words_of
from elench.records.record import Record
from elench.runs.run import Run
from elench.study.design.compose import blocks, judged

Array = NDArray[np.float64]
Scores = dict[tuple[str, str], dict[str, float]]
"""Record and system → metric → score."""
DIVERSITY = 0.5
"""Weight of being unlike what is chosen already, beside disagreement."""


@dataclass(frozen=True)
class Passage:
    """One output of every system about the same passage."""

    records: tuple[Record, ...]
    disagreement: float


def overlap(first: Counter[str], second: Counter[str]) -> float:
    """Word F1 of two texts."""
    shared = sum((first & second).values())
    total = sum(first.values()) + sum(second.values())
    return 2 * shared / total if total else 1.0


def _bag(text: str) -> Counter[str]:
    return Counter(word.casefold() for word in words_of(text))


def text_disagreement(texts: Sequence[str]) -> float:
    """How differently the systems put it: one minus the mean word overlap of two outputs."""
    bags = [_bag(text) for text in texts]
    pairs = list(itertools.combinations(bags, 2))
    return 1 - sum(overlap(a, b) for a, b in pairs) / len(pairs)


def score_disagreement(table: Array) -> tuple[float, float]:
    """Systems × metrics, each metric standardised: spread between systems, and between metrics on one system."""
    between_systems = float(np.nanmean(np.nanstd(table, axis=0)))
    between_metrics = float(np.nanmean(np.nanstd(table, axis=1))) if table.shape[1] > 1 else 0.0
    return between_systems, between_metrics


def _standardised(values: Sequence[float]) -> Array:
    found = np.array(values, float)
    spread = found.std()
    return (found - found.mean()) / spread if spread > 0 else np.zeros(len(found))


def rank_passages(found: Sequence[dict[str, Record]], judge: str, scores: Scores | None) -> list[Passage]:
    """Every complete passage with how much is to be learnt from it."""
    parts = [_standardised([text_disagreement([judged(r, judge) for r in block.values()]) for block in found])]
    if scores:
        metrics = sorted({name for given in scores.values() for name in given})
        flat = {name: [given[name] for given in scores.values() if name in given] for name in metrics}
        centre = {name: (float(np.mean(v)), float(np.std(v)) or 1.0) for name, v in flat.items()}
        both = []
        for block in found:
            rows = [scores.get((r.id, r.system or ""), {}) for r in block.values()]
            table = np.array([[_z(row.get(name), *centre[name]) for name in metrics] for row in rows])
            both.append(score_disagreement(table))
        parts += [_standardised([b for b, _ in both]), _standardised([m for _, m in both])]
    total = np.sum(parts, axis=0)
    return [Passage(tuple(block.values()), float(value)) for block, value in zip(found, total, strict=True)]


def _z(value: float | None, mean: float, spread: float) -> float:
    return 0.0 if value is None else (value - mean) / spread


def pick(passages: Sequence[Passage], count: int) -> list[Passage]:
    """Greedy: the most disagreement next, less so the more its passage resembles one that is chosen already."""
    bags = [_bag(p.records[0].context or "") for p in passages]
    alike = np.zeros(len(passages))
    worth = _standardised([p.disagreement for p in passages])
    chosen: list[int] = []
    for _ in range(min(count, len(passages))):
        value = worth - DIVERSITY * alike * 4
        value[chosen] = -np.inf
        best = int(np.argmax(value))
        chosen.append(best)
        alike = np.maximum(alike, [overlap(bags[best], bag) for bag in bags])
    return [passages[place] for place in sorted(chosen)]


def choose_records(records: Sequence[Record], judge: str, count: int, scores: Path | None = None) -> list[Record]:
    """The records of the `count` most informative passages."""
    systems = sorted({record.system or "" for record in records})
    found = blocks(records, systems, judge)
    if not found:
        raise UsageError(f"--choose: no passage has an output of every one of the {len(systems)} systems")
    if count > len(found):
        raise UsageError(f"--choose {count}: the file has only {len(found)} passages with an output of every system")
    chosen = pick(rank_passages(found, judge, _all_scores(scores) if scores else None), count)
    return [record for passage in chosen for record in passage.records]


def _all_scores(path: Path) -> Scores:
    run = Run.read(path)
    return {(o.id, o.system or ""): {s: v for s in run.specs if (v := o.value(s)) is not None} for o in run.scored}
