"""ONNX Runtime gives torch's numbers: in graphs of a tiny shape without any download, and on the shipped models."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnx")

import elench  # noqa: E402
from elench.errors import MissingModel  # noqa: E402
from elench.metrics import all_metrics  # noqa: E402
from elench.models import causal, encoder, torch_networks  # noqa: E402
from elench.models.base import Identity, ModelChoice, ModelSet, load, resolve  # noqa: E402
from elench.models.bert import Bert, buckets, weights_of  # noqa: E402
from elench.models.llama import Llama, rope_theta  # noqa: E402
from elench.models.onnx_session import GRAPHS, tensors  # noqa: E402
from elench.models.tokens import Tokens, padded  # noqa: E402
from elench.records.record import read_records  # noqa: E402
from elench.requests import Classify, ClassifyQuestion, Continue, Embed, Read, Recover, Relate, Weigh  # noqa: E402
from elench.train.bert_graphs import BertShape, bert, masked_head  # noqa: E402
from elench.train.graphs import graphs  # noqa: E402
from elench.train.llama_graphs import LlamaShape, llama, llama_head  # noqa: E402
from tests.tiny import tiny  # noqa: E402

QUESTION, CONTEXT = "Who wrote the great book?", "Jane Austen wrote the great old book in the city by the river."
LONG = " ".join([CONTEXT, "When was the king in the new city?"] * 30)


def shape_of(folder: Path) -> BertShape:
    config = json.loads((folder / "config.json").read_text())
    names = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size")
    relative = config["model_type"] == "mpnet"
    return BertShape(*(config[n] for n in names), epsilon=config["layer_norm_eps"], relative=relative)


def tiny_bert(folder: Path, dtype: str = "float32") -> Bert:
    """The tiny checkpoint in graphs of its own shape."""
    shape, end = shape_of(folder), "-int8" if dtype == "int8" else ""
    name = "mpnet" if shape.relative else "minilm"
    made: dict[str, Any] = {
        f"{name}-{n}{end}": bert(replace(shape, layers=n), bool(end)) for n in range(1, shape.layers + 1)
    }
    made[f"{name}-relate{end}"] = bert(shape, bool(end), relate=True)
    made[f"{name}-masked"] = masked_head(shape)
    weights = weights_of(Identity("encoder", folder.name, "", folder=folder))
    return Bert(weights, dtype, {name: model.SerializeToString() for name, model in made.items()})


def both(dtype: str = "float32", kind: str = "bert") -> tuple[encoder.Encoder, encoder.Encoder]:
    """The tiny encoder in ONNX Runtime and in torch."""
    theirs: Any = ModelSet({"encoder": str(tiny(kind))})["encoder"]
    theirs.tokens.typed = kind == "bert"  # MiniLM is told which text of a pair a piece belongs to
    body = tiny_bert(tiny(kind), dtype)
    body.window = theirs.window
    return encoder.Encoder(body, theirs.tokens), theirs


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
@pytest.mark.parametrize("layer", [0, 1, 2, 3])
def test_states_of_every_layer_are_torchs(layer: int, kind: str) -> None:
    ours, theirs = both(kind=kind)
    asked = [Embed(CONTEXT, layer), Embed("who?", layer), Embed(LONG, layer)]
    for a, b in zip(ours.answer(asked), theirs.answer(asked), strict=True):
        np.testing.assert_allclose(a.vectors, b.vectors, atol=1e-5)


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_relevance_is_torchs_whatever_shares_the_batch(kind: str) -> None:
    ours, theirs = both(kind=kind)
    asked = [Relate(QUESTION, CONTEXT), Relate("when?", LONG), Relate(QUESTION, CONTEXT, "raw", "mean", "paper")]
    for a, b in zip(ours.answer(asked), theirs.answer(asked), strict=True):
        assert a.layers == pytest.approx(b.layers, abs=1e-5) and a.matches == b.matches


@pytest.mark.parametrize("kind", ["bert-mlm", "mpnet-mlm"])
def test_masked_words_are_torchs(kind: str) -> None:
    theirs = ModelSet({"masked": str(tiny(kind))})["masked"].network  # type: ignore[attr-defined]
    ours = tiny_bert(tiny(kind))
    decoders = ("cls.predictions.decoder.weight", "lm_head.decoder.weight")
    for decoder in (ours.weights[name] for name in decoders if name in ours.weights):
        assert np.array_equal(decoder, ours.words)  # tied
    rows, places = [[2, 40, 4, 50, 3], [2, 4, 60, 3]], [(0, 2), (1, 1), (0, 3)]
    np.testing.assert_allclose(
        ours.masked(rows, places, [41, 61, 50]), theirs.masked(rows, places, [41, 61, 50]), atol=1e-5
    )


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_a_pair_classifier_and_a_span_model_are_torchs(kind: str, tmp_path: Path) -> None:
    rows, types = [[2, 40, 3, 50, 51, 3], [2, 60, 3]], np.array([[0, 0, 0, 1, 1, 1], [0] * 6])
    tokens = Tokens.from_folder(tiny(kind))
    tokens.typed = kind == "bert"
    torch.manual_seed(3)
    pairs = torch_networks.build_classifier(tiny(kind), {"labels": ["no", "yes", "perhaps"]}).eval()
    spans = torch_networks.build_reader(tiny(kind), {}).eval()
    for net, name in ((pairs, "pairs"), (spans, "spans")):
        for head in (p for n, p in net.named_parameters() if n.startswith(("classifier", "qa_outputs"))):
            torch.nn.init.normal_(head)
        net.save_pretrained(tmp_path / name)
    theirs = torch_networks.Network(pairs, tokens).logits(rows, types)
    np.testing.assert_allclose(tiny_bert(tmp_path / "pairs").logits(rows, types), theirs, atol=1e-5, rtol=1e-5)
    network = torch_networks.Network(spans, tokens)
    sides = zip(tiny_bert(tmp_path / "spans").spans(rows, types), network.spans(rows, types), strict=True)
    for ours, wanted in sides:
        for k, row in enumerate(rows):
            np.testing.assert_allclose(ours[k, : len(row)], wanted[k, : len(row)], atol=1e-5, rtol=1e-5)


def test_the_bias_by_distance_is_transformers() -> None:
    from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

    distances = np.arange(-512, 513)
    wanted = MPNetEncoder.relative_position_bucket(torch.from_numpy(-distances))
    assert buckets(distances).tolist() == wanted.tolist()


@pytest.mark.parametrize("half", [False, True])
def test_a_tiny_language_model_is_torchs(half: bool) -> None:
    """Rows that share a beginning and rows alone, against the same checkpoint in torch; stored as float32 or float16."""
    folder = tiny("llama")
    config = json.loads((folder / "config.json").read_text())
    names = ("num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "intermediate_size")
    shape = LlamaShape(*(config[n] for n in names), config["vocab_size"], config["rms_norm_eps"])
    end = "" if half else "-float32"
    made = {f"smollm{end}": llama(shape, half), f"smollm-head{end}": llama_head(shape, half)}
    weights = dict(tensors(folder / "model.safetensors"))
    theirs: Any = ModelSet({"causal": str(folder)})["causal"]
    if half:
        weights = {name: values.astype(np.float16) for name, values in weights.items()}
        for parameter in theirs.network.model.parameters():
            parameter.data = parameter.data.half().float()
    graphs_ = {name: model.SerializeToString() for name, model in made.items()}
    network = Llama(weights, rope_theta(folder), size=shape.size, graphs=graphs_)
    ours = causal.Causal(network, theirs.tokens, theirs.window)
    asked = [Continue(CONTEXT * 2, f" {w}") for w in ("jane", "the king", "the old city")] + [
        Continue("", "who?", True)
    ]
    for a, b in zip(ours.answer(asked), theirs.answer(asked), strict=True):
        assert a.logprobs == pytest.approx(b.logprobs, abs=1e-5)


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_int8_is_near_and_no_answer_depends_on_its_batch(kind: str) -> None:
    ours, theirs = both("int8", kind)
    asked = [Embed(CONTEXT, 3), Embed("the king", 3), Embed(LONG, 3)]
    together = ours.answer(asked)
    for request, a, b in zip(asked, together, theirs.answer(asked), strict=True):
        alike = (a.vectors * b.vectors).sum(1) / np.linalg.norm(a.vectors, axis=1) / np.linalg.norm(b.vectors, axis=1)
        assert alike.min() > 0.995 and np.abs(a.vectors - b.vectors).max() > 0
        np.testing.assert_allclose(ours.answer([request])[0].vectors, a.vectors, atol=1e-5)


def test_shipped_graphs_are_what_the_command_writes() -> None:
    for name, model in graphs().items():
        content = model.SerializeToString(deterministic=True)
        assert (GRAPHS / f"{name}.onnx").read_bytes() == content and len(content) < 1_000_000, name


# --- the shipped models ----------------------------------------------------------------------------------------------

ASKED: dict[str, list[Any]] = {
    "encoder": [Embed(CONTEXT), Embed(LONG, 1), Relate(QUESTION, CONTEXT), Relate(QUESTION, LONG)],
    "causal": [Continue("", CONTEXT), Continue(CONTEXT, " Who wrote it?"), Continue(LONG, CONTEXT, end=True)]
    + [Continue(CONTEXT, f" {w}") for w in ("Jane Austen", "the city", "1813")],
    "reader": [Read(QUESTION, CONTEXT, "Jane Austen"), Read("When was it sold?", LONG)],
    "keyphrases": [
        Weigh(QUESTION, "Jane Austen wrote it in 1813."),
        Weigh("", "the city", "code"),
        Weigh(QUESTION, LONG),
    ],
    "classes": [ClassifyQuestion(QUESTION), ClassifyQuestion(LONG), ClassifyQuestion("")],
    "masked": [Recover(CONTEXT, QUESTION, "Jane Austen"), Recover(LONG, "When?", "1813", "code")],
    "support": [Classify("support", CONTEXT, "Jane Austen wrote a book."), Classify("support", LONG, QUESTION)],
    "equivalent": [Classify("equivalent", "Jane Austen", "J. Austen")],
    "wellformed": [Classify("wellformed", QUESTION)],
}


def numbers(answer: Any) -> list[float]:
    """All numbers in an answer, in order."""
    if isinstance(answer, float | int):
        return [float(answer)]
    if isinstance(answer, np.ndarray):
        return [float(v) for v in answer.ravel()]
    if isinstance(answer, dict):
        return [n for v in answer.values() for n in numbers(v)]
    if isinstance(answer, tuple | list):
        return [n for v in answer for n in numbers(v)]
    return [n for v in vars(answer).values() for n in numbers(v)] if hasattr(answer, "__dict__") else []


def in_torch(identity: Identity) -> Any:
    """The same model, run by torch."""
    fields = {**vars(identity), "runtime": "torch", "device": "cpu"}
    return load(Identity(**fields))


@pytest.mark.embedded
@pytest.mark.parametrize(
    ("role", "family"),
    [
        *((role, "embedded") for role in ASKED),
        *((role, "large") for role in ("encoder", "masked", "reader", "support", "equivalent", "wellformed")),
    ],
)
def test_every_role_gives_torchs_numbers(role: str, family: str) -> None:
    try:
        identity = resolve(ModelChoice(role, family=family))
    except MissingModel as missing:
        pytest.skip(str(missing))
    assert identity.runtime == "onnx" and identity.dtype == "float32"
    ours, theirs = load(identity), in_torch(identity)
    for request, a, b in zip(ASKED[role], ours.answer(ASKED[role]), theirs.answer(ASKED[role]), strict=True):
        assert numbers(a) == pytest.approx(numbers(b), abs=1e-4), request


@pytest.mark.embedded
def test_every_metric_gives_torchs_scores_on_the_sample() -> None:
    """One record of each kind; QuestEval's family with the cloze asker, which needs no model."""
    specs = [name for name, made in all_metrics().items() if set(made().roles) & set(ASKED)]
    every = list(read_records(Path(__file__).parents[2] / "sample" / "records.jsonl"))
    records = [next(r for r in every if r.judge == judge) for judge in ("question", "answer", "summary")]
    records.append(replace(records[1], id="with a context", context=CONTEXT))
    try:
        identities = {role: resolve(ModelChoice(role)) for role in ASKED}
    except MissingModel as missing:
        pytest.skip(str(missing))
    asker = {"asker": "cloze"}
    theirs = ModelSet(asker, loaded={role: in_torch(identity) for role, identity in identities.items()})
    ours, wanted = (elench.score(records, specs, models=m, cache=False) for m in (ModelSet(asker), theirs))
    for spec in specs:
        scored = [v for v in wanted.values(spec) if v is not None]
        assert scored and [v for v in ours.values(spec) if v is not None] == pytest.approx(scored, abs=1e-3), spec


@pytest.mark.embedded
def test_int8_says_so_and_bfloat16_needs_torch() -> None:
    try:
        small, half = (resolve(ModelChoice("encoder", dtype=d)) for d in ("int8", "bfloat16"))
        shipped = resolve(ModelChoice("classes", dtype="bfloat16", device="cuda"))
    except MissingModel as missing:
        pytest.skip(str(missing))
    assert (small.runtime, small.dtype) == ("onnx", "int8")
    assert resolve(ModelChoice("causal", dtype="int8")).dtype == "float32", "too coarse for sums of log-probabilities"
    assert (half.runtime, half.dtype) == ("torch", "bfloat16")
    assert (shipped.runtime, shipped.dtype, shipped.device) == ("onnx", "float32", "cpu")


def test_padding_and_frames_follow_the_tokenizer() -> None:
    tokens = Tokens.from_folder(tiny("bert"))
    assert tokens.pair([40], [50, 51]) == ([2, 40, 3, 50, 51, 3], 3)
    assert padded([[1, 2], [3]], 9).tolist() == [[1, 2], [3, 9]]
    assert torch_networks.FACTS == 9
