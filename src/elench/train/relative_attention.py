"""DeBERTa's attention for training on a processor: the same numbers as in transformers, in less time.

transformers multiplies every token with all 512 distance vectors and gathers what each pair of tokens needs; the
gradient of that gather takes longer than the products. Here a distance vector is looked up for each of the 2T - 1
distances that occur, and the products are sheared into place by a change of shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch.nn import Module


def sheared(products: torch.Tensor) -> torch.Tensor:
    """From (…, T, 2T - 1), whose columns are the distances 1 - T … T - 1, to (…, T, T): in row i, column j is that of
    distance j - i."""
    *front, rows, columns = products.shape
    shorter = max(columns - 1, 1)
    flat = products.reshape(*front, rows * columns)[..., rows - 1 : rows - 1 + rows * shorter]
    return flat.reshape(*front, rows, shorter)[..., :rows]


def attention(self: Any, hidden_states: torch.Tensor, attention_mask: torch.Tensor, *_: object, **given: Any) -> tuple[
    torch.Tensor, None
]:  # fmt: skip
    """What `DisentangledSelfAttention.forward` computes where keys and queries share their projections."""
    import torch
    from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

    batch, length, width = hidden_states.shape
    heads, size = self.num_attention_heads, self.attention_head_size
    span = self.pos_ebd_size
    distances = torch.arange(length - 1, -length, -1)
    buckets = make_log_bucket_position(distances, self.position_buckets, self.max_relative_positions).long() + span
    buckets = buckets.clamp(0, 2 * span - 1)
    used = torch.arange(int(buckets.min()), int(buckets.max()) + 1)
    places = self.pos_dropout(given["rel_embeddings"])[used]

    def split(x: torch.Tensor) -> torch.Tensor:
        """heads × batch × tokens × size"""
        return x.view(batch, length, heads, size).permute(2, 0, 1, 3)

    def by_distance(x: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
        """heads × size × distances"""
        return x[order - used[0]].view(-1, heads, size).permute(1, 2, 0)

    query, key, value = (split(p(hidden_states)) for p in (self.query_proj, self.key_proj, self.value_proj))
    key = key / (3 * size) ** 0.5
    to_place = torch.bmm(
        query.reshape(heads, -1, size), by_distance(self.key_proj(places), buckets) / (3 * size) ** 0.5
    )
    from_place = torch.bmm(key.reshape(heads, -1, size), by_distance(self.query_proj(places), buckets.flip(0)))
    shape = (heads, batch, length, 2 * length - 1)
    scores = query @ key.transpose(-1, -2) + sheared(to_place.view(shape))
    scores = scores + sheared(from_place.view(shape)).transpose(-1, -2)
    seen = attention_mask.bool().transpose(0, 1)
    scores = scores.masked_fill(~seen, torch.finfo(scores.dtype).min)
    weights = self.dropout(torch.softmax(scores, -1)).to(value.dtype)
    out = (weights @ value).permute(1, 2, 0, 3).reshape(batch, length, width)
    return out, None


def quicken(model: Module) -> None:
    """Let a DeBERTa model compute its attention so; models of which `attention` is not true are left as they are."""
    for module in model.modules():
        if (
            type(module).__name__ == "DisentangledSelfAttention"
            and getattr(module, "share_att_key", False)  # DeBERTa's first version has a class of the same name
            and {"c2p", "p2c"} <= set(module.pos_att_type)
            and module.position_buckets > 0
        ):
            module.forward = attention.__get__(module)
