"""What all transformer models share: loading a checkpoint, its window, padded tensors, parts of a long text."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from quaestor.errors import UsageError
from quaestor.models.base import ModelChoice
from quaestor.models.checkpoints import Checkpoint, find, need
from quaestor.requests import Span

if TYPE_CHECKING:
    import torch

DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Loaded:
    """A checkpoint in memory, ready to answer."""

    model: Any
    tokenizer: Any
    name: str
    sha256: str
    """Of the files, and of the number type where it is not float32: it changes the answers."""


def load_transformer(choice: ModelChoice, kind: str, **settings: Any) -> Loaded:
    """Read the checkpoint that a choice names with transformers' class `kind`; safetensors only, never a pickle."""
    need("torch", "transformers", "safetensors")
    import torch
    import transformers

    if choice.dtype not in DTYPES:
        raise UsageError(f"--dtype {choice.dtype}: not one of {', '.join(DTYPES)}")
    found = find(choice)
    device = choice.device or ("cuda" if torch.cuda.is_available() else "cpu")
    transformers.utils.logging.disable_progress_bar()
    settings = {**settings, "dtype": getattr(torch, choice.dtype), "use_safetensors": True}
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    try:
        model, told = getattr(transformers, kind).from_pretrained(found.folder, output_loading_info=True, **settings)
        tokenizer = transformers.AutoTokenizer.from_pretrained(found.folder)
        model = model.to(device).eval()
    except (OSError, ValueError, RuntimeError, KeyError, AssertionError) as error:
        raise UsageError(f"{choice.role} model {found.name}: {str(error).splitlines()[0]}") from None
    finally:
        transformers.logging.set_verbosity(before)
    # a pooler is never asked; any other weight that is not in the checkpoint would be made up
    if missing := sorted(key for key in told["missing_keys"] if "pooler" not in key):
        raise UsageError(f"{found.name} cannot play the role {choice.role}: the checkpoint has no {missing[0]}")
    if not tokenizer.is_fast:
        raise UsageError(f"{choice.role} model {found.name}: its tokenizer does not say where pieces stand")
    return Loaded(model, tokenizer, found.name, _with_dtype(found, choice.dtype))


def _with_dtype(found: Checkpoint, dtype: str) -> str:
    return found.sha256 if dtype == "float32" else hashlib.sha256(f"{found.sha256} {dtype}".encode()).hexdigest()


def window(loaded: Loaded, most: int = 1 << 20) -> int:
    """How many tokens the model reads at once, special ones included."""
    config, sizes = loaded.model.config, [most]
    if positions := getattr(config, "max_position_embeddings", None):
        # RoBERTa and its kin count positions from behind the padding id
        offset = config.pad_token_id + 1 if "roberta" in config.model_type or config.model_type == "camembert" else 0
        sizes.append(positions - offset)
    sizes.append(loaded.tokenizer.model_max_length)
    return int(min(size for size in sizes if size and size > 0))


def pieces(tokenizer: Any, texts: Sequence[str]) -> list[tuple[list[int], list[Span]]]:
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


def padded(rows: Sequence[Sequence[int]], fill: int, device: Any) -> torch.Tensor:
    """Rows of different length as one tensor, filled on the right."""
    import torch

    width = max(map(len, rows))
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows], device=device)


def padding_id(tokenizer: Any) -> int:
    """What fills the rows of a batch; no answer depends on it."""
    return int(tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id or 0)


def token_budget(loaded: Loaded, on_cpu: int) -> int:
    """Tokens of a batch: on a CPU few enough that a layer's values stay in its cache, on a GPU many."""
    return 16 * on_cpu if loaded.model.device.type == "cuda" else on_cpu
