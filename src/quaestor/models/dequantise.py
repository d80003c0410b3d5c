"""Writing a quantised GGUF language model out as plain safetensors, once, so that every later start is quick."""

from __future__ import annotations

from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

from quaestor.models.checkpoints import need


def dequantise(source: Path, folder: Path) -> None:
    """Put config, float16 weights and tokenizer of a Llama-like GGUF file into `folder`."""
    need("torch", "transformers", "gguf", "safetensors")
    import torch
    from gguf import GGUFReader
    from safetensors.torch import save_file
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

    with redirect_stderr(StringIO()):  # its progress bars have no switch
        model = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
    tied = model.config.tie_word_embeddings
    state = {k: v.half().contiguous() for k, v in model.state_dict().items() if not (tied and k == "lm_head.weight")}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})

    fields = GGUFReader(source).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(m.split(" ")) for m in fields["tokenizer.ggml.merges"].contents()]
    kinds = fields["tokenizer.ggml.token_type"].contents()
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges))
    # GGUF's "smollm": every digit apart, then byte-level pieces without a blank put in front
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    control = 3
    special = [t for t, kind in zip(tokens, kinds, strict=True) if kind == control]
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in special])
    # texts were parted by the first token when this model was trained; <|im_start|> only opens a turn of a dialogue
    first = tokens[0]
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=first, eos_token=first, pad_token=first, unk_token=first
    ).save_pretrained(folder)

    config = model.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    config.bos_token_id = config.eos_token_id = config.pad_token_id = 0
    config.dtype = torch.float16
    config.save_pretrained(folder)
