"""QRelScore a second time: straight from the paper's equations, one item at a time, no batching, nothing shared."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer


class SecondQRelScore:
    """Reads like section 2 of the paper; form="code" reads like the published program."""

    def __init__(self, encoder: Path, causal: Path) -> None:
        self.bert = AutoModel.from_pretrained(encoder, attn_implementation="eager").eval()
        self.bert_tokens = AutoTokenizer.from_pretrained(encoder)
        self.gpt = AutoModelForCausalLM.from_pretrained(causal, dtype=torch.float32).eval()
        self.gpt_tokens = AutoTokenizer.from_pretrained(causal)

    @torch.no_grad()
    def lrm(self, question, context, form="paper", attention="peak", aggregate="max", layers="all", p=1.0):
        coded = self.bert_tokens(question, context, return_tensors="pt")
        sides = coded.sequence_ids(0)
        x = [i for i, side in enumerate(sides) if side == 0]
        c = [i for i, side in enumerate(sides) if side == 1]
        if form == "code":
            x, c, attention, aggregate = x[:-1], c[:-1], "hard", "max"
        out = self.bert(**coded, output_attentions=True, output_hidden_states=True)
        precisions = []
        for level in range(len(out.attentions)):
            heads, states = out.attentions[level][0], out.hidden_states[level + 1][0]
            matrix = np.zeros((len(x), len(c)))
            for m, i in enumerate(x):
                row = [float(heads[:, i, j].max()) for j in c]
                for n, j in enumerate(c):
                    a = {"raw": row[n], "peak": row[n] / max(row), "hard": 1.0 if n == int(np.argmax(row)) else 0.0}[
                        attention
                    ]
                    cosine = float(states[i] @ states[j] / (states[i].norm() * states[j].norm()))
                    matrix[m, n] = a * cosine
            precisions.append(self.aggregate(matrix, aggregate, form))
        count = len(precisions)
        third = max(1, count // 3)
        chosen = {
            "all": list(range(count)),
            "first": list(range(third)),
            "middle": list(range(third, max(count - third, third + 1))),
            "last": list(range(count - third, count)),
            "specific": sorted({int(k * (count - 1) / 3) for k in range(4)}),
        }.get(layers) or [int(n) - 1 for n in layers.split("+")]
        values = [precisions[i] for i in chosen]
        if p == 1:
            return sum(values) / len(values)
        return (sum(max(v, 0.0) ** p for v in values) / len(values)) ** (1 / p)

    def aggregate(self, matrix, aggregate, form):
        if form == "code":  # the cosine at the most attended column: the only entry that is not zero
            return float(matrix.sum(axis=1).mean())
        if aggregate == "max":
            return float(matrix.max(axis=1).mean())
        if aggregate == "mean":
            return float(matrix.mean())
        from scipy.optimize import linprog

        rows, columns = matrix.shape
        constraints = [np.kron(np.eye(rows), np.ones(columns)), np.kron(np.ones(rows), np.eye(columns))]
        sums = np.concatenate([np.full(rows, 1 / rows), np.full(columns, 1 / columns)])
        plan = linprog((1 - matrix).ravel(), A_eq=np.vstack(constraints), b_eq=sums, bounds=(0, None)).x
        return float(plan @ matrix.ravel())

    @torch.no_grad()
    def logprobs(self, prefix_ids, target_ids):
        ids = [self.gpt_tokens.bos_token_id, *prefix_ids, *target_ids]
        logits = self.gpt(torch.tensor([ids])).logits[0].log_softmax(-1)
        start = 1 + len(prefix_ids)
        return [float(logits[start + k - 1, token]) for k, token in enumerate(target_ids)]

    def ids(self, text):
        return self.gpt_tokens(text, add_special_tokens=False)["input_ids"]

    def grg(self, question, context, form="paper", gain="ratio"):
        if form == "code":
            end = [self.gpt_tokens.eos_token_id]
            base = np.mean(np.exp(self.logprobs([], self.ids(context) + end)))
            prompt = np.mean(np.exp(self.logprobs([], self.ids(f"{question} {context}") + end)))
            return max(0.0, (prompt - base) / base)
        base = sum(self.logprobs([], self.ids(context)))
        prompt = sum(self.logprobs(self.ids(f"{question}\n"), self.ids(context)))
        value = max((prompt - base) / (1.0 if gain == "absolute" else abs(base)), 0.0)
        return value / len(question.split()) if gain == "rate" else value

    def score(self, question, context, form="paper", gain="ratio", **options):
        lrm, grg = self.lrm(question, context, form, **options), self.grg(question, context, form, gain)
        if form == "code":
            return 2 * lrm * grg / (lrm + grg + 1e-8)
        return 2 * lrm * grg / (lrm + grg) if lrm > 0 and grg > 0 and math.isfinite(lrm) else 0.0
