"""Writing an 8-bit DeBERTa encoder out of an ONNX file as plain safetensors, once, so that it can be trained further.

ONNX Runtime does not give the weights of a file away, and the package `onnx` is larger than this reader of the few
fields that matter here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from elench.errors import UsageError
from elench.models.bert import NORMS, WHOLE
from elench.models.checkpoints import FAMILIES, need

Array = npt.NDArray[np.generic]
KINDS = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64}
"""Number types of ONNX tensors."""
QUANTISED = "_quantized"
LAYER = re.compile(r"/(deberta/encoder/layer\.\d+/.+?)(?:_\d+)?/MatMul(?:_quant)?$")
"""A product's name tells whose weights it multiplies; `_1` is the same layer applied to the distance vectors."""


@dataclass
class _Graph:
    """The weights of a file, and which of them each matrix product or copy reads."""

    weights: dict[str, Array] = field(default_factory=dict)
    products: list[tuple[str, list[str]]] = field(default_factory=list)
    copies: dict[str, str] = field(default_factory=dict)


def write_out(source: Path, folder: Path) -> None:
    """Put config and float16 weights of the encoder in an ONNX file into `folder`, and the tokenizer where readers
    look for it."""
    need("safetensors", "tokenizers")
    from safetensors.numpy import save_file

    try:
        made = _tensors(_read(source))
    except (IndexError, KeyError, ValueError, OverflowError):
        raise UsageError(f"{source.name}: damaged, or not an ONNX file with 8-bit weights") from None
    if odd := sorted(_names() ^ made.keys()):  # what a checkpoint lacks would be made up when it is loaded
        raise UsageError(f"{source.name}: not a DeBERTa-v3-xsmall: {'has' if odd[0] in made else 'lacks'} {odd[0]}")
    found = {name: np.ascontiguousarray(values.astype(np.float16)) for name, values in made.items()}
    save_file(found, folder / "model.safetensors", metadata={"format": "pt"})
    config = {
        **FAMILIES["deberta"], "architectures": ["DebertaV2Model"], "layer_norm_eps": 1e-7, "type_vocab_size": 0,
        "max_position_embeddings": 512, "max_relative_positions": -1, "norm_rel_ebd": "layer_norm",
        "position_biased_input": False, "relative_attention": True, "pad_token_id": 0, "pooler_dropout": 0,
        "pooler_hidden_act": "gelu", "pooler_hidden_size": 384,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    for path in sorted(folder.rglob("*.json")):
        if path.parent != folder:
            path.rename(folder / path.name)
            if not any(path.parent.iterdir()):
                path.parent.rmdir()
    settings = folder / "tokenizer_config.json"
    plain = json.loads(settings.read_text(encoding="utf-8")) | {"tokenizer_class": "PreTrainedTokenizerFast"}
    settings.write_text(json.dumps(plain, indent=2) + "\n", encoding="utf-8")  # transformers' own class reads it anew


def _names() -> set[str]:
    """The tensors of the encoder and its pooler by their names in a checkpoint."""
    depth = cast(int, FAMILIES["deberta"]["num_hidden_layers"])
    inner = (*(f"attention.self.{part}_proj" for part in ("query", "key", "value")), *WHOLE, *NORMS)
    parts = ["deberta.embeddings.LayerNorm", "deberta.encoder.LayerNorm", "pooler.dense"]
    parts += [f"deberta.encoder.layer.{n}.{part}" for n in range(depth) for part in inner]
    tables = {"deberta.embeddings.word_embeddings.weight", "deberta.encoder.rel_embeddings.weight"}
    return tables | {f"{part}.{end}" for part in parts for end in ("weight", "bias")}


def _tensors(graph: _Graph) -> dict[str, Array]:
    """The encoder's tensors by their names in a checkpoint, as float32; its classifier is left out."""
    made = {}
    for name, values in graph.weights.items():
        plain = name.partition(".")[2]
        if plain.startswith(("deberta.", "pooler.")) and values.dtype == np.float32 and not name.endswith("_scale"):
            made[plain] = values
        elif plain.startswith("deberta.embeddings.") and name.endswith(QUANTISED):
            made[plain.removesuffix(QUANTISED)] = _whole(graph.weights, name)
        elif plain.startswith("pooler.") and name.endswith(QUANTISED):
            made[plain.removesuffix(QUANTISED)] = _whole(graph.weights, name).T
    for product, inputs in graph.products:
        if match := LAYER.search(product):
            target = f"{match[1].replace('/', '.')}.weight"
            for name in (graph.copies.get(x, x) for x in inputs):
                if name.endswith(QUANTISED) and name in graph.weights:
                    made.setdefault(target, _whole(graph.weights, name).T)
                elif name in graph.weights and graph.weights[name].ndim == 2:
                    made[target] = graph.weights[name].T  # in full precision: better than the 8 bits
    return made


def _whole(weights: Mapping[str, Array], name: str) -> npt.NDArray[np.float32]:
    """The numbers that 8-bit weights stand for."""
    base = name.removesuffix(QUANTISED)
    zero = weights[f"{base}_zero_point"].astype(np.float32)
    scale = weights[f"{base}_scale"].astype(np.float32)
    found: npt.NDArray[np.float32] = (weights[name].astype(np.float32) - zero) * scale
    return found


# --- the file's format: fields with a number and a kind (protocol buffers) -------------------------------------------


def _read(path: Path) -> _Graph:
    graph = _Graph()
    content = memoryview(np.memmap(path, mode="r", dtype=np.uint8))  # type: ignore[arg-type]  # an array of bytes
    for model_field, inner in _fields(content):
        if model_field == 7 and isinstance(inner, memoryview):
            for number, value in _fields(inner):
                if number == 1 and isinstance(value, memoryview):
                    _add_node(graph, value)
                elif number == 5 and isinstance(value, memoryview):
                    _add_tensor(graph, value)
    if not graph.weights:
        raise UsageError(f"{path.name}: holds no ONNX weights")
    return graph


def _fields(content: memoryview) -> Iterator[tuple[int, memoryview | int]]:
    """Number and value of each field of a message: bytes, or a whole number."""
    at = 0
    while at < len(content):
        key, at = _number(content, at)
        kind = key & 7
        if kind == 0:
            value, at = _number(content, at)
            yield key >> 3, value
            continue
        size, at = _number(content, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
        if at + size > len(content):
            raise ValueError("cut off")
        yield key >> 3, content[at : at + size]
        at += size


def _number(content: memoryview, at: int) -> tuple[int, int]:
    """A whole number, seven bits a byte, and where it ends."""
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _add_node(graph: _Graph, content: memoryview) -> None:
    texts: dict[int, list[str]] = {1: [], 2: [], 3: [""], 4: [""]}
    for number, value in _fields(content):
        if number in texts and isinstance(value, memoryview):
            texts[number].append(bytes(value).decode())
    inputs, outputs, name, kind = texts[1], texts[2], texts[3][-1], texts[4][-1]
    if kind == "Identity":
        graph.copies[outputs[0]] = inputs[0]
    elif kind in ("MatMul", "MatMulInteger"):
        graph.products.append((name, inputs))


def _add_tensor(graph: _Graph, content: memoryview) -> None:
    shape: list[int] = []
    name, kind, raw = "", 0, b""
    listed: list[int] = []
    for number, value in _fields(content):
        if number == 1:
            shape += [value] if isinstance(value, int) else _numbers(value)
        elif number == 2 and isinstance(value, int):
            kind = value
        elif number == 8 and isinstance(value, memoryview):
            name = bytes(value).decode()
        elif number in (4, 9) and isinstance(value, memoryview):
            raw += bytes(value)
        elif number in (5, 7):
            listed += [value] if isinstance(value, int) else _numbers(value)
    if kind in KINDS:
        signed = np.array(listed, np.uint64).view(np.int64)  # -n is listed as 2⁶⁴ - n
        values = np.frombuffer(raw, KINDS[kind]) if raw else signed.astype(KINDS[kind])
        graph.weights[name] = values.reshape(shape)


def _numbers(content: memoryview) -> list[int]:
    found, at = [], 0
    while at < len(content):
        value, at = _number(content, at)
        found.append(value)
    return found
