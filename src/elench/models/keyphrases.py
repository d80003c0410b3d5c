"""Which words of an answer carry the answer: a token classifier over (question, answer) pairs (KPQA §3.1).

The shipped model is MiniLM with a two-class head. It also receives three plain facts about each answer word,
as vectors added to the word embeddings: does the word occur in the question, is it a stop word, is it a number. Any
BERT-like token classifier in a folder (`--model keyphrases=FOLDER`) works too, without these facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from elench.models.base import Identity, Model, ModelChoice
from elench.models.checkpoints import checkpoint_identity, find
from elench.models.shipped import WEIGHTS, shipped_identity
from elench.models.tokens import Ints, Tokens, padded
from elench.models.transformer import load_stored, load_transformer
from elench.requests import Floats, Span, Weigh, WordWeights
from elench.text.roots import is_number, is_stop_word, root, words_of

WINDOW = 256
"""Pieces in one pass: the length the paper trains at."""


def facts_of(question: str, words: Sequence[str]) -> list[int]:
    """The plain facts of each word of an answer: 1 + in the question + 2 × stop word + 4 × number (0: not a word)."""
    asked = {root(word) for word, _ in words_of(question)}
    return [1 + (root(w) in asked) + 2 * is_stop_word(w) + 4 * is_number(w) for w in words]


@dataclass(frozen=True)
class InputWindow:
    """One pass through the network: a part of the question, a part of the answer."""

    question: tuple[int, ...]
    answer: tuple[int, ...]
    facts: tuple[int, ...]
    first: int = 0
    """Where this part of the answer begins, in pieces."""

    def begin(self, form: str) -> int:
        """Where the answer begins in the pass; the published code leaves out an empty question's [SEP]."""
        return 1 if form == "code" and not self.question else len(self.question) + 2

    def __len__(self) -> int:
        return len(self.question) + len(self.answer) + 3


@dataclass(frozen=True)
class Sheet:
    """A question and an answer as pieces, with the word each answer piece belongs to (-1: none)."""

    question: tuple[int, ...]
    answer: tuple[int, ...]
    pieces: tuple[str, ...]
    words: tuple[str, ...]
    spans: tuple[Span, ...]
    owners: tuple[int, ...]
    facts: tuple[int, ...]
    """Per piece."""

    def rows(self, window: int = WINDOW) -> list[InputWindow]:
        """The passes needed: both texts are split where they do not fit, between words, never cut."""
        room = window - 3
        asked = [self.question[i : i + room // 2] for i in range(0, len(self.question), room // 2)] or [()]
        space = room - len(asked[0])
        starts = [0]
        while len(self.answer) - starts[-1] > space:
            cut = starts[-1] + space
            while cut > starts[-1] + 1 and self.owners[cut] >= 0 and self.owners[cut] == self.owners[cut - 1]:
                cut -= 1
            starts.append(cut)
        ends = [*starts[1:], len(self.answer)]
        return [
            InputWindow(q, self.answer[a:b], self.facts[a:b], a)
            for q in asked
            for a, b in zip(starts, ends, strict=True)
        ]


def lay_out(pairs: Sequence[tuple[str, str]], tokens: Tokens) -> list[Sheet]:
    """Pieces, words and facts of (question, answer) pairs."""
    questions = tokens.ids([q for q, _ in pairs])
    coded = tokens.pieces([a for _, a in pairs])
    sheets = []
    for n, (question, answer) in enumerate(pairs):
        found = words_of(answer)
        words = tuple(word for word, _ in found)
        spans = tuple(span for _, span in found)
        facts = facts_of(question, words)
        owners, at = [], 0
        for start, end in coded[n][1]:
            while at < len(spans) and spans[at][1] <= start:
                at += 1
            owners.append(at if at < len(spans) and spans[at][0] < end else -1)
        ids = coded[n][0]
        sheets.append(
            Sheet(
                tuple(questions[n]),
                tuple(ids),
                tuple(tokens.names(ids)),
                words,
                spans,
                tuple(owners),
                tuple(facts[o] if o >= 0 else 0 for o in owners),
            )
        )
    return sheets


@dataclass(frozen=True)
class Batch:
    """Rows as the network reads them: [CLS] question [SEP] answer [SEP]."""

    rows: list[list[int]]
    types: Ints
    facts: Ints


def collate(rows: Sequence[InputWindow], cls: int, sep: int, form: str = "paper") -> Batch:
    """Token ids, types and facts of a batch; the published code gives [CLS] token type 1."""
    ids, types, facts = [], [], []
    for row in rows:
        begin = row.begin(form)
        asked = [*row.question, sep] if begin > 1 else []
        ids.append([cls, *asked, *row.answer, sep])
        first = int(form == "code" and begin > 1)
        types.append([first, *[0] * len(asked), *[int(begin > 1)] * (len(row.answer) + 1)])
        facts.append([*[0] * begin, *row.facts, 0])
    return Batch(ids, padded(types), padded(facts))


class Network(Protocol):
    """What gives two logits per token: ONNX Runtime or torch."""

    def keyphrase_logits(self, rows: Sequence[Sequence[int]], types: Ints, facts: Ints) -> Floats: ...


class KeyphraseModel(Model[Weigh, WordWeights]):
    """Answers `Weigh`: for each word of an answer, the probability that it belongs to the keyphrase."""

    role: ClassVar[str] = "keyphrases"
    budget = 1024  # a third faster than 4096 on a processor: a batch's states stay in its cache

    def __init__(self, network: Network, tokens: Tokens, window: int = WINDOW) -> None:
        self.network, self.tokens, self.window = network, tokens, window

    def lengths(self, requests: Sequence[Weigh]) -> list[int]:
        questions = self.tokens.ids([r.question for r in requests])
        answers = self.tokens.pieces([r.answer for r in requests])
        return [len(question) + len(answer) + 3 for question, (answer, _) in zip(questions, answers, strict=True)]

    def answer(self, batch: Sequence[Weigh]) -> list[WordWeights]:
        answers: dict[int, WordWeights] = {}
        for form in dict.fromkeys(r.form for r in batch):
            chosen = [(i, r) for i, r in enumerate(batch) if r.form == form]
            answers.update(
                zip((i for i, _ in chosen), self.weigh([(r.question, r.answer) for _, r in chosen], form), strict=True)
            )
        return [answers[i] for i in range(len(batch))]

    def weigh(self, pairs: Sequence[tuple[str, str]], form: str = "paper") -> list[WordWeights]:
        """Weights of several (question, answer) pairs in as few passes as their lengths allow."""
        sheets = lay_out(pairs, self.tokens)
        jobs = [(n, row) for n, sheet in enumerate(sheets) for row in sheet.rows(self.window)]
        jobs.sort(key=lambda job: len(job[1]))
        sums = [np.zeros((2, len(sheet.answer))) for sheet in sheets]
        while jobs:
            longest = len(jobs[-1][1])
            size = max(1, self.budget // longest)
            part, jobs = jobs[-size:], jobs[:-size]
            made = collate([r for _, r in part], self.tokens.cls or 0, self.tokens.sep or 0, form)
            logits = self.network.keyphrase_logits(made.rows, made.types, made.facts)
            chances = 1.0 / (1.0 + np.exp(logits[..., 0] - logits[..., 1]))
            for (n, row), line in zip(part, chances, strict=True):
                begin, place = row.begin(form), slice(row.first, row.first + len(row.answer))
                sums[n][0, place] += line[begin : begin + len(row.answer)]
                sums[n][1, place] += 1
        return [_of_words(sheet, total[0] / np.maximum(total[1], 1)) for sheet, total in zip(sheets, sums, strict=True)]


def _of_words(sheet: Sheet, chances: Any) -> WordWeights:
    """A word's weight is the mean of its pieces."""
    members: list[list[float]] = [[] for _ in sheet.words]
    for owner, chance in zip(sheet.owners, chances, strict=True):
        if owner >= 0:
            members[owner].append(float(chance))
    weights = tuple(sum(m) / len(m) if m else 0.0 for m in members)
    return WordWeights(sheet.words, sheet.spans, weights, sheet.pieces, tuple(float(c) for c in chances))


def resolve(choice: ModelChoice) -> Identity:
    """The shipped keyphrase model, or the one the choice names: trained by elench, or any BERT token classifier."""
    if choice.name is None:
        return shipped_identity(choice)
    found = find(choice)
    return shipped_identity(choice, found.folder) if (found.folder / WEIGHTS).exists() else checkpoint_identity(choice)


def load(identity: Identity) -> KeyphraseModel:
    if identity.runtime == "onnx":
        from elench.models.bert import bert

        assert identity.base
        return KeyphraseModel(bert(identity), Tokens.from_folder(identity.base))
    from elench.models.torch_networks import TokenClassifier, TrainedKeyphrases, build_keyphrases

    if identity.kind == "shipped":
        stored = load_stored(identity, build_keyphrases)
        return KeyphraseModel(TrainedKeyphrases(stored.model), Tokens.from_transformers(stored.tokenizer))
    loaded = load_transformer(identity, "AutoModelForTokenClassification")
    window = min(WINDOW, loaded.model.config.max_position_embeddings)
    tokens = Tokens.from_transformers(loaded.tokenizer)
    tokens.typed = getattr(loaded.model.config, "type_vocab_size", 0) > 1
    return KeyphraseModel(TokenClassifier(loaded.model, tokens), tokens, window)
