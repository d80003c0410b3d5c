"""ROUGE-L against rouge-score, on summaries and on short answers: python benchmarks/rouge.py [PAIRS]"""

import sys

from lexical import make_pairs, race
from rouge_score.rouge_scorer import RougeScorer

from elench.metrics.rouge import rouge_l

outside = RougeScorer(["rougeL"])
reached = [
    race(
        f"rouge-l, {what}",
        make_pairs(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000, shortest, longest),
        lambda pairs: [rouge_l(judged, reference) for judged, reference in pairs],
        lambda pairs: [outside.score(reference, judged)["rougeL"].fmeasure for judged, reference in pairs],
        wanted=wanted,
        tool="rouge-score",
    )
    for what, shortest, longest, wanted in (("summaries of 60 words", 60, 60, 20), ("answers of 2 to 6 words", 2, 6, 3))
]
sys.exit(not all(reached))
