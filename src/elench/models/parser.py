"""The parser: a spaCy pipeline's sentences, words, entities, noun phrases and dependency edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from elench.errors import UsageError
from elench.models.base import Identity, Model, ModelChoice
from elench.models.checkpoints import find, need
from elench.requests import Parse, Parsed, Word


class Parser(Model[Parse, Parsed]):
    """Any spaCy pipeline with a tagger, a parser and an entity recogniser."""

    role: ClassVar[str] = "parser"
    budget = 50_000

    def __init__(self, pipeline: Any) -> None:
        self.pipeline = pipeline

    def lengths(self, requests: Sequence[Parse]) -> list[int]:
        return [len(r.text) // 4 + 1 for r in requests]

    def answer(self, batch: Sequence[Parse]) -> list[Parsed]:
        texts = [r.text for r in batch]
        return [_parsed(doc) for doc in self.pipeline.pipe(texts, batch_size=64)]


def _parsed(doc: Any) -> Parsed:
    words = tuple(
        Word(
            text=t.text,
            lemma=t.lemma_,
            pos=t.pos_,
            tag=t.tag_,
            relation=t.dep_,
            head=t.head.i,
            entity=t.ent_type_,
            span=(t.idx, t.idx + len(t)),
            stop=t.is_stop,
        )
        for t in doc
    )
    sentences = tuple((s.start, s.end) for s in doc.sents) if len(doc) else ()
    phrases = tuple((p.start, p.end) for p in doc.noun_chunks) if len(doc) else ()
    return Parsed(words, sentences, tuple((e.start, e.end, e.label_) for e in doc.ents), phrases)


def resolve(choice: ModelChoice) -> Identity:
    """The parser a run asks for: a spaCy pipeline's folder."""
    found = find(choice)
    return Identity("parser", found.name, found.sha256, "spacy", folder=found.folder, asked=choice.name)


def load(identity: Identity) -> Model[Parse, Parsed]:
    need("spacy")
    import spacy

    try:
        pipeline = spacy.load(identity.folder)
    except (OSError, ValueError) as error:
        raise UsageError(f"parser {identity.name}: not a spaCy pipeline: {str(error).splitlines()[0]}") from None
    pipeline.max_length = 20_000_000
    return Parser(pipeline)
