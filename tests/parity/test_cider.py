"""CIDEr-D equals the COCO script (pycocoevalcap 1.2); CIDEr equals a second implementation of the paper's equations."""

import math
from collections import Counter

import pytest
from pycocoevalcap.cider.cider import Cider as CocoCider

from elench.engine.scoring import score
from elench.metrics import metric
from elench.records.record import Record
from elench.text.treebank import words_coco

from .pairs import pairs


def distinct() -> list[tuple[str, list[str]]]:
    """Pairs whose sets of references differ: what the script calls an image is one set of references here."""
    scorable = [(c, r) for c, r in pairs(1600, seed=11) if words_coco(c) and all(map(words_coco, r))]
    return list({tuple(sorted(references)): (c, references) for c, references in scorable}.values())


def records(given) -> list[Record]:
    return [Record(str(i), answer=c, references=tuple(r), judge="answer") for i, (c, r) in enumerate(given)]


def second_cider(given, clipped: bool = False, sigma: float = 6.0) -> list[float]:
    """Vedantam et al. 2015, equations (1)-(3), and section 6 for CIDEr-D; plain dictionaries, one loop per sum."""

    def counts(text: str, n: int) -> Counter:
        words = words_coco(text)
        return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))

    documents = Counter()
    for _, references in given:
        documents.update({gram for text in references for n in range(1, 5) for gram in counts(text, n)})

    def g(text: str, n: int) -> dict:
        """Equation (1), with raw term counts as in the authors' program."""
        return {
            gram: h * (math.log(len(given)) - math.log(max(1, documents[gram]))) for gram, h in counts(text, n).items()
        }

    def norm(vector: dict) -> float:
        return math.sqrt(sum(v * v for v in vector.values()))

    found = []
    for candidate, references in given:
        total = 0.0
        for n in range(1, 5):
            own = g(candidate, n)
            for text in references:
                other = g(text, n)
                if not norm(own) * norm(other):
                    continue
                weighed = {k: min(v, other.get(k, 0.0)) if clipped else v for k, v in own.items()}
                cosine = sum(v * other.get(k, 0.0) for k, v in weighed.items()) / (norm(own) * norm(other))
                apart = counts(candidate, 2).total() - counts(text, 2).total()
                total += cosine * (math.exp(-(apart**2) / (2 * sigma**2)) if clipped else 1.0) / len(references)
        found.append(10 * total / 4)
    return found


def test_cider_d_is_the_coco_script():
    given = distinct()
    assert len(given) >= 1000
    texts = {i: [" ".join(words_coco(text)) for text in references] for i, (_, references) in enumerate(given)}
    judged = {i: [" ".join(words_coco(candidate))] for i, (candidate, _) in enumerate(given)}
    mean, theirs = CocoCider().compute_score(texts, judged)
    ours = list(score(records(given), "cider-d")["cider-d"].values())
    assert ours == pytest.approx(theirs, abs=1e-6)
    assert sum(ours) / len(ours) == pytest.approx(mean, abs=1e-6)
    assert second_cider(given, clipped=True) == pytest.approx(theirs, abs=1e-6)  # so the second one can be trusted


def test_cider_is_the_papers():
    given = distinct()
    assert list(score(records(given), "cider")["cider"].values()) == pytest.approx(second_cider(given), abs=1e-6)


def test_several_systems_in_a_file_count_its_references_once():
    given = distinct()[:50]
    alone = score(records(given), "cider-d")["cider-d"]
    others = [Record(f"{i} b", answer="no", references=tuple(r), judge="answer") for i, (_, r) in enumerate(given)]
    together = score([*records(given), *others], "cider-d")["cider-d"]
    assert {name: together[name] for name in alone} == pytest.approx(alone)


def test_a_single_set_of_references_says_so():
    outcome = score(records([("a red house", ["the red house"])]), metric("cider")).outcomes[0]
    assert outcome.scores["cider"].value > 0
    assert "one set of references" in outcome.scores["cider"].evidence["note"]
