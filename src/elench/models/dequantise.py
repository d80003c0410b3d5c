"""Writing a quantised GGUF language model out as plain safetensors, once, so that every later start is quick."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from elench.models.checkpoints import need

LAYER = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip
"""GGUF's names of a layer's tensors, and those of a Llama checkpoint."""
WHOLE = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
CONTROL = 3
"""GGUF's type of a special token."""


def dequantise(source: Path, folder: Path) -> None:
    """Put config, float16 weights and tokenizer of a Llama-like GGUF file with tied embeddings into `folder`."""
    need("gguf", "safetensors", "tokenizers")
    from gguf import GGUFReader
    from safetensors.numpy import save_file

    reader = GGUFReader(source)
    config = _config(reader.fields)
    save_file(_tensors(reader, config), folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    _tokenizer(reader.fields, folder)


def _config(fields: Any) -> dict[str, Any]:
    def of(name: str) -> Any:
        return fields[f"llama.{name}"].contents()

    heads, width = int(of("attention.head_count")), int(of("embedding_length"))
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "dtype": "float16",
        "hidden_size": width, "intermediate_size": int(of("feed_forward_length")), "head_dim": width // heads,
        "num_hidden_layers": int(of("block_count")), "num_attention_heads": heads,
        "num_key_value_heads": int(of("attention.head_count_kv")), "max_position_embeddings": int(of("context_length")),
        "rms_norm_eps": float(of("attention.layer_norm_rms_epsilon")), "attention_bias": False, "mlp_bias": False,
        "rope_parameters": {"rope_theta": float(of("rope.freq_base")), "rope_type": "default"},
        "tie_word_embeddings": True, "vocab_size": len(fields["tokenizer.ggml.tokens"].contents()),
        "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0,
    }  # fmt: skip


def _tensors(reader: Any, config: dict[str, Any]) -> dict[str, Any]:
    """The weights by their names in a Llama checkpoint, as float16."""
    from gguf.quants import dequantize

    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    made = {}
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        name = WHOLE.get(tensor.name)
        if name is None:
            _, number, part, _ = tensor.name.split(".")
            name = f"model.layers.{number}.{LAYER[part]}.weight"
            if part in heads:  # GGUF keeps the two halves of a rotated pair side by side, checkpoints apart
                n, (rows, columns) = heads[part], values.shape
                values = values.reshape(n, rows // n // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)
        made[name] = np.ascontiguousarray(values.astype(np.float16))
    return made


def _tokenizer(fields: Any, folder: Path) -> None:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(m.split(" ")) for m in fields["tokenizer.ggml.merges"].contents()]
    kinds = fields["tokenizer.ggml.token_type"].contents()
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges))
    # GGUF's "smollm": every digit apart, then byte-level pieces without a blank put in front
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    special = [t for t, kind in zip(tokens, kinds, strict=True) if kind == CONTROL]
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in special])
    tokenizer.save(str(folder / "tokenizer.json"))
    # texts were separated by the first token when this model was trained; <|im_start|> only opens a turn of a dialogue
    named = {f"{kind}_token": tokens[0] for kind in ("bos", "eos", "pad", "unk")}
    config = {**named, "model_max_length": 1 << 20, "tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
