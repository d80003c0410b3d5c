"""One loader: what a model is, is known before it is loaded; pickles are refused; shipped classifiers need no code."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from elench.cli import cli
from elench.engine.drive import Driver
from elench.errors import MissingModel, UsageError
from elench.models import checkpoints, shipped
from elench.models.base import Identity, ModelChoice, ModelSet, load_model, resolve
from elench.models.checkpoints import file_hash, remembered_hash
from elench.requests import Classify
from tests.tiny import tiny


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELENCH_CACHE", str(tmp_path / "cache"))
    checkpoints._memory.cache_clear()


def test_an_identity_names_files_runtime_and_dtype() -> None:
    plain = resolve(ModelChoice("encoder", str(tiny("bert"))))
    half = resolve(ModelChoice("encoder", str(tiny("bert")), dtype="bfloat16"))
    assert str(plain) == f"encoder={tiny('bert').name}@{plain.sha256[:12]}/torch/float32"
    assert plain.sha256 == half.sha256 and plain.key != half.key
    assert ModelSet({"encoder": str(tiny("bert"))}).fingerprint("encoder") == str(plain)


def test_resolving_loads_no_weights(tmp_path: Path) -> None:
    """In a fresh process: neither torch nor transformers is imported for a signature."""
    import subprocess

    code = (
        "import sys; from elench.models.base import *;"
        f"print(resolve(ModelChoice('causal', {str(tiny('gpt2'))!r})));"
        "print([m for m in ('torch', 'transformers', 'onnxruntime', 'spacy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1] == "[]"


def test_the_hash_of_a_file_is_remembered_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "w.bin"
    file.write_bytes(b"one")
    assert remembered_hash(file) == hashlib.sha256(b"one").hexdigest()
    read: list[Path] = []
    monkeypatch.setattr(checkpoints, "file_hash", lambda path: read.append(path) or file_hash(path))
    checkpoints._memory.cache_clear()  # as a new process would
    assert remembered_hash(file) == hashlib.sha256(b"one").hexdigest() and not read
    file.write_bytes(b"two!")
    assert remembered_hash(file) == hashlib.sha256(b"two!").hexdigest() and read == [file]


@pytest.mark.parametrize(
    "role", ["encoder", "causal", "masked", "seq2seq", "reader", "keyphrases", "classes", "support"]
)
def test_a_folder_with_only_a_pickle_is_refused(role: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text((tiny("bert") / "config.json").read_text())
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04N.")
    with pytest.raises(UsageError, match=r"pytorch_model.bin is a pickle, which is never read") as refused:
        load_model(ModelChoice(role, str(tmp_path)))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("role", "file", "why"),
    [
        ("encoder", "model.safetensors", "cannot serve as this role"),
        ("reader", "model.safetensors", "cannot serve as this role"),
        ("reader", "weights.safetensors", "no 'base'; weights.safetensors needs the config that `elench train reader`"),
        ("support", "weights.safetensors", "no 'base'"),
    ],
)
def test_a_damaged_folder_is_named_in_one_line(role: str, file: str, why: str, tmp_path: Path) -> None:
    tiny_model = tiny("bert")
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_text((tiny_model / name).read_text())
    (tmp_path / file).write_bytes(b"\x80\x04" + b"N" * 40)
    with pytest.raises(UsageError, match=why) as refused:
        load_model(ModelChoice(role, str(tmp_path)))
    assert "\n" not in str(refused.value) and str(tmp_path) in str(refused.value)


def test_an_unknown_dtype_is_refused() -> None:
    with pytest.raises(UsageError, match="--dtype float12"):
        resolve(ModelChoice("encoder", str(tiny("bert")), dtype="float12"))


def classifier(folder: Path, labels: list[str], **settings: Any) -> ModelSet:
    """A tiny pair classifier, stored as `elench train` stores one."""
    torch = pytest.importorskip("torch")
    from elench.models.shipped import save_shipped
    from elench.models.torch_networks import build_classifier

    torch.manual_seed(3)
    net = build_classifier(tiny("bert"), {"labels": labels}).eval()
    torch.nn.init.normal_(net.classifier.weight, std=1.0)
    save_shipped(net, folder, base_name=tiny("bert").name, base=tiny("bert"), settings={"labels": labels, **settings})
    return ModelSet({"support": str(folder)})


def test_a_model_that_does_not_run_as_asked_is_named(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    """Stored models have no float16: the command says so, and the signature prints what they really compute in."""
    from elench.cli._options import models_for
    from elench.metrics import metric

    monkeypatch.setenv("ELENCH_MODELS", str(tiny("bert").parent))
    classifier(tmp_path / "support", ["supported", "contradicted", "absent"])
    named = (f"support={tmp_path / 'support'}", f"encoder={tiny('bert')}")
    models = models_for([metric("support")], "embedded", named, "float16", None, False)
    said = capsys.readouterr().err
    assert "support=support@" in said and "/torch/float32 on cpu" in said and "encoder=" not in said
    assert models.fingerprint("encoder").endswith("/torch/float16")
    models_for([metric("support")], "embedded", named, "float32", "cpu", False)
    assert capsys.readouterr().err == ""


def test_a_stored_classifier_answers_without_code_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Probabilities equal those of transformers' own pair classifier on the same weights (float16 as stored)."""
    torch = pytest.importorskip("torch")
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    monkeypatch.setenv("ELENCH_MODELS", str(tiny("bert").parent))
    labels = ["supported", "contradicted", "absent"]
    models = classifier(tmp_path / "support", labels, temperature=2.0)
    first, second = "jane austen wrote it", "the great old book in the city"
    (found,) = Driver(models).answer([Classify("support", first, second)])
    assert list(found) == labels and sum(found.values()) == pytest.approx(1)
    net = AutoModelForSequenceClassification.from_pretrained(tiny("bert"), num_labels=3).eval()
    from safetensors.torch import load_file

    net.load_state_dict({k: v.float() for k, v in load_file(tmp_path / "support" / "weights.safetensors").items()})
    coded = AutoTokenizer.from_pretrained(tiny("bert"))(first, second, return_tensors="pt", return_token_type_ids=True)
    assert coded["token_type_ids"].sum() > 0
    with torch.inference_mode():
        expected = (net(**coded).logits[0] / 2.0).softmax(-1).tolist()
    assert list(found.values()) == pytest.approx(expected, abs=1e-5)
    assert models["support"].role == "support"


def test_long_pairs_are_split_and_no_answer_depends_on_its_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELENCH_MODELS", str(tiny("bert").parent))
    model = classifier(tmp_path / "support", ["no", "yes"], window=64)["support"]
    long = "jane austen wrote the great old book in the city by the river . " * 12
    asked = [
        Classify("support", "who wrote it ?", long),
        Classify("support", long, "the king"),
        Classify("support", long, long),
        Classify("support", "the king"),
        Classify("support", ""),
    ]
    together = model.answer(asked)
    for request, found in zip(asked, together, strict=True):
        assert found == pytest.approx(model.answer([request])[0], abs=1e-5)
    assert found["yes"] == pytest.approx(1 - found["no"])
    assert model.lengths(asked)[3] == 5


def test_the_key_of_an_identity_survives_json() -> None:
    """Workers and the cache compare keys between processes: no randomness, no object ids."""
    one = Identity("encoder", "x", "ab" * 32, "onnx", "int8")
    assert json.loads(json.dumps(one.key)) == Identity("encoder", "y", "ab" * 32, "onnx", "int8").key


def test_the_large_family_takes_its_own_shipped_models_and_else_the_embedded_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELENCH_MODELS", str(tiny("bert").parent))
    for place in (tmp_path / "support", tmp_path / "reader", tmp_path / "large" / "support"):
        classifier(place, ["no", "yes"])
    (tmp_path / "large" / "support" / "card.json").write_text('{"licence": "CC0"}')
    monkeypatch.setattr(shipped, "SHIPPED", tmp_path)
    found = {role: ModelSet(family="large").identity(role) for role in ("support", "reader")}
    assert found["support"].name == "shipped-large-support" and found["support"].folder.parent.name == "large"
    assert found["reader"].name == "shipped-reader" and found["reader"].folder == tmp_path / "reader"
    assert ModelSet().identity("support").name == "shipped-support"
    listed = CliRunner().invoke(cli, ["models", "list"]).output
    assert re.search(r"support +elench's own +large", listed)


def test_a_missing_large_encoder_says_how_to_get_the_whole_family(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELENCH_CACHE", str(tmp_path))
    monkeypatch.delenv("ELENCH_MODELS", raising=False)
    with pytest.raises(MissingModel, match=r"get it with: elench models pull --family large$"):
        ModelSet(family="large").identity("encoder")
    with pytest.raises(MissingModel, match=r"get it with: elench models pull deberta-v3-xsmall$"):
        ModelSet({"encoder": "deberta-v3-xsmall"}).identity("encoder")
