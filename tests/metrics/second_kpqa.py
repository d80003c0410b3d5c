"""KPQA a second time: slow, plain, straight from the equations. The tests compare the two."""

from __future__ import annotations

from functools import cache
from itertools import combinations, product

import torch


def bleu1(said: list[tuple[str, float]], wanted: list[tuple[str, float]]) -> float:
    """Equation (1) with clipping: for each word the heaviest places, as many as the reference has."""
    top = 0.0
    for word in {w for w, _ in said}:
        places = sorted((weight for w, weight in said if w == word), reverse=True)
        top += sum(places[: sum(w == word for w, _ in wanted)])
    return top / sum(weight for _, weight in said)


def rouge_l(said: list[tuple[str, float]], wanted: list[tuple[str, float]], beta: float, longest: bool) -> float:
    """Equations (2)-(5) by trying every pair of subsequences; for texts of a few words."""
    best = (0.0, 0.0, 0.0)
    for size in range(min(len(said), len(wanted)) + 1):
        for ours, theirs in product(combinations(said, size), combinations(wanted, size)):
            if [w for w, _ in ours] == [w for w, _ in theirs]:
                p, r = sum(k for _, k in ours), sum(k for _, k in theirs)
                best = max(best, (size * 100.0 * longest + p + r, p, r))
    precision = best[1] / sum(k for _, k in said)
    recall = best[2] / sum(k for _, k in wanted)
    if precision == 0 or recall == 0:
        return 0.0
    return (1 + beta**2) * recall * precision / (recall + beta**2 * precision)


def bertscore(
    ours: torch.Tensor,
    said: list[float],
    theirs: torch.Tensor,
    wanted: list[float],
    rescale: float,
    banned: torch.Tensor,
) -> float:
    """Equations (6)-(8), one pair of words at a time; `banned` marks pairs of different numbers."""

    def likeness(i: int, j: int) -> float:
        if banned[i, j]:
            return 0.0
        cosine = float(torch.nn.functional.cosine_similarity(ours[i], theirs[j], dim=0))
        return min(1.0, max(0.0, (cosine - rescale) / (1 - rescale)))

    table = [[likeness(i, j) for j in range(len(theirs))] for i in range(len(ours))]
    precision = sum(k * max(row) for k, row in zip(said, table, strict=True)) / sum(said)
    recall = sum(k * max(row[j] for row in table) for j, k in enumerate(wanted)) / sum(wanted)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def code_bleu1(said: list[tuple[str, float]], wanted: list[str]) -> float:
    """As the public program: mean weight of a piece over its places, clipped count, brevity penalty on lengths."""
    top = 0.0
    for piece in {p for p, _ in said}:
        weights = [k for p, k in said if p == piece]
        top += min(len(weights), wanted.count(piece)) * sum(weights) / len(weights)
    value = top / sum(k for _, k in said)
    if len(said) < len(wanted):
        value *= float(torch.exp(torch.tensor(1 - len(wanted) / len(said), dtype=torch.float64)))
    return value


def code_rouge_l(said: list[tuple[str, float]], wanted: list[tuple[str, float]]) -> float:
    """As the public program: on equal pieces the reference's weight is added on the diagonal; β = 1."""

    @cache
    def table(i: int, j: int) -> float:
        if i == 0 or j == 0:
            return 0.0
        if wanted[i - 1][0] == said[j - 1][0]:
            return table(i - 1, j - 1) + wanted[i - 1][1]
        return max(table(i - 1, j), table(i, j - 1))

    shared = table(len(wanted), len(said))
    precision, recall = shared / sum(k for _, k in said), shared / sum(k for _, k in wanted)
    return 2 * precision * recall / (precision + recall) if shared else 0.0
