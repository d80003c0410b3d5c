"""What all transformer models share: loading a checkpoint, its window, padded tensors, parts of a long text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elench.errors import UsageError
from elench.models.base import Identity
from elench.models.checkpoints import need
from elench.models.shipped import load_shipped
from elench.requests import Span

if TYPE_CHECKING:
    import torch
    from torch.nn import Module
    from transformers import PreTrainedTokenizerBase as Tokenizer


@dataclass(frozen=True)
class Loaded:
    """A checkpoint in memory, ready to answer."""

    model: Module
    tokenizer: Tokenizer


def load_transformer(identity: Identity, kind: str, **settings: Any) -> Loaded:
    """Read a checkpoint with transformers' class `kind`; safetensors only, never a pickle."""
    need("torch", "transformers", "safetensors")
    import torch
    import transformers

    auto = "cuda" if torch.cuda.is_available() else "cpu"
    device = auto if identity.device == "auto" else identity.device
    transformers.utils.logging.disable_progress_bar()
    settings = {**settings, "dtype": getattr(torch, identity.dtype), "use_safetensors": True}
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    try:
        model, info = getattr(transformers, kind).from_pretrained(identity.folder, output_loading_info=True, **settings)
        tokenizer = transformers.AutoTokenizer.from_pretrained(identity.folder)
        model = model.to(device).eval()
    except (OSError, ValueError, RuntimeError, KeyError, AssertionError) as error:
        raise UsageError(f"{identity.role} model {identity.name}: {str(error).splitlines()[0]}") from None
    finally:
        transformers.logging.set_verbosity(before)
    # a pooler is never asked; any other weight that is not in the checkpoint would be made up
    if missing := sorted(key for key in info["missing_keys"] if "pooler" not in key):
        raise UsageError(f"{identity.name} cannot serve as {identity.role}: the checkpoint has no {missing[0]}")
    if not tokenizer.is_fast:
        raise UsageError(f"{identity.role} model {identity.name}: its tokenizer gives no character offsets")
    return Loaded(model, tokenizer)


def load_stored(identity: Identity, build: Callable[[Path, Mapping[str, Any]], Module]) -> Loaded:
    """A model that elench stored, on a base that the shipped graphs do not fit; `build` makes it untrained."""
    need("torch", "transformers", "safetensors")
    from transformers import AutoTokenizer

    return Loaded(load_shipped(identity, build), AutoTokenizer.from_pretrained(identity.base))


def window(loaded: Loaded, most: int = 1 << 20) -> int:
    """How many tokens the model reads at once, special ones included."""
    config, sizes = loaded.model.config, [most]
    if positions := getattr(config, "max_position_embeddings", None):
        # RoBERTa and its kin count positions from behind the padding id
        offset = config.pad_token_id + 1 if "roberta" in config.model_type or config.model_type == "camembert" else 0
        sizes.append(positions - offset)
    sizes.append(loaded.tokenizer.model_max_length)
    return int(min(size for size in sizes if size and size > 0))


def pieces(tokenizer: Tokenizer, texts: Sequence[str]) -> list[tuple[list[int], list[Span]]]:
    """Token ids and places of each text, without special tokens; a blank before a word is not part of its place."""
    if not texts:
        return []
    coded = tokenizer(list(texts), add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    places = [
        [(a + 1, b) if a + 1 < b and text[a].isspace() else (a, b) for a, b in spans]
        for text, spans in zip(texts, coded["offset_mapping"], strict=True)
    ]
    return list(zip(coded["input_ids"], places, strict=True))


def even_parts(n: int, size: int) -> list[Span]:
    """Split n items into the fewest parts of at most `size`, as even as they can be."""
    count = max(1, -(-n // size))
    edges = [n * k // count for k in range(count + 1)]
    return list(pairwise(edges))


def padded(rows: Sequence[Sequence[int]], fill: int, device: torch.device | str) -> torch.Tensor:
    """Rows of different length as one tensor, filled on the right."""
    import torch

    width = max(map(len, rows))
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows], device=device)


def padding_id(tokenizer: Tokenizer) -> int:
    """What fills the rows of a batch; no answer depends on it."""
    return int(tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id or 0)


def token_budget(loaded: Loaded, on_cpu: int) -> int:
    """Tokens of a batch: on a CPU few enough that a layer's values stay in its cache, on a GPU many."""
    return 16 * on_cpu if loaded.model.device.type == "cuda" else on_cpu
