"""CIDEr-D against the COCO script's plain Python, document frequencies included: python benchmarks/cider.py [PAIRS]

Both sides get texts that are cut into words already, and treat each turn of 500 pairs as a file of its own.
"""

import sys
from collections.abc import Sequence

from lexical import Pair, make_pairs, race
from pycocoevalcap.cider.cider import Cider

from elench.metrics.cider import Rarity, cider_of


def ours(pairs: Sequence[Pair]) -> list[float]:
    cut = [(tuple(judged.split()), tuple(reference.split())) for judged, reference in pairs]
    rarity = Rarity.among([(reference,) for _, reference in cut])
    return [cider_of(judged, [reference], rarity) for judged, reference in cut]


def theirs(pairs: Sequence[Pair]) -> list[float]:
    references = {i: [reference] for i, (_, reference) in enumerate(pairs)}
    judged = {i: [text] for i, (text, _) in enumerate(pairs)}
    return list(Cider().compute_score(references, judged)[1])


reached = race(
    "cider-d, texts of 15 to 40 words",
    make_pairs(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000, 15, 40),
    ours,
    theirs,
    wanted=5,
    tool="the COCO script",
)
sys.exit(not reached)
