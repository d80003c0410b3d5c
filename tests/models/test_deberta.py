"""DeBERTa on ONNX Runtime and the training attention, against transformers' own; weights out of an 8-bit ONNX file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from transformers import DebertaV2Config, DebertaV2ForQuestionAnswering, DebertaV2ForSequenceClassification
from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

from elench.errors import UsageError
from elench.models.bert import _plain
from elench.models.deberta import Deberta, buckets
from elench.models.onnx_weights import write_out
from elench.train.deberta_graphs import DebertaShape, deberta
from elench.train.relative_attention import quicken, sheared

SHAPE = DebertaShape(layers=2, width=48, inner=64)
ROWS = [[5, 9, 44, 7, 30, 12, 8], [11, 3, 6], [*range(3, 40)]]


def tiny(kind: type) -> torch.nn.Module:
    torch.manual_seed(3)
    config = DebertaV2Config(
        vocab_size=50, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, intermediate_size=64,
        relative_attention=True, position_buckets=256, norm_rel_ebd="layer_norm", share_att_key=True,
        pos_att_type=["p2c", "c2p"], type_vocab_size=0, position_biased_input=False, layer_norm_eps=1e-7,
        pooler_hidden_size=48, pooler_hidden_act="gelu", pooler_dropout=0, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, num_labels=3 if kind is DebertaV2ForSequenceClassification else 2,
    )  # fmt: skip
    model = kind(config)
    with torch.no_grad():
        for p in model.parameters():  # large enough for attentions that are far from even
            p.add_(torch.randn_like(p) * 0.15)
    return model.eval()


def ours(model: torch.nn.Module, int8: bool = False) -> Deberta:
    weights = {_plain(name): p.detach().numpy() for name, p in model.named_parameters()}
    return Deberta(weights, "int8" if int8 else "float32", deberta(SHAPE, int8).SerializeToString())


def padded(rows: list[list[int]]) -> dict[str, torch.Tensor]:
    width = max(map(len, rows))
    ids = torch.tensor([[*r, *[0] * (width - len(r))] for r in rows])
    return {"input_ids": ids, "attention_mask": torch.tensor([[int(k < len(r)) for k in range(width)] for r in rows])}


def test_classes_are_those_of_transformers():
    model = tiny(DebertaV2ForSequenceClassification)
    with torch.no_grad():
        wanted = model(**padded(ROWS)).logits.numpy()
    assert np.ptp(wanted, axis=0).max() > 0.05
    np.testing.assert_allclose(ours(model).logits(ROWS), wanted, atol=2e-5)


def test_spans_are_those_of_transformers_and_do_not_depend_on_the_batch():
    model = tiny(DebertaV2ForQuestionAnswering)
    with torch.no_grad():
        out = model(**padded(ROWS))
    network = ours(model)
    together = network.spans(ROWS, np.zeros((3, 37), int))
    for i, row in enumerate(ROWS):
        alone = network.spans([row], np.zeros((1, len(row)), int))
        for found, single, wanted in zip(together, alone, (out.start_logits, out.end_logits), strict=True):
            np.testing.assert_allclose(found[i, : len(row)], wanted[i, : len(row)].numpy(), atol=2e-5)
            np.testing.assert_allclose(found[i, : len(row)], single[0], atol=1e-5)


def test_eight_bits_stay_near_the_full_numbers():
    model = tiny(DebertaV2ForSequenceClassification)
    full, small = ours(model).logits(ROWS), ours(model, int8=True).logits(ROWS)
    assert 0 < np.abs(full - small).max() < 0.1


def test_distances_fall_into_the_buckets_of_transformers():
    back = torch.arange(-511, 512)
    wanted = make_log_bucket_position(back, 256, 512).long()
    assert (buckets(back.numpy()) == wanted.numpy()).all()


def test_products_are_sheared_by_distance():
    columns = torch.arange(-2, 3).repeat(3, 1)  # every column holds its own distance
    assert sheared(columns).tolist() == [[0, 1, 2], [-1, 0, 1], [-2, -1, 0]]


def test_the_training_attention_has_the_values_and_gradients_of_transformers():
    found = []
    for quick in (False, True):
        model = tiny(DebertaV2ForQuestionAnswering)
        if quick:
            quicken(model)
        out = model(**padded(ROWS))
        seen = padded(ROWS)["attention_mask"].bool()
        (out.start_logits[seen].pow(2).sum() + out.end_logits[seen].sum()).backward()
        found.append((out.start_logits[seen], {n: p.grad for n, p in model.named_parameters() if p.grad is not None}))
    (plain, wanted), (quick_logits, gradients) = found
    torch.testing.assert_close(quick_logits, plain, atol=1e-5, rtol=1e-4)
    assert wanted.keys() == gradients.keys()
    assert wanted["deberta.encoder.rel_embeddings.weight"].abs().max() > 1e-3
    for name, gradient in wanted.items():
        torch.testing.assert_close(gradients[name], gradient, atol=1e-4, rtol=1e-3)


def onnx_file(path: Path, layers: int) -> None:
    """A file as ONNX Runtime's quantiser writes it: 8-bit products, the same weights whole for the distances."""
    eight = np.array([[128, 130], [126, 0]], np.uint8)
    weights = [numpy_helper.from_array(np.array([1.5, -2.0], np.float32), "m.deberta.encoder.LayerNorm.bias")]
    embedding = "m.deberta.embeddings.word_embeddings.weight"
    parts = {"_quantized": eight, "_scale": np.float32(0.5), "_zero_point": np.uint8(128)}
    weights += [numpy_helper.from_array(np.asarray(v), embedding + end) for end, v in parts.items()]
    nodes = []
    for n in range(layers):
        name = f"/m/deberta/encoder/layer.{n}/output/dense/MatMul_quant"
        weights += [numpy_helper.from_array(np.asarray(v), f"onnx::MatMul_{n}{end}") for end, v in parts.items()]
        nodes.append(helper.make_node("MatMulInteger", ["x", f"onnx::MatMul_{n}_quantized"], [f"y{n}"], name=name))
    query = "/m/deberta/encoder/layer.0/attention/self/query_proj"
    weights.append(numpy_helper.from_array(np.array([[0.1, 0.2], [0.3, 0.4]], np.float32), "onnx::MatMul_q"))
    nodes += [
        helper.make_node("MatMulInteger", ["x", "onnx::MatMul_0_quantized"], ["q8"], name=f"{query}/MatMul_quant"),
        helper.make_node("Identity", ["onnx::MatMul_q"], ["copy"]),
        helper.make_node("MatMul", ["p", "copy"], ["q"], name=f"{query}_1/MatMul"),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.UINT8, [None, 2])]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", inputs, [], weights)), str(path))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tokens").mkdir()
    (tmp_path / "tokens" / "tokenizer_config.json").write_text('{"tokenizer_class": "DebertaV2Tokenizer"}')
    return tmp_path


def test_weights_are_read_out_of_an_onnx_file(folder: Path):
    from safetensors.numpy import load_file

    onnx_file(folder / "model.onnx", 12)
    write_out(folder / "model.onnx", folder)
    found = load_file(folder / "model.safetensors")
    assert found["deberta.embeddings.word_embeddings.weight"].tolist() == [[0, 1], [-1, -64]]  # (q - 128) / 2
    assert found["deberta.encoder.layer.7.output.dense.weight"].tolist() == [[0, -1], [1, -64]]  # outputs × inputs
    assert found["deberta.encoder.LayerNorm.bias"].tolist() == [1.5, -2]
    query = found["deberta.encoder.layer.0.attention.self.query_proj.weight"]  # the copy in full precision
    np.testing.assert_allclose(query, [[0.1, 0.3], [0.2, 0.4]], atol=1e-4)
    assert json.loads((folder / "tokenizer_config.json").read_text())["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert not (folder / "tokens").exists()


def test_another_encoder_is_refused(folder: Path):
    onnx_file(folder / "model.onnx", 3)
    with pytest.raises(UsageError, match="3 layers"):
        write_out(folder / "model.onnx", folder)
    (folder / "empty.onnx").write_bytes(b"\x08\x0a")
    with pytest.raises(UsageError, match="no ONNX weights"):
        write_out(folder / "empty.onnx", folder)
