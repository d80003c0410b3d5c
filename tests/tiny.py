"""Tiny checkpoints with random weights, so that every role can be tested without a download.

folder = tiny("bert")      # also mpnet, mpnet-mlm, roberta, roberta-mlm, bert-mlm, xlnet, gpt2, llama, t5, bart
model = ModelSet({"encoder": str(folder)})["encoder"]
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

TEXT = (
    "who wrote the great old book ? jane austen wrote it in the city by the river . when was the king in the new city ?"
)
WORDS = sorted(set(TEXT.split()) - {"?", "."})


@cache
def _home() -> Path:
    home = Path(tempfile.mkdtemp(prefix="elench-tiny-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return home


def _wordpiece() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    letters = [chr(c) for c in range(33, 127) if not chr(c).isupper()]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{c}" for c in letters), *WORDS]
    vocabulary = {t: i for i, t in enumerate(dict.fromkeys(tokens))}
    inner = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    inner.normalizer = normalizers.BertNormalizer(lowercase=True)
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "mask": "[MASK]"}
    wrapped = PreTrainedTokenizerFast(tokenizer_object=inner, **{f"{k}_token": v for k, v in names.items()})
    wrapped.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    return wrapped


def _bytes(roberta: bool) -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"] if roberta else ["<|endoftext|>"]
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.train_from_iterator(
        [TEXT] * 3,
        trainers.BpeTrainer(
            vocab_size=360,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    if not roberta:
        inner.post_processor = processors.ByteLevel(trim_offsets=True)
        return PreTrainedTokenizerFast(tokenizer_object=inner, bos_token=special[0], eos_token=special[0])
    inner.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token=AddedToken("<mask>", lstrip=True, special=True),
    )


def _unigram(xlnet: bool = False) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    table = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -20.0), ("▁", -3.0), ("<sep>", 0.0), ("<cls>", 0.0)]
    table = [*(table if xlnet else table[:4]), *((f"▁{w}", -4.0) for w in WORDS)]
    table += [(chr(c), -9.0) for c in range(33, 127)]
    inner = Tokenizer(models.Unigram(table, unk_id=2))
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.decoder = decoders.Metaspace()
    if xlnet:  # special tokens come last, and batches are padded on the left
        ends = {"single": "$A <sep> <cls>:2", "pair": "$A <sep> $B:1 <sep>:1 <cls>:2"}
        inner.post_processor = processors.TemplateProcessing(**ends, special_tokens=[("<sep>", 4), ("<cls>", 5)])
        names = {f"{name}_token": f"<{name}>" for name in ("unk", "sep", "cls", "pad")}
        return PreTrainedTokenizerFast(tokenizer_object=inner, padding_side="left", **names)
    inner.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="</s>", unk_token="<unk>", pad_token="<pad>")


def _model(kind: str, size: int) -> Any:
    import transformers as t

    shape = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}
    plain = {"vocab_size": size, **shape, "max_position_embeddings": 128, "initializer_range": 0.3}
    if kind.startswith("bert"):
        config = t.BertConfig(**plain)
        return t.BertForMaskedLM(config) if kind.endswith("mlm") else t.BertModel(config)
    if kind.startswith("roberta"):
        ids = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "type_vocab_size": 1}
        config = t.RobertaConfig(**{**plain, **ids, "max_position_embeddings": 130})
        return t.RobertaForMaskedLM(config) if kind.endswith("mlm") else t.RobertaModel(config)
    if kind.startswith("mpnet"):
        config = t.MPNetConfig(**{**plain, "max_position_embeddings": 130, "layer_norm_eps": 1e-5})
        return t.MPNetForMaskedLM(config) if kind.endswith("mlm") else t.MPNetModel(config)
    if kind == "xlnet":
        shape = {"d_model": 32, "n_layer": 3, "n_head": 4, "d_inner": 48, "initializer_range": 0.3}
        return t.XLNetModel(t.XLNetConfig(vocab_size=size, **shape))
    if kind == "gpt2":
        ends = {"bos_token_id": 0, "eos_token_id": 0}
        return t.GPT2LMHeadModel(t.GPT2Config(vocab_size=size, n_positions=128, n_embd=32, n_layer=3, n_head=4, **ends))
    if kind == "llama":
        return t.LlamaForCausalLM(t.LlamaConfig(**plain, num_key_value_heads=2, bos_token_id=0, eos_token_id=0))
    if kind == "t5":
        ends = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
        return t.T5ForConditionalGeneration(
            t.T5Config(vocab_size=size, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, **ends)
        )
    shape = {"layers": 2, "attention_heads": 4, "ffn_dim": 48}
    sides = {f"{side}_{k}": v for side in ("encoder", "decoder") for k, v in shape.items()}
    ids = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}
    return t.BartForConditionalGeneration(
        t.BartConfig(vocab_size=size, d_model=32, max_position_embeddings=128, **sides, **ids, forced_eos_token_id=None)
    )


@cache
def tiny(kind: str, seed: int = 0) -> Path:
    """The folder of a tiny checkpoint; the same kind and seed give the same weights."""
    import torch

    folder = _home() / f"{kind}-{seed}"
    tokenizer = (
        _wordpiece()
        if kind.startswith("bert")
        else _unigram(kind == "xlnet")
        if kind in ("t5", "xlnet")
        else _bytes(kind.startswith(("roberta", "bart", "mpnet")))
    )
    torch.manual_seed(seed)
    _model(kind, len(tokenizer)).eval().save_pretrained(folder)
    tokenizer.model_max_length = 1024 if kind == "t5" else 128
    tokenizer.save_pretrained(folder)
    return folder
