"""Texts as tokens: a thin layer over the `tokenizers` library, the same for every runtime."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from elench.requests import Span

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase

Ints = npt.NDArray[np.int64]
UNLIMITED = 1 << 20
KEPT = 4096
"""Texts whose tokens are kept: more than a window of records has."""
SPECIAL = ("cls", "sep", "pad", "mask", "bos", "eos")


@dataclass
class Tokens:
    """A tokenizer with the ids of its special tokens (None where it has none)."""

    backend: Tokenizer
    """Without padding and truncation."""
    cls: int | None = None
    sep: int | None = None
    pad: int | None = None
    mask: int | None = None
    bos: int | None = None
    eos: int | None = None
    limit: int = UNLIMITED
    """Tokens that the model was made for, as far as its tokenizer says."""
    typed: bool = True
    """Whether the model gets the text of the pair that each token belongs to."""
    known: dict[tuple[bool, str], Any] = field(default_factory=dict, repr=False)
    """Texts tokenised lately, with places or without: batches are packed by exact lengths, then answered."""

    @classmethod
    def from_folder(cls, folder: Path) -> Tokens:
        """The tokenizer stored in a model's folder as tokenizer.json."""
        from tokenizers import Tokenizer

        backend = Tokenizer.from_file(str(folder / "tokenizer.json"))
        config: dict[str, Any] = {}
        for name in ("special_tokens_map.json", "tokenizer_config.json"):
            if (folder / name).exists():
                config |= json.loads((folder / name).read_text(encoding="utf-8"))
        return cls._plain(backend, {s: config.get(f"{s}_token") for s in SPECIAL}, config.get("model_max_length"))

    @classmethod
    def from_transformers(cls, tokenizer: PreTrainedTokenizerBase) -> Tokens:
        """The same for a tokenizer that transformers loaded."""
        from tokenizers import Tokenizer

        backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        names = {s: getattr(tokenizer, f"{s}_token", None) for s in SPECIAL}
        found = cls._plain(backend, names, tokenizer.model_max_length)
        found.typed = "token_type_ids" in tokenizer.model_input_names
        return found

    @classmethod
    def _plain(cls, backend: Tokenizer, names: dict[str, Any], limit: float | None) -> Tokens:
        backend.no_truncation()
        backend.no_padding()
        words = {s: (w.get("content") if isinstance(w, dict) else w) for s, w in names.items()}
        ids: dict[str, Any] = {s: backend.token_to_id(str(words[s])) if words[s] else None for s in SPECIAL}
        return cls(backend, **ids, limit=int(min(limit, UNLIMITED)) if limit else UNLIMITED)

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, without special tokens; do not change them."""
        return self._once(texts, False, lambda new: [c.ids for c in self._encode(self.backend.encode_batch_fast, new)])

    def pieces(self, texts: Sequence[str]) -> list[tuple[list[int], list[Span]]]:
        """Token ids and places of each text; a blank before a word is not part of its place. Do not change them."""

        def coded(new: list[str]) -> list[tuple[list[int], list[Span]]]:
            found = zip(new, self._encode(self.backend.encode_batch, new), strict=True)
            return [
                (c.ids, [(a + 1, b) if a + 1 < b and text[a].isspace() else (a, b) for a, b in c.offsets])
                for text, c in found
            ]

        return self._once(texts, True, coded)

    @staticmethod
    def _encode(encode: Callable[..., list[Any]], texts: list[str]) -> list[Any]:
        return encode(texts, add_special_tokens=False) if texts else []

    def _once(self, texts: Sequence[str], placed: bool, code: Callable[[list[str]], list[Any]]) -> list[Any]:
        found = {text: self.known.get((placed, text)) for text in texts}
        new = [text for text, value in found.items() if value is None]
        made = dict(zip(new, code(new), strict=True))
        if len(self.known) + len(made) > KEPT:
            self.known.clear()
        self.known.update({(placed, text): value for text, value in made.items()})
        found.update(made)
        return [found[text] for text in texts]

    def names(self, ids: Sequence[int]) -> list[str]:
        """The tokens as the vocabulary spells them."""
        return [self.backend.id_to_token(i) or "" for i in ids]

    def decode(self, ids: Sequence[int]) -> str:
        return str(self.backend.decode(list(ids), skip_special_tokens=True))

    @property
    def filler(self) -> int:
        """What fills the rows of a batch; no answer depends on it."""
        return self.pad if self.pad is not None else self.eos or 0

    @cached_property
    def frame(self) -> tuple[list[int], list[int]]:
        """The special tokens that the model expects before and after a text."""
        plain = self.backend.encode("a", add_special_tokens=False).ids
        whole = self.backend.encode("a").ids
        at = _find(whole, plain, 0)
        return whole[:at], whole[at + len(plain) :]

    @cached_property
    def pair_frame(self) -> tuple[list[int], list[int], list[int]]:
        """The special tokens that the model expects before, between and after two texts."""
        first, second = (self.backend.encode(w, add_special_tokens=False).ids for w in ("who", "me"))
        pair = self.backend.encode("who", "me").ids
        a = _find(pair, first, 0)
        b = _find(pair, second, a + len(first))
        return pair[:a], pair[a + len(first) : b], pair[b + len(second) :]

    def pair(self, first: Sequence[int], second: Sequence[int]) -> tuple[list[int], int]:
        """Two texts in one row, and where the second begins."""
        before, between, after = self.pair_frame
        begin = len(before) + len(first) + len(between)
        return [*before, *first, *between, *second, *after], begin


def _find(row: list[int], part: list[int], start: int) -> int:
    return next(i for i in range(start, len(row)) if row[i : i + len(part)] == part)


def padded(rows: Sequence[Sequence[int]], fill: int = 0) -> Ints:
    """Rows of different length as one array, filled on the right."""
    made = np.full((len(rows), max(map(len, rows))), fill, dtype=np.int64)
    for i, row in enumerate(rows):
        made[i, : len(row)] = row
    return made


def present(rows: Sequence[Sequence[int]]) -> Ints:
    """1 for each token, 0 for what `padded` filled in."""
    return padded([[1] * len(row) for row in rows])
