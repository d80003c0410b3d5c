"""The asker: writes questions about a text whose answer is a given part of it.

By default the shipped trained asker plays the role: SmolLM2 with LoRA adapters. `--model asker=cloze` needs no model,
and its questions pass the round-trip check more often (see docs/results). Text-to-text models such as QuestEval's T5
can take the role, too (`--model asker=FOLDER or hub name`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from elench.models import cloze_asker
from elench.models.base import Identity, Model, ModelChoice
from elench.models.branches import Branches
from elench.models.checkpoints import checkpoint_identity, find, need
from elench.models.shipped import WEIGHTS, load_shipped, shipped_identity
from elench.models.tokens import Tokens
from elench.models.transformer import Loaded, load_transformer
from elench.requests import Ask
from elench.text.passages import passage_of, passages

if TYPE_CHECKING:
    from torch.nn import Module

TRAINED = "trained"
"""Names the shipped trained asker."""
LIMIT = 32
"""Most tokens of a question."""


def passage_ids(tokens: Tokens, passage: str) -> list[int]:
    """A passage as the asker reads it: the part that all its answers share."""
    return tokens.ids([" ".join(passage.split())])[0]


def wish_ids(tokens: Tokens, answer: str) -> list[int]:
    """The wanted answer, after the passage."""
    return tokens.ids([f"\nAnswer: {' '.join(answer.split())}\nQuestion:"])[0]


def target_ids(tokens: Tokens, question: str) -> list[int]:
    """A question as the asker writes it, with the token that ends it."""
    assert tokens.eos is not None
    return [*tokens.ids([f" {' '.join(question.split())}"])[0], tokens.eos]


class Writer(Protocol):
    """What writes: ONNX Runtime (elench.models.branches) or torch (elench.models.torch_networks)."""

    def write(
        self, texts: Sequence[Sequence[int]], wishes: Sequence[Sequence[Sequence[int]]], beams: int, limit: int
    ) -> list[list[list[list[int]]]]: ...


class PassageAsker(Model[Ask, tuple[str, ...]]):
    """Asks about the passage around the answer, which all answers in it share."""

    role: ClassVar[str] = "asker"
    rows = 160
    """Questions (times beams) that are written side by side."""
    texts = 16
    """Passages that are read side by side."""

    def __init__(self, writer: Writer, tokens: Tokens) -> None:
        self.writer, self.tokens = writer, tokens
        self._passages = lru_cache(maxsize=4096)(passages)

    def passage(self, request: Ask) -> str:
        """The part of the text that is read: whole sentences, about 120 words."""
        return passage_of(request.text, request.start, self._passages(request.text))

    def lengths(self, requests: Sequence[Ask]) -> list[int]:
        return [len(self.passage(r)) // 4 + LIMIT for r in requests]

    def batches(self, requests: Sequence[Ask]) -> list[list[int]]:
        """Answers of one passage together, up to this many rows and passages at a time."""
        found: dict[tuple[str, int], list[int]] = defaultdict(list)
        for i, request in enumerate(requests):
            found[self.passage(request), request.beams].append(i)
        groups: list[list[int]] = []
        room, texts, last = 0, 0, 0
        for (_, beams), members in sorted(found.items(), key=lambda item: (item[0][1], -len(item[0][0]), item[1])):
            most = max(1, self.rows // beams)
            for at in range(0, len(members), most):
                part = members[at : at + most]
                if beams != last or len(part) > room or not texts:
                    groups.append([])
                    room, texts, last = most, self.texts, beams
                groups[-1] += part
                room, texts = room - len(part), texts - 1
        return groups

    def answer(self, batch: Sequence[Ask]) -> list[tuple[str, ...]]:
        found: dict[tuple[int, str], list[int]] = defaultdict(list)
        for i, request in enumerate(batch):
            found[request.beams, self.passage(request)].append(i)
        answers: list[tuple[str, ...]] = [()] * len(batch)
        for beams in sorted({b for b, _ in found}):
            groups = [(text, members) for (b, text), members in found.items() if b == beams and text.strip()]
            if not groups:
                continue
            written = self.writer.write(
                [passage_ids(self.tokens, text) for text, _ in groups],
                [[wish_ids(self.tokens, batch[i].answer) for i in members] for _, members in groups],
                beams,
                LIMIT,
            )
            for (_, members), endings in zip(groups, written, strict=True):
                for i, variants in zip(members, endings, strict=True):
                    answers[i] = tidy(self.tokens.decode(ids) for ids in variants)
        return answers


class TextAsker(Model[Ask, tuple[str, ...]]):
    """Text-to-text askers such as QuestEval's T5: "sv1 </s> ANSWER </s> TEXT", at most 20 new tokens."""

    role: ClassVar[str] = "asker"
    window = 512
    words = 350
    """A longer text is cut to the passage of this many words around the answer, which might otherwise be cut off."""

    def __init__(self, loaded: Loaded) -> None:
        self.model, self.tokenizer = loaded.model, loaded.tokenizer

    def lengths(self, requests: Sequence[Ask]) -> list[int]:
        return [min(len(r.text) // 4 + 16, self.window) * r.beams for r in requests]

    def source(self, request: Ask) -> str:
        """What the model reads."""
        whole = request.whole or len(request.text.split()) <= self.words
        text = request.text if whole else passage_of(request.text, request.start, passages(request.text, self.words))
        return f"sv1 </s> {request.answer} </s> {text}"

    def answer(self, batch: Sequence[Ask]) -> list[tuple[str, ...]]:
        import torch

        answers: list[tuple[str, ...]] = [()] * len(batch)
        for beams in sorted({r.beams for r in batch}):
            members = [i for i, r in enumerate(batch) if r.beams == beams]
            inputs = self.tokenizer(
                [self.source(batch[i]) for i in members],
                truncation=True,
                max_length=self.window,
                padding=True,
                return_tensors="pt",
            ).to(self.model.device)
            inputs.pop("token_type_ids", None)
            with torch.inference_mode():
                out = self.model.generate(
                    **inputs, max_new_tokens=20, num_beams=beams, num_return_sequences=beams, do_sample=False
                )
            written = self.tokenizer.batch_decode(out, skip_special_tokens=True)
            for k, i in enumerate(members):
                mine = written[k * beams : (k + 1) * beams]
                answers[i] = tuple(mine) if batch[i].whole else tidy(mine)  # the published program asks what it writes
        return answers


def tidy(questions: Any) -> tuple[str, ...]:
    """Questions without blanks around them, each once, empty ones left out."""
    return tuple(dict.fromkeys(q for q in (" ".join(q.split()) for q in questions) if q))


def build(base: Path, settings: Mapping[str, Any]) -> Module:
    """The base language model in torch, with room for the adapters."""
    from elench.train.asker import new_asker

    return new_asker(base, settings)[0]


def resolve(choice: ModelChoice) -> Identity:
    """The asker a run asks for: the shipped trained one, cloze, one trained here (a folder), or text-to-text."""
    if choice.name == cloze_asker.NAME:
        return Identity("asker", cloze_asker.NAME, cloze_asker.sha256(), kind="cloze")
    if choice.name == TRAINED or (choice.name is None and choice.family != "paper"):
        return shipped_identity(choice)
    found = find(choice)
    if (found.folder / WEIGHTS).exists():
        return shipped_identity(choice, found.folder)
    return checkpoint_identity(choice, "text", found)


def load(identity: Identity) -> Model[Ask, tuple[str, ...]]:
    if identity.kind == "cloze":
        return cloze_asker.ClozeAsker()
    if identity.kind == "text":
        return TextAsker(load_transformer(identity, "AutoModelForSeq2SeqLM"))
    assert identity.base
    tokens = Tokens.from_folder(identity.base)
    assert tokens.eos is not None
    if identity.runtime == "onnx":
        from elench.models.llama_writer import writer

        return PassageAsker(Branches(writer(identity), tokens.eos), tokens)
    need("torch", "transformers", "safetensors")
    from elench.models.torch_networks import Generator
    from elench.train.lora import merge

    return PassageAsker(Generator(merge(load_shipped(identity, build)), tokens.eos), tokens)
