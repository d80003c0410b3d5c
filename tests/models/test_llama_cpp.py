"""GGUF files run by llama.cpp in this process: the same answers as over HTTP, one clear line where they cannot serve."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

import pytest

import elench
from elench.errors import MissingExtra, MissingModel, UsageError
from elench.models.base import ModelSet
from elench.models.catalog import entry
from elench.requests import Choose, Failure
from tests.models.gguf_files import smollm_gguf

SAMPLE = Path(__file__).parents[2] / "sample/records.jsonl"
RATE = Choose("The sky is blue. How fluent is this sentence? Answer with a number from 1 to 3.", ("1", "2", "3"))


@pytest.fixture
def gguf() -> Path:
    pytest.importorskip("xllamacpp")
    return smollm_gguf()


@pytest.mark.embedded
def test_a_gguf_file_judges_as_it_would_behind_a_server(gguf):
    xllamacpp = pytest.importorskip("xllamacpp")
    settings = xllamacpp.CommonParams()
    settings.model.path, settings.n_ctx, settings.port, settings.warmup = str(gguf), 2048, 0, False
    settings.cpuparams.n_threads, settings.no_extra_bufts = 1, True
    server = xllamacpp.Server(settings)
    (over_http,) = ModelSet({"judge": f"{server.listening_address}/v1"})["judge"].answer([RATE])
    (in_process,) = ModelSet({"judge": str(gguf)})["judge"].answer([RATE])
    assert in_process.probabilities == pytest.approx(over_http.probabilities, abs=1e-5)
    assert in_process.measured


@pytest.mark.embedded
def test_an_answer_does_not_depend_on_what_was_asked_before(gguf):
    records = [json.loads(line) for line in SAMPLE.read_text().splitlines()[:3]]
    models = ModelSet({"judge": str(gguf)})
    forward, backward = (elench.score(some, "judge", models=models, cache=False) for some in (records, records[::-1]))
    values = forward.values("judge")
    assert any(value is not None for value in values)
    assert values == pytest.approx(backward.values("judge")[::-1], abs=1e-5)


@pytest.mark.embedded
def test_a_prompt_beyond_the_window_is_unscored_with_the_reason(gguf):
    (failure,) = ModelSet({"judge": str(gguf)})["judge"].answer([Choose("word " * 9000, ("1", "2"))])
    assert isinstance(failure, Failure) and "exceeds the available context size" in str(failure.error)


def test_what_cannot_serve_is_refused_in_one_line(tmp_path, monkeypatch):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"not a model")
    for names, said in (
        ({"judge": "nowhere.gguf"}, "judge=nowhere.gguf: no such file"),
        ({"encoder": str(broken)}, "can serve as reader, asker, support, judge; not as encoder"),
        ({"causal": str(broken)}, "not as causal"),
    ):
        with pytest.raises(UsageError, match=said):
            ModelSet(names).identity(next(iter(names)))
    pytest.importorskip("xllamacpp")
    with pytest.raises(UsageError, match="cannot serve as this role"):
        ModelSet({"judge": str(broken)})["judge"]

    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("elench.models.llama_cpp.version", absent)
    with pytest.raises(MissingExtra, match=r"elench\[llama\]"):
        ModelSet({"judge": str(broken)}).identity("judge")


def test_the_identity_follows_the_file_and_the_prompt(tmp_path, monkeypatch):
    pytest.importorskip("xllamacpp")
    file = tmp_path / "model.gguf"
    file.write_bytes(b"one")
    one = ModelSet({"reader": str(file)}).identity("reader")
    assert str(one).startswith("reader=model.gguf@") and "/xllamacpp-" in str(one)
    monkeypatch.setitem(__import__("elench.models.http", fromlist=["PROMPTS"]).PROMPTS, "reader", "another {text}")
    assert ModelSet({"reader": str(file)}).identity("reader").key != one.key
    file.write_bytes(b"other")
    assert ModelSet({"judge": str(file)}).identity("judge").key != one.key


def test_large_lm_is_a_bigger_judge_and_the_embedded_models_otherwise(tmp_path, monkeypatch):
    known = entry("qwen2.5-coder-1.5b-instruct")
    assert known and (known.role, known.family, known.parts, known.bytes) == ("judge", "large-lm", 22, 1117320768)
    models = ModelSet(family="large-lm")
    assert {role: models.choice(role).family for role in ("judge", "reader", "causal")} == {
        "judge": "large-lm",
        "reader": "embedded",
        "causal": "embedded",
    }
    monkeypatch.setenv("ELENCH_CACHE", str(tmp_path))
    with pytest.raises(MissingModel, match="elench models pull qwen2"):
        models.identity("judge")
