"""What the reader learns from: questions on stretches of text, and unanswerable ones made by negative sampling."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from elench.requests import Span
from elench.text.cloze import cloze_question
from elench.train.changes import changed
from elench.train.examples import Example, read_examples, read_jsonl, read_paragraphs
from elench.train.reader_scores import NEAR

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase as Tokenizer

SHARDS = 8
"""A round (the loop's epoch) is an eighth of the data."""
ROUNDS = {"embedded": 8, "large": 2}
"""Rounds during which texts grow longer."""
HELD_OUT = 6
"""Articles of the SQuAD file kept back for a sanity check."""
OTHERS = 3
"""Of the tales every third question is used: training is best spent on encyclopaedic and web text."""
NEGATIVES = {"elsewhere": 0.05, "article": 0.12, "window": 0.10, "changed": 0.16}
"""Unanswerable examples per answerable one, by how they are made."""
CLOZE = 0.2
"""Share of examples asked in the default asker's way: the answer's sentence with a question word in it, and up to half
of its words left out, since the text that is read will say it in other words."""


@dataclass(frozen=True)
class TokenisedExample:
    """A whole example as token ids, before cropping."""

    example: Example
    question: tuple[int, ...]
    text: tuple[int, ...]
    start: int
    end: int
    breaks: tuple[int, ...]
    """Token positions where sentences begin."""
    places: Sequence[Span]
    """Where each token stands in the text, in characters."""


@dataclass(frozen=True)
class Piece:
    """A question and a stretch of text as token ids; `start` and `end` are -1 if it holds no answer."""

    question: tuple[int, ...]
    text: tuple[int, ...]
    start: int
    end: int
    asked: str
    """The question in words."""
    source: TokenisedExample
    """Whose text it is from."""
    begin: int
    """Its first token there."""

    @property
    def window(self) -> tuple[str, list[Span]]:
        """The stretch in words, and where in it each token stands."""
        places = self.source.places[self.begin : self.begin + len(self.text)]
        first = places[0][0]
        return self.source.example.context[first : places[-1][1]], [(a - first, b - first) for a, b in places]


FILES = (
    "squad11_train.jsonl.gz",
    "squadshifts_new_wiki.jsonl.gz",
    "squadshifts_reddit.jsonl.gz",
    "squadshifts_amazon.jsonl.gz",
)


def corpora(data: Path, more: Sequence[Path] = ()) -> tuple[list[Example], list[Example]]:
    """What the reader may be trained on, and a small part kept back. `more`: files such as `augment` writes."""
    squad = read_paragraphs(data / FILES[0])
    kept = sorted({e.group for e in squad})[:HELD_OUT]
    shifts = [e for name in FILES[1:] for e in read_paragraphs(data / name)]
    tales = [e for e in read_jsonl(data / "fairytaleqa_train.jsonl", kind="explicit") if e.start >= 0]
    article = {e.context: e.group for e in sorted(squad, key=lambda e: e.group in kept)}
    given = [replace(e, group=article.get(e.context, e.group)) for file in more for e in read_examples(file)]
    asked = [e for e in [*squad, *shifts, *given] if e.start >= 0 and e.group not in kept]
    return asked + tales[::OTHERS], [e for e in squad if e.group in kept]


def tokenised(examples: list[Example], tokenizer: Tokenizer) -> list[TokenisedExample]:
    """Token ids and answer positions of examples; those whose answer does not fall on tokens are left out."""
    texts = list(dict.fromkeys(e.context for e in examples))
    coded = tokenizer(texts, add_special_tokens=False, return_offsets_mapping=True)
    known = {text: (coded["input_ids"][i], coded["offset_mapping"][i]) for i, text in enumerate(texts)}
    questions = tokenizer([e.question for e in examples], add_special_tokens=False)["input_ids"]
    stops = set(tokenizer.convert_tokens_to_ids([".", "!", "?"]))
    sources = []
    for example, question in zip(examples, questions, strict=True):
        ids, places = known[example.context]
        inside = [i for i, (a, b) in enumerate(places) if a < example.end and b > example.start]
        if not inside:
            continue
        breaks = (0, *(i + 1 for i, token in enumerate(ids) if token in stops))
        ends = inside[0], inside[-1]
        sources.append(TokenisedExample(example, tuple(question[:48]), tuple(ids), *ends, breaks, places))
    return sources


def crop(source: TokenisedExample, size: int, rng: np.random.Generator) -> Piece:
    """The example on a random window of about `size` tokens around its answer, begun at a sentence where possible."""
    n, length = len(source.text), source.end - source.start + 1
    size = max(size, length + 16)
    asked = source.example.question
    if n <= size:
        return Piece(source.question, source.text, source.start, source.end, asked, source, 0)
    margin = min(16, (size - length) // 2)
    left = int(rng.integers(margin, max(margin + 1, size - length - margin + 1)))
    begin = min(max(0, source.start - left), n - size)
    begin = max((b for b in source.breaks if begin - 20 <= b <= begin), default=begin)
    text = source.text[begin : max(begin + size, source.end + 1)]
    return Piece(source.question, text, source.start - begin, source.end - begin, asked, source, begin)


def stretch(source: TokenisedExample, size: int, rng: np.random.Generator) -> int:
    """Where any window of about `size` tokens of a text begins."""
    starts = [b for b in source.breaks if b <= len(source.text) - size] or [0]
    return starts[int(rng.integers(len(starts)))]


def contains(text: tuple[int, ...], part: tuple[int, ...]) -> bool:
    """Does this sequence of tokens occur in the text?"""
    return any(text[i : i + len(part)] == part for i in range(len(text) - len(part) + 1))


@dataclass(frozen=True)
class EpochSampler:
    """Gives each epoch its examples: cropped texts that grow longer, and freshly sampled negatives."""

    sources: list[TokenisedExample]
    tokenizer: Tokenizer
    negatives: bool = True
    rounds: int = ROUNDS["embedded"]
    """Rounds that begin with short texts; none for a reader that is further trained."""

    def sizes(self, epoch: int) -> tuple[int, int]:
        """Shortest and longest window of a round, in tokens."""
        grown = min(epoch / self.rounds, 1.0) if self.rounds else 1.0
        return round(40 + 60 * grown), round(84 + 140 * grown)

    def __call__(self, rng: np.random.Generator, epoch: int) -> list[Piece]:
        low, high = self.sizes(epoch)
        chosen = self.sources[epoch % SHARDS :: SHARDS]
        pieces = [self.asked(s, crop(s, int(rng.integers(low, high)), rng), rng) for s in chosen]
        if not self.negatives:
            return pieces
        groups: dict[str, list[TokenisedExample]] = defaultdict(list)
        for s in self.sources:
            groups[s.example.group].append(s)
        for kind, share in NEGATIVES.items():
            for i in rng.choice(len(chosen), round(share * len(chosen)), replace=False):
                piece = self.negative(kind, chosen[i], groups, int(rng.integers(low, high)), rng)
                if piece is not None:
                    pieces.append(piece if kind == "changed" else self.asked(chosen[i], piece, rng))
        return pieces

    def asked(self, source: TokenisedExample, piece: Piece, rng: np.random.Generator) -> Piece:
        """The piece as it is, or now and then with a cloze question."""
        if rng.random() >= CLOZE:
            return piece
        example, left_out = source.example, rng.uniform(0, 0.5)
        words = cloze_question(example.context, example.answers[0], example.start).split()
        kept = [word for word in words if rng.random() >= left_out] or words
        question = " ".join(kept)
        ids = self.tokenizer(question, add_special_tokens=False)["input_ids"][:64]
        return replace(piece, question=tuple(ids), asked=question)

    def negative(
        self, kind: str, source: TokenisedExample, groups: dict[str, list[TokenisedExample]], size: int,
        rng: np.random.Generator,
    ) -> Piece | None:  # fmt: skip
        """The source's question made unanswerable, or None if this one does not lend itself to it."""
        answer = source.text[source.start : source.end + 1]
        if kind == "changed":
            question = changed(source.example, rng)
            if question is None:
                return None
            ids = self.tokenizer(question, add_special_tokens=False)["input_ids"][:48]
            return replace(crop(source, size, rng), question=tuple(ids), start=-1, end=-1, asked=question)
        pool = {"elsewhere": self.sources, "article": groups[source.example.group], "window": [source]}[kind]
        others = [pool[int(i)] for i in rng.integers(len(pool), size=NEAR if kind == "article" else 1)]
        others = [o for o in others if kind == "window" or o.text != source.text]
        if not others:
            return None
        asked = set(source.question)
        other = max(others, key=lambda o: len(asked & set(o.text)))
        begin = stretch(other, size, rng)
        text = other.text[begin : begin + size]
        if contains(text, answer):
            return None
        return Piece(source.question, text, -1, -1, source.example.question, other, begin)
