"""Which words of an answer carry the answer: a token classifier over (question, answer) pairs (KPQA §3.1).

The shipped model is MiniLM with a two-class head. Beside its pieces it is told three plain facts of each answer word,
as vectors added to the word embeddings: does the word stand in the question, is it a stop word, is it a number. Any
BERT-like token classifier in a folder (`--model keyphrases=FOLDER`) works too, without these facts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from quaestor.models.base import Model, ModelChoice
from quaestor.models.checkpoints import find, need
from quaestor.models.shipped import WEIGHTS, load_shipped
from quaestor.models.transformer import load_transformer
from quaestor.requests import Request, Span, Weigh, WordWeights
from quaestor.text.roots import is_number, is_stop_word, root, words_of

if TYPE_CHECKING:
    import torch

WINDOW = 256
"""Pieces in one pass: the length the paper trains at."""
FACTS = 9
"""0: not a word of the answer; else 1 + in the question + 2 × stop word + 4 × number."""


def facts_of(question: str, words: Sequence[str]) -> list[int]:
    """The plain facts of each word of an answer, as one number each."""
    asked = {root(word) for word, _ in words_of(question)}
    return [1 + (root(w) in asked) + 2 * is_stop_word(w) + 4 * is_number(w) for w in words]


def build_network(encoder: Any) -> torch.nn.Module:
    """The untrained keyphrase model on an encoder: facts added to the word embeddings, two classes on top."""
    import torch

    class Keyphrases(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            width = encoder.config.hidden_size
            self.encoder = encoder
            self.facts = torch.nn.Embedding(FACTS, width, padding_idx=0)
            self.head = torch.nn.Linear(width, 2)
            torch.nn.init.zeros_(self.facts.weight)

        def forward(
            self,
            input_ids: torch.Tensor,
            token_type_ids: torch.Tensor,
            attention_mask: torch.Tensor,
            facts: torch.Tensor,
        ) -> torch.Tensor:
            vectors = self.encoder.embeddings.word_embeddings(input_ids) + self.facts(facts)
            states = self.encoder(
                inputs_embeds=vectors, token_type_ids=token_type_ids, attention_mask=attention_mask
            ).last_hidden_state
            logits: torch.Tensor = self.head(states)
            return logits

    return Keyphrases()


def wrap_classifier(classifier: Any) -> torch.nn.Module:
    """A plain BERT token classifier; as in the authors' checkpoint, its first class is "key"."""
    import torch

    class Plain(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.classifier = classifier

        def forward(self, facts: torch.Tensor, **inputs: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = self.classifier(**inputs).logits[..., :2]
            return logits.flip(-1)

    return Plain().eval()


def from_base(base: Path, settings: Mapping[str, Any]) -> torch.nn.Module:
    """The keyphrase network on the base encoder in a folder."""
    from transformers import AutoModel, logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    return build_network(AutoModel.from_pretrained(base, add_pooling_layer=False, attention_probs_dropout_prob=0.0))


@dataclass(frozen=True)
class Row:
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

    def rows(self, window: int = WINDOW) -> list[Row]:
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
        return [Row(q, self.answer[a:b], self.facts[a:b], a) for q in asked for a, b in zip(starts, ends, strict=True)]


def lay_out(pairs: Sequence[tuple[str, str]], tokenizer: Any) -> list[Sheet]:
    """Pieces, words and facts of (question, answer) pairs."""
    questions = tokenizer([q for q, _ in pairs], add_special_tokens=False)["input_ids"]
    coded = tokenizer([a for _, a in pairs], add_special_tokens=False, return_offsets_mapping=True)
    sheets = []
    for n, (question, answer) in enumerate(pairs):
        found = words_of(answer)
        words = tuple(word for word, _ in found)
        spans = tuple(span for _, span in found)
        facts = facts_of(question, words)
        owners, at = [], 0
        for start, end in coded["offset_mapping"][n]:
            while at < len(spans) and spans[at][1] <= start:
                at += 1
            owners.append(at if at < len(spans) and spans[at][0] < end else -1)
        ids = coded["input_ids"][n]
        sheets.append(
            Sheet(
                tuple(questions[n]),
                tuple(ids),
                tuple(tokenizer.convert_ids_to_tokens(ids)),
                words,
                spans,
                tuple(owners),
                tuple(facts[o] if o >= 0 else 0 for o in owners),
            )
        )
    return sheets


def collate(rows: Sequence[Row], cls: int, sep: int, form: str = "paper") -> dict[str, torch.Tensor]:
    """Padded tensors: [CLS] question [SEP] answer [SEP]; the published code gives [CLS] token type 1."""
    import torch

    width = max(map(len, rows))
    made = {
        name: torch.zeros((len(rows), width), dtype=torch.long)
        for name in ("input_ids", "token_type_ids", "attention_mask", "facts")
    }
    for i, row in enumerate(rows):
        begin = row.begin(form)
        stop = begin + len(row.answer)
        asked = [*row.question, sep] if begin > 1 else []
        made["input_ids"][i, : stop + 1] = torch.tensor([cls, *asked, *row.answer, sep])
        made["attention_mask"][i, : stop + 1] = 1
        made["facts"][i, begin:stop] = torch.tensor(row.facts, dtype=torch.long)
        if begin > 1:
            made["token_type_ids"][i, begin : stop + 1] = 1
            made["token_type_ids"][i, 0] = int(form == "code")
    return made


class KeyphraseModel(Model):
    """Answers `Weigh`: for each word of an answer, the probability that it belongs to the keyphrase."""

    role: ClassVar[str] = "keyphrases"
    budget = 1024  # a third faster than 4096 on a processor: a batch's states stay in its cache

    def __init__(self, network: Any, tokenizer: Any, name: str, sha256: str, window: int = WINDOW) -> None:
        self.network, self.tokenizer, self.name, self.sha256 = network, tokenizer, name, sha256
        self.window = window

    def lengths(self, requests: Sequence[Request[Any]]) -> list[int]:
        return [(len(r.question) + len(r.answer)) // 4 + 4 for r in requests if isinstance(r, Weigh)]

    def answer(self, batch: Sequence[Request[Any]]) -> list[WordWeights]:
        answers: dict[int, WordWeights] = {}
        wanted = [(i, r) for i, r in enumerate(batch) if isinstance(r, Weigh)]
        for form in dict.fromkeys(r.form for _, r in wanted):
            chosen = [(i, r) for i, r in wanted if r.form == form]
            answers.update(
                zip((i for i, _ in chosen), self.weigh([(r.question, r.answer) for _, r in chosen], form), strict=True)
            )
        return [answers[i] for i in range(len(batch))]

    def weigh(self, pairs: Sequence[tuple[str, str]], form: str = "paper") -> list[WordWeights]:
        """Weights of several (question, answer) pairs in as few passes as their lengths allow."""
        import numpy as np
        import torch

        sheets = lay_out(pairs, self.tokenizer)
        jobs = [(n, row) for n, sheet in enumerate(sheets) for row in sheet.rows(self.window)]
        jobs.sort(key=lambda job: len(job[1]))
        sums = [np.zeros((2, len(sheet.answer))) for sheet in sheets]
        while jobs:
            longest = len(jobs[-1][1])
            size = max(1, self.budget // longest)
            part, jobs = jobs[-size:], jobs[:-size]
            inputs = collate([r for _, r in part], self.tokenizer.cls_token_id, self.tokenizer.sep_token_id, form)
            device = next(self.network.parameters()).device
            with torch.inference_mode():
                logits = self.network(**{k: v.to(device) for k, v in inputs.items()})
                chances = torch.softmax(logits.float(), -1)[..., 1].cpu().numpy()
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


def load_folder(
    folder: Path | None = None, base: Path | None = None, pull: bool = False, device: str | None = None
) -> KeyphraseModel:
    """A keyphrase model that quaestor trained: the shipped one, or that of a folder."""
    from transformers import AutoTokenizer

    network, home, sha256 = load_shipped("keyphrases", from_base, base=base, folder=folder, pull=pull)
    name = folder.name if folder else "shipped-keyphrases"
    return KeyphraseModel(network.to(device or "cpu"), AutoTokenizer.from_pretrained(home), name, sha256)


def load(choice: ModelChoice) -> KeyphraseModel:
    """The shipped keyphrase model, or the one the choice names: trained by quaestor, or any BERT token classifier."""
    need("torch", "transformers", "safetensors")
    if choice.name is None:
        return load_folder(pull=choice.pull, device=choice.device)
    found = find(choice)
    if (found.folder / WEIGHTS).exists():
        return load_folder(found.folder, pull=choice.pull, device=choice.device)
    loaded = load_transformer(choice, "AutoModelForTokenClassification")
    window = min(WINDOW, loaded.model.config.max_position_embeddings)
    return KeyphraseModel(wrap_classifier(loaded.model), loaded.tokenizer, loaded.name, loaded.sha256, window)
