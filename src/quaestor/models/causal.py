"""The causal language model: log-probabilities of a text after another, common beginnings read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from quaestor.errors import UsageError
from quaestor.models.base import Model, ModelChoice
from quaestor.models.packing import pack
from quaestor.models.sharing import lay_out, place, share, visibility
from quaestor.models.transformer import Loaded, load_transformer, padded, padding_id, pieces, token_budget, window
from quaestor.requests import Continue, Request, Span, TokenScores

WINDOW = 2048
"""Tokens read at once, however long the model's own window: memory stays bounded on texts of any length."""
ROW = 1024
"""Tokens of a row that several sequences share."""
SLICE = 256
"""Positions whose log-probabilities over the whole vocabulary are held at once."""


@dataclass(frozen=True)
class Text:
    """A request in tokens: what is read, in one or more parts, and which tokens of each part are scored."""

    parts: tuple[tuple[tuple[int, ...], int], ...]
    """(tokens, index of the first scored one); the scored ones of all parts are the target."""
    target: tuple[int, ...]
    spans: tuple[Span, ...]
    cut: int


class Causal(Model):
    """Any decoder-only checkpoint (GPT-2, Llama and their like)."""

    role: ClassVar[str] = "causal"

    def __init__(self, loaded: Loaded) -> None:
        self.model, self.tokenizer = loaded.model, loaded.tokenizer
        self.name, self.sha256 = loaded.name, loaded.sha256
        self.budget = token_budget(loaded, 2048)
        self.window = window(loaded, WINDOW)
        first = self.tokenizer.bos_token_id
        self.first = self.tokenizer.eos_token_id if first is None else first
        self.last = self.tokenizer.eos_token_id
        if self.first is None or self.last is None:
            raise UsageError(f"causal model {self.name} has neither a beginning- nor an end-of-text token")
        self.head = self._head()

    def lengths(self, requests: Sequence[Request[Any]]) -> list[int]:
        return [sum(len(ids) for ids, _ in text.parts) for text in self._texts(requests)]

    def batches(self, requests: Sequence[Request[Any]]) -> list[list[int]]:
        """Requests that begin alike stay together; rows of like length share a batch."""
        texts = self._texts(requests)
        groups = [[i] for i, text in enumerate(texts) if len(text.parts) > 1]
        short = [i for i, text in enumerate(texts) if len(text.parts) == 1]
        rows = share([texts[i].parts[0][0] for i in short], ROW)
        for packed in pack([row.length for row in rows], self.budget):
            groups.append([short[member] for r in packed for member in rows[r].members])
        return groups

    def answer(self, batch: Sequence[Request[Any]]) -> list[TokenScores]:
        texts = self._texts(batch)
        paths = [part for text in texts for part in text.parts]
        scores = iter(self._score(paths))
        answers = []
        for text in texts:
            logprobs = [value for _ in text.parts for value in next(scores)]
            names = tuple(self.tokenizer.convert_ids_to_tokens(list(text.target)))
            answers.append(TokenScores(names, text.spans, tuple(logprobs), len(text.parts), text.cut))
        return answers

    def _texts(self, requests: Sequence[Request[Any]]) -> list[Text]:
        asked = [r for r in requests if isinstance(r, Continue)]
        distinct = list(dict.fromkeys(text for r in asked for text in (r.prefix, r.target)))
        coded = dict(zip(distinct, pieces(self.tokenizer, distinct), strict=True))
        return [self._text(coded[r.prefix][0], *coded[r.target], r.end) for r in asked]

    def _text(self, prefix: list[int], target: list[int], spans: list[Span], end: bool) -> Text:
        """A long target is scored in parts, each after the prefix and the half window of target before it."""
        ids = (*target, self.last) if end else tuple(target)
        places = (*spans, *(((0, 0),) if end else ()))
        keep = max(self.window // 2, self.window - len(ids)) - 1
        cut = max(0, len(prefix) - keep)
        head = (self.first, *prefix[cut:])
        room = self.window - len(head)
        parts = [((*head, *ids[:room]), len(head))]
        step = max(1, room // 2)
        for a in range(room, len(ids), step):
            seen = ids[a - (room - step) : a]
            parts.append(((*head, *seen, *ids[a : a + step]), len(head) + len(seen)))
        return Text(tuple(parts), ids, places, cut)

    def _score(self, paths: list[tuple[tuple[int, ...], int]]) -> list[list[float]]:
        """Log-probabilities of the scored tokens of each path, in passes of at most `budget` tokens."""
        sequences = [ids for ids, _ in paths]
        rows = share(sequences, ROW)
        found: list[list[float]] = [[] for _ in paths]
        for group in pack([row.length for row in rows], max(self.budget, self.window)):
            chosen = [rows[r] for r in group]
            layouts = [lay_out(row, sequences) for row in chosen]
            wanted: list[tuple[int, int]] = []
            tokens: list[int] = []
            owners: list[int] = []
            for r, (row, layout) in enumerate(zip(chosen, layouts, strict=True)):
                for m, member in enumerate(row.members):
                    ids, first = paths[member]
                    wanted += [(r, place(layout, row, m, p - 1)) for p in range(first, len(ids))]
                    tokens += ids[first:]
                    owners += [member] * (len(ids) - first)
            if wanted:
                alone = all(len(row.members) == 1 for row in chosen)
                for owner, value in zip(owners, self._logprobs(layouts, alone, wanted, tokens), strict=True):
                    found[owner].append(value)
        return found

    def _logprobs(
        self, layouts: list[Any], alone: bool, wanted: list[tuple[int, int]], tokens: list[int]
    ) -> list[float]:
        """Log-probability of each token after the position before it; log-softmax at those positions only."""
        import torch

        device = self.model.device
        with torch.inference_mode():
            inputs: dict[str, Any] = {"input_ids": padded([x.ids for x in layouts], padding_id(self.tokenizer), device)}
            if not alone:
                positions, mask = visibility(layouts, self.model.dtype, device)
                inputs |= {"position_ids": positions, "attention_mask": mask}
            rows, places = (torch.tensor(side, device=device) for side in zip(*wanted, strict=True))
            right = torch.tensor(tokens, device=device)
            if self.head is None:
                states = self.model(**inputs, use_cache=False).logits[rows, places]
            else:
                states = self.model.base_model(**inputs, use_cache=False).last_hidden_state[rows, places]
            values: list[float] = []
            for a in range(0, len(tokens), SLICE):
                part = states[a : a + SLICE]
                logits = (part if self.head is None else self.head(part)).float()
                best = logits.gather(1, right[a : a + SLICE, None])[:, 0]
                values += (best - logits.logsumexp(1)).tolist()
        return values

    def _head(self) -> Any:
        """The output layer, if it alone stands between the last hidden state and the logits; else None."""
        import torch

        head = self.model.get_output_embeddings()
        with torch.inference_mode():
            ids = torch.tensor([[self.first, self.last, self.first]], device=self.model.device)
            whole = self.model(ids, use_cache=False).logits
            own = head(self.model.base_model(ids, use_cache=False).last_hidden_state) if head is not None else None
        return head if own is not None and torch.equal(own, whole) else None


def load(choice: ModelChoice) -> Model:
    """The causal language model a run asks for."""
    return Causal(load_transformer(choice, "AutoModelForCausalLM"))
