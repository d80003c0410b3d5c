"""Sentence BLEU against sacrebleu: python benchmarks/bleu.py [PAIRS]"""

import sys

from lexical import make_pairs, race
from sacrebleu.metrics import BLEU

from elench.metrics.bleu import sentence_bleu

outside = BLEU(effective_order=True)
reached = [
    race(
        f"bleu, texts of {shortest} to {longest} words",
        make_pairs(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000, shortest, longest),
        lambda pairs: [sentence_bleu(judged, [reference]) for judged, reference in pairs],
        lambda pairs: [outside.sentence_score(judged, [reference]).score / 100 for judged, reference in pairs],
        wanted=5,
        tool="sacrebleu",
    )
    for shortest, longest in ((15, 40), (55, 65), (5, 12))
]
sys.exit(not all(reached[:2]))
