"""The sequence-to-sequence model: log-probabilities of a text given another, and what it writes itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from elench.models.base import Identity, Model, ModelChoice
from elench.models.checkpoints import checkpoint_identity
from elench.models.packing import pack
from elench.models.transformer import Loaded, load_transformer, padded, padding_id, token_budget, window
from elench.requests import Generate, Request, TokenScores, Translate


class Seq2Seq(Model[Translate | Generate, TokenScores | str]):
    """Any encoder-decoder checkpoint (BART, T5, PEGASUS and their like)."""

    role: ClassVar[str] = "seq2seq"

    def __init__(self, loaded: Loaded) -> None:
        self.model, self.tokenizer = loaded.model, loaded.tokenizer
        self.budget = token_budget(loaded, 2048)
        self.window = window(loaded, 1024)

    def lengths(self, requests: Sequence[Translate | Generate]) -> list[int]:
        texts = [f"{r.source} {r.target}" if isinstance(r, Translate) else r.source for r in requests]
        return [len(ids) for ids in self.tokenizer(texts, verbose=False)["input_ids"]]

    def batches(self, requests: Sequence[Translate | Generate]) -> list[list[int]]:
        """Texts to score and texts to write, by limit, in batches of their own."""
        kinds: dict[int, list[int]] = {}
        for i, request in enumerate(requests):
            kinds.setdefault(request.limit if isinstance(request, Generate) else 0, []).append(i)
        groups = []
        for own in kinds.values():
            lengths = self.lengths([requests[i] for i in own])
            groups += [[own[i] for i in group] for group in pack(lengths, self.budget)]
        return groups

    def answer(self, batch: Sequence[Translate | Generate]) -> list[TokenScores | str]:
        answers: dict[Request[object], TokenScores | str] = {}
        scored = [r for r in batch if isinstance(r, Translate)]
        if scored:
            answers.update(zip(scored, self._score(scored), strict=True))
        for limit in dict.fromkeys(r.limit for r in batch if isinstance(r, Generate)):
            written = [r for r in batch if isinstance(r, Generate) and r.limit == limit]
            answers.update(zip(written, self._write([r.source for r in written], limit), strict=True))
        return [answers[request] for request in batch]

    def _read(self, sources: Sequence[str]) -> tuple[dict[str, Any], list[int]]:
        """The sources as tensors; what does not fit the window is cut at the end and counted."""
        rows = self.tokenizer(list(sources), verbose=False)["input_ids"]
        cut = [max(0, len(row) - self.window) for row in rows]
        rows = [row if len(row) <= self.window else [*row[: self.window - 1], row[-1]] for row in rows]
        device = self.model.device
        mask = padded([[1] * len(row) for row in rows], 0, device)
        return {"input_ids": padded(rows, padding_id(self.tokenizer), device), "attention_mask": mask}, cut

    def _score(self, requests: list[Translate]) -> list[TokenScores]:
        """Teacher forcing; special tokens of the target count, as in BARTScore. A source is encoded once."""
        import torch

        sources = list(dict.fromkeys(r.source for r in requests))
        inputs, cut = self._read(sources)
        coded = self.tokenizer(text_target=[r.target for r in requests], return_offsets_mapping=True, verbose=False)
        targets = coded["input_ids"]
        # parts of a long target follow one another in windows of their own
        starts = [range(0, max(1, len(t)), self.window) for t in targets]
        jobs = [(i, targets[i][a : a + self.window]) for i, own in enumerate(starts) for a in own]
        found: list[list[float]] = [[] for _ in requests]
        with torch.inference_mode():
            encoded = self.model.get_encoder()(**inputs).last_hidden_state
            rows = torch.tensor([sources.index(requests[i].source) for i, _ in jobs], device=encoded.device)
            ids = padded([part for _, part in jobs], padding_id(self.tokenizer), encoded.device)
            begin = torch.full((len(jobs), 1), int(self.model.config.decoder_start_token_id), device=encoded.device)
            logits = self.model(
                encoder_outputs=(encoded[rows],),
                attention_mask=inputs["attention_mask"][rows],
                decoder_input_ids=torch.cat([begin, ids[:, :-1]], 1),
                use_cache=False,
            ).logits
            for (i, part), row, own in zip(jobs, logits, ids, strict=True):
                mine = row[: len(part)].float()
                found[i] += (mine.gather(1, own[: len(part), None])[:, 0] - mine.logsumexp(1)).tolist()
        return [
            TokenScores(
                tuple(self.tokenizer.convert_ids_to_tokens(targets[i])),
                tuple((int(a), int(b)) for a, b in coded["offset_mapping"][i]),
                tuple(found[i]),
                len(starts[i]),
                cut[sources.index(request.source)],
            )
            for i, request in enumerate(requests)
        ]

    def _write(self, sources: list[str], limit: int) -> list[str]:
        import torch

        inputs, _ = self._read(sources)
        with torch.inference_mode():
            out = self.model.generate(**inputs, max_new_tokens=limit, do_sample=False, num_beams=1)
        return [text.strip() for text in self.tokenizer.batch_decode(out, skip_special_tokens=True)]


def resolve(choice: ModelChoice) -> Identity:
    """The sequence-to-sequence model a run asks for."""
    return checkpoint_identity(choice)


def load(identity: Identity) -> Model[Translate | Generate, TokenScores | str]:
    return Seq2Seq(load_transformer(identity, "AutoModelForSeq2SeqLM"))
