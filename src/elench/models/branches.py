"""Writing many endings of few texts: a text is read once, its endings branch off and share what was read.

For Llama-like language models. Each text's keys and values are kept as they are, never repeated or padded for its
branches, so that a branch costs little more than its own tokens, and no answer depends on what else is in the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

Prefix = list[tuple["torch.Tensor", "torch.Tensor"]]
"""Keys and values (heads × tokens × width) of a text at each layer."""


@dataclass
class Written:
    """The endings of one branch so far."""

    live: list[list[int]]
    done: list[tuple[float, list[int]]] = field(default_factory=list)

    def ranked(self, most: int) -> list[list[int]]:
        """Finished endings, the likeliest per token first."""
        return [ids for _, ids in sorted(self.done, key=lambda d: -d[0])[:most]]


class Branches:
    """Reads texts and writes their endings with a causal language model."""

    def __init__(self, model: Any, end: int) -> None:
        self.model, self.end = model, end
        config = model.config
        self.heads, self.width = config.num_key_value_heads, config.head_dim
        self.group = config.num_attention_heads // self.heads

    def read(self, ids: Sequence[int]) -> Prefix:
        """A text's keys and values."""
        import torch

        kept = self.model.model(input_ids=torch.tensor([list(ids)]), use_cache=True).past_key_values
        return [(layer.keys[0], layer.values[0]) for layer in kept.layers]

    def write(
        self, texts: Sequence[Sequence[int]], wishes: Sequence[Sequence[Sequence[int]]], beams: int, limit: int
    ) -> list[list[list[list[int]]]]:
        """For each text and each of its wishes (the tokens a branch begins with) up to `beams` endings, best first."""
        import torch

        with torch.inference_mode():
            prefixes = [self.read(ids) for ids in texts]
            owners = [t for t, own in enumerate(wishes) for _ in own]
            state = _State(self, prefixes, owners, [list(w) for own in wishes for w in own])
            written = [Written([[]]) for _ in owners]
            alive = list(range(len(owners)))
            logs = state.begin()
            total = torch.zeros(len(alive))
            for length in range(1, limit + 1):
                parents, tokens, total, alive = self._choose(written, alive, logs, total, beams, length == limit)
                if not alive:
                    break
                state.keep(parents)
                logs = state.step(torch.tensor(tokens)[:, None])
        found = iter(w.ranked(beams) for w in written)
        return [[next(found) for _ in own] for own in wishes]

    def _choose(
        self, written: list[Written], alive: list[int], logs: Any, total: Any, beams: int, last: bool
    ) -> tuple[list[int], list[int], Any, list[int]]:
        """Extend each living branch by its best tokens: (rows to go on from, tokens, log-probabilities, the living)."""
        import torch

        parents: list[int] = []
        tokens: list[int] = []
        sums: list[float] = []
        living: list[int] = []
        best, which = (logs + total[:, None]).topk(2 * beams, dim=1)
        row = 0
        for number in alive:
            branch = written[number]
            count = len(branch.live)
            options = sorted(
                (
                    (float(best[row + i, k]), row + i, int(which[row + i, k]))
                    for i in range(count)
                    for k in range(2 * beams)
                ),
                key=lambda option: -option[0],
            )[: 2 * beams]
            chosen: list[tuple[float, int, int]] = []
            for rank, (score, parent, token) in enumerate(options):
                words = branch.live[parent - row]
                if token == self.end:
                    if rank < beams:
                        branch.done.append((score / (len(words) + 1), words))
                elif len(chosen) < beams:
                    chosen.append((score, parent, token))
            if last or len(branch.done) >= beams:
                if len(branch.done) < beams:  # cut off by the limit: better an unfinished ending than none
                    cut = [(s / (len(branch.live[p - row]) + 1), [*branch.live[p - row], t]) for s, p, t in chosen]
                    branch.done += cut if not branch.done else []
            else:
                branch.live = [[*branch.live[p - row], t] for _, p, t in chosen]
                parents += [p for _, p, _ in chosen]
                tokens += [t for *_, t in chosen]
                sums += [s for s, *_ in chosen]
                living.append(number)
            row += count
        return parents, tokens, torch.tensor(sums), living


class _State:
    """Rows of a batch: which text each belongs to, and the keys and values of its own tokens."""

    def __init__(self, branches: Branches, prefixes: list[Prefix], owners: list[int], wishes: list[list[int]]) -> None:
        self.by, self.prefixes, self.owners, self.wishes = branches, prefixes, owners, wishes

    def begin(self) -> Any:
        """Read the wishes, padded on the left; log-probabilities of the first token of each row."""
        import torch

        width = max(map(len, self.wishes))
        rows = [[self.by.end] * (width - len(w)) + w for w in self.wishes]
        self.own: list[tuple[Any, Any]] = []
        self.seen = torch.tensor([[i >= width - len(w) for i in range(width)] for w in self.wishes])
        lengths = torch.tensor([self.prefixes[o][0][0].shape[1] for o in self.owners])
        self.next = lengths + torch.tensor([len(w) for w in self.wishes])
        places = (self.next[:, None] + torch.arange(-width, 0)[None]).clamp_min(0)
        visible = self.seen[:, None, :] & torch.ones(width, width, dtype=torch.bool).tril()
        return self._forward(torch.tensor(rows), places, visible)

    def step(self, tokens: Any) -> Any:
        """Add one token to each row; log-probabilities of the one after."""
        import torch

        self.seen = torch.cat([self.seen, torch.ones(len(tokens), 1, dtype=torch.bool)], 1)
        places, self.next = self.next[:, None], self.next + 1
        return self._forward(tokens, places, self.seen[:, None, :])

    def keep(self, rows: list[int]) -> None:
        """Go on with these rows only, in this order (a row may go on twice)."""
        import torch

        if rows == list(range(len(self.owners))):
            return
        at = torch.tensor(rows)
        self.owners = [self.owners[r] for r in rows]
        self.seen, self.next = self.seen[at], self.next[at]
        self.own = [(k[at], v[at]) for k, v in self.own]

    def _forward(self, ids: Any, places: Any, visible: Any) -> Any:
        from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

        inner, by = self.by.model.model, self.by
        x = inner.embed_tokens(ids)
        turn = inner.rotary_emb(x, places)
        rows, count = ids.shape
        for number, layer in enumerate(inner.layers):
            h, attention = layer.input_layernorm(x), layer.self_attn
            q, k, v = (
                project(h).view(rows, count, -1, by.width).transpose(1, 2)
                for project in (attention.q_proj, attention.k_proj, attention.v_proj)
            )
            q, k = apply_rotary_pos_emb(q, k, *turn)
            k, v = self._remember(number, k, v)
            mixed = self._attend(number, q, k, v, visible)
            x = x + attention.o_proj(mixed.transpose(1, 2).reshape(rows, count, -1))
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        return self.by.model.lm_head(inner.norm(x[:, -1])).float().log_softmax(-1)

    def _remember(self, number: int, k: Any, v: Any) -> tuple[Any, Any]:
        import torch

        if number == len(self.own):
            self.own.append((k, v))
        else:
            before = self.own[number]
            self.own[number] = (torch.cat([before[0], k], 2), torch.cat([before[1], v], 2))
        return self.own[number]

    def _attend(self, number: int, q: Any, k: Any, v: Any, visible: Any) -> Any:
        """Attention of each row to its text and to its own tokens, text by text."""
        import torch

        by, (rows, _, count, width) = self.by, q.shape
        q = q.reshape(rows, by.heads, by.group * count, width) * width**-0.5
        visible = visible.repeat(1, by.group, 1)[:, None]
        own = (q @ k.transpose(2, 3)).masked_fill(~visible, float("-inf"))
        out = []
        edges = [i for i in range(rows) if not i or self.owners[i] != self.owners[i - 1]]
        for a, b in pairwise([*edges, rows]):
            keys, values = self.prefixes[self.owners[a]][number]
            flat = q[a:b].transpose(0, 1).reshape(by.heads, -1, width)
            text = (flat @ keys.transpose(1, 2)).view(by.heads, b - a, by.group * count, -1).transpose(0, 1)
            weights = torch.cat([text, own[a:b]], 3).softmax(3)
            of_text, of_own = weights.split([keys.shape[1], own.shape[3]], 3)
            gathered = of_text.transpose(0, 1).reshape(by.heads, -1, keys.shape[1]) @ values
            gathered = gathered.view(by.heads, b - a, by.group * count, width).transpose(0, 1)
            out.append(gathered + of_own @ v[a:b])
        return torch.cat(out).view(rows, by.heads * by.group, count, width)
