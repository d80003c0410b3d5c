"""Tiny checkpoints whose weights are the same on every machine, so that golden values hold everywhere.

Each parameter is filled from numpy's frozen legacy generator, seeded by the parameter's name; vocabularies are fixed
lists. The authors' programs and elench read the same folders.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

WORDS = [
    "the",
    "a",
    "of",
    "in",
    "on",
    "to",
    "and",
    "was",
    "is",
    "are",
    "who",
    "what",
    "when",
    "where",
    "why",
    "how",
    "which",
    "did",
    "does",
    "by",
    "for",
    "with",
    "from",
    "at",
    "it",
    "its",
    "river",
    "city",
    "king",
    "queen",
    "book",
    "wrote",
    "born",
    "old",
    "new",
    "great",
    "first",
    "year",
    "name",
    "house",
    "brother",
    "jack",
    "anna",
    "bert",
    "market",
    "milk",
    "honey",
    "car",
    "drove",
    "bought",
    "family",
    "large",
    "bridge",
    "closed",
    "monday",
    "after",
    "engineers",
    "found",
    "cracks",
    "two",
    "pillars",
    "mayor",
    "said",
    "repairs",
    "cost",
    "million",
    "euros",
    "october",
    "four",
    "seven",
    "steps",
    "test",
    "yes",
    "no",
    "not",
    "were",
    "there",
    "have",
    "been",
    "over",
]
LETTERS = [chr(c) for c in range(33, 127) if not chr(c).isupper()]


@cache
def _home() -> Path:
    home = Path(tempfile.mkdtemp(prefix="elench-faithful-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return home


def _wordpiece() -> Any:
    """BERT's scheme with BERT's numbers for its special tokens ([CLS] 101, [SEP] 102), which KPQA's program relies on."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    table = ["[PAD]", *(f"[unused{i}]" for i in range(99)), "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    table += [*LETTERS, *(f"##{c}" for c in LETTERS), *WORDS, "##s", "##ed", "##ing"]
    inner = Tokenizer(models.WordPiece({t: i for i, t in enumerate(dict.fromkeys(table))}, unk_token="[UNK]"))
    inner.normalizer = normalizers.BertNormalizer(lowercase=True)
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 101), ("[SEP]", 102)]
    )
    names = {"unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "mask": "[MASK]"}
    made = PreTrainedTokenizerFast(tokenizer_object=inner, **{f"{k}_token": v for k, v in names.items()})
    made.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    return made


def _bytes(roberta: bool) -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"] if roberta else ["<|endoftext|>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {t: i for i, t in enumerate([*special, *alphabet])}
    merges = []
    for pair in ("th", "in", "er", "on", "an", "Ġt", "Ġa", "Ġb"):
        merges.append((pair[:-1], pair[-1]))
        vocabulary[pair] = len(vocabulary)
    inner = Tokenizer(models.BPE(vocabulary, merges))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    if not roberta:
        inner.post_processor = processors.ByteLevel(trim_offsets=True)
        return PreTrainedTokenizerFast(tokenizer_object=inner, bos_token=special[0], eos_token=special[0])
    inner.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    names = {"bos": "<s>", "eos": "</s>", "cls": "<s>", "sep": "</s>", "pad": "<pad>", "unk": "<unk>"}
    mask = AddedToken("<mask>", lstrip=True, special=True)
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, mask_token=mask, **{f"{k}_token": v for k, v in names.items()}
    )


def _unigram() -> Any:
    """T5's scheme; piece 73 begins "unanswerable", as in T5's own vocabulary."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    pieces = [f"▁{w}" for w in WORDS]
    table = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -20.0), ("▁", -3.0), *((p, -4.0) for p in pieces[:69])]
    table += [("▁un", -4.0), ("answerable", -4.0), *((p, -4.0) for p in pieces[69:])]
    table += [(chr(c), -9.0) for c in range(33, 127)]
    assert table[73][0] == "▁un"
    inner = Tokenizer(models.Unigram(table, unk_id=2))
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.decoder = decoders.Metaspace()
    inner.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="</s>", unk_token="<unk>", pad_token="<pad>")


def _model(kind: str, size: int) -> Any:
    import transformers as t

    shape = {"hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 48}
    plain = {"vocab_size": size, **shape, "max_position_embeddings": 512}
    if kind == "bert":
        return t.BertModel(t.BertConfig(**plain))
    if kind == "bert-classifier":
        return t.BertForTokenClassification(t.BertConfig(**plain, num_labels=2))
    if kind == "roberta-mlm":
        ids = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "type_vocab_size": 1}
        return t.RobertaForMaskedLM(t.RobertaConfig(**{**plain, **ids, "max_position_embeddings": 514}))
    if kind == "gpt2":
        ends = {"bos_token_id": 0, "eos_token_id": 0}
        shape = {"n_positions": 2048, "n_embd": 32, "n_layer": 3, "n_head": 4}
        return t.GPT2LMHeadModel(t.GPT2Config(vocab_size=size, **shape, **ends))
    ends = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
    shape = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
    return t.T5ForConditionalGeneration(t.T5Config(vocab_size=size, **shape, **ends))


SEEDS = {"gpt2": 8, "t5-qg": 4, "t5-qa": 5}
"""Chosen so that gains are positive and the texts written differ from each other."""


def fill(model: Any, seed: int, scale: float) -> None:
    """Weights from the names of the parameters: matrices around 0, norms around 1."""
    import torch

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            draw = np.random.RandomState(zlib.crc32(f"{seed} {name}".encode())).standard_normal(tuple(parameter.shape))
            values = scale * draw if parameter.ndim > 1 else 0.1 * draw + (1.0 if name.endswith("weight") else 0.0)
            parameter.copy_(torch.tensor(values, dtype=parameter.dtype))


@cache
def checkpoint(kind: str) -> Path:
    """The folder of a checkpoint: bert, bert-classifier, roberta-mlm, gpt2, t5-qa or t5-qg."""
    folder = _home() / kind
    build(kind, folder)
    return folder


def build(kind: str, folder: Path) -> None:
    """Write a checkpoint into a folder."""
    tokenizer = (
        _wordpiece() if kind.startswith("bert") else _unigram() if kind.startswith("t5") else _bytes(kind != "gpt2")
    )
    model = _model(kind, len(tokenizer))
    fill(model, SEEDS.get(kind, 0), 0.5 if kind.startswith("t5") else 0.25)
    model.tie_weights()
    model.eval().save_pretrained(folder)
    tokenizer.model_max_length = 2048 if kind == "gpt2" else 512
    tokenizer.save_pretrained(folder)
