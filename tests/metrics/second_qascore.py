"""QAScore a second time: one item, one pass per mask, as the equations (and the published program) read."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer


class SecondQAScore:
    """`masked` for the paper's and the code's form, `causal` for the causal form."""

    def __init__(self, masked: Path | None = None, causal: Path | None = None) -> None:
        if masked:
            self.model, self.tokens = (
                AutoModelForMaskedLM.from_pretrained(masked, dtype=torch.float32).eval(),
                AutoTokenizer.from_pretrained(masked),
            )
        if causal:
            self.gpt, self.gpt_tokens = (
                AutoModelForCausalLM.from_pretrained(causal, dtype=torch.float32).eval(),
                AutoTokenizer.from_pretrained(causal),
            )

    def ids(self, text):
        return self.tokens(text, add_special_tokens=False)["input_ids"]

    @torch.no_grad()
    def at(self, ids):
        return self.model(torch.tensor([ids])).logits[0].log_softmax(-1)

    def paper(self, context, question, answer):
        """Log-probability of each whole word of the answer."""
        sep = self.tokens.sep_token_id
        head = self.tokens.bos_token_id if self.tokens.bos_token_id is not None else self.tokens.cls_token_id
        before = [head, *self.ids(f" {context.strip()}"), sep, *self.ids(f" {question.strip()}"), sep]
        coded = self.tokens(f" {answer}", add_special_tokens=False, return_offsets_mapping=True)
        words = []
        for match in re.finditer(r"\S+", f" {answer}"):
            members = [k for k, (a, b) in enumerate(coded["offset_mapping"]) if a < match.end() and b > match.start()]
            if not members:
                continue
            ids = [*before, *coded["input_ids"], sep]
            truth = [ids[len(before) + k] for k in members]
            for k in members:
                ids[len(before) + k] = self.tokens.mask_token_id
            logits = self.at(ids)
            words.append(sum(float(logits[len(before) + k, t]) for k, t in zip(members, truth, strict=True)))
        return words

    def code(self, context, question, answer, limit=512):
        """Per piece of the answer: the mean log-probability over all positions."""
        sep = self.tokens.sep_token_id
        own = self.ids(answer)
        ids = [*self.ids(context), sep, *self.ids(question), sep, *own][-limit:]
        means = []
        for k in range(len(ids) - len(own), len(ids)):
            masked = [*ids[:k], self.tokens.mask_token_id, *ids[k + 1 :]]
            logits = self.at(masked)
            means.append(sum(float(logits[i, t]) for i, t in enumerate(ids)) / len(ids))
        return sum(means) / len(means)

    @torch.no_grad()
    def _continue(self, prefix, target):
        coded = [self.gpt_tokens(t, add_special_tokens=False)["input_ids"] for t in (prefix, target)]
        ids = [self.gpt_tokens.bos_token_id, *coded[0], *coded[1]]
        logits = self.gpt(torch.tensor([ids])).logits[0].log_softmax(-1)
        start = 1 + len(coded[0])
        return sum(float(logits[start + k - 1, t]) for k, t in enumerate(coded[1]))

    def causal(self, context, question, answer):
        return self._continue(f"{context}\n\nQuestion: {question}\nAnswer:", f" {answer}")
