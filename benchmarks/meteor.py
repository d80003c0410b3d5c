"""METEOR against nltk on the same WordNet: python benchmarks/meteor.py [PAIRS]"""

import sys

from lexical import make_pairs, nltk_wordnet, race
from nltk.tokenize import word_tokenize
from nltk.translate.meteor_score import single_meteor_score

from elench.metrics.meteor import meteor

wordnet = nltk_wordnet()


def theirs(judged: str, reference: str) -> float:
    cut = [word_tokenize(text, preserve_line=True) for text in (reference, judged)]
    return single_meteor_score(*cut, wordnet=wordnet)


reached = race(
    "meteor, texts of 15 to 40 words",
    make_pairs(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000, 15, 40),
    lambda pairs: [meteor(judged, reference) for judged, reference in pairs],
    lambda pairs: [theirs(judged, reference) for judged, reference in pairs],
    wanted=5,
    tool="nltk",
)
sys.exit(not reached)
