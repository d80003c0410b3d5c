"""Training the reader: windows keep their answer, negatives have none, and the command leaves a model that loads."""

from __future__ import annotations

import json
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from elench.cli.train import command  # noqa: E402
from elench.errors import UsageError  # noqa: E402
from elench.models.base import ModelChoice  # noqa: E402
from elench.models.shipped import grow, load_shipped, shipped_identity, shrink  # noqa: E402
from elench.train.changes import changed  # noqa: E402
from elench.train.examples import Example, locate, read_jsonl, read_squad  # noqa: E402
from elench.train.reader_examples import NEGATIVES, EpochSampler, corpora, crop, tokenised  # noqa: E402
from elench.train.reader_scores import best_score, fit_belief, length_scores, near_misses  # noqa: E402
from tests.train.tiny import tiny_bert, tiny_corpora  # noqa: E402


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def sampler(base: Path, tmp_path_factory: pytest.TempPathFactory) -> EpochSampler:
    data = tiny_corpora(tmp_path_factory.mktemp("data"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    return EpochSampler(tokenised(corpora(data)[0], tokenizer), tokenizer)


def test_only_answers_that_stand_in_their_text_are_learnt(sampler: EpochSampler) -> None:
    assert {s.example.answers[0] for s in sampler.sources} == {"Oslo", "1999", "Dora", "the door", "Toledo"}
    assert len({s.example.group for s in sampler.sources}) == 3, "six articles are kept back"


def test_every_window_holds_its_answer(sampler: EpochSampler) -> None:
    rng = np.random.default_rng(0)
    for source in sampler.sources:
        for size in (4, 18, 25, 200):
            piece = crop(source, size, rng)
            assert piece.text[piece.start : piece.end + 1] == source.text[source.start : source.end + 1]
            assert len(piece.text) <= max(size + 20, 17 + 20)


@pytest.mark.parametrize("kind", NEGATIVES)
def test_negatives_do_not_hold_the_answer(sampler: EpochSampler, kind: str) -> None:
    rng = np.random.default_rng(1)
    groups = {
        s.example.group: [x for x in sampler.sources if x.example.group == s.example.group] for s in sampler.sources
    }
    made = [sampler.negative(kind, s, groups, 15, rng) for _ in range(20) for s in sampler.sources]
    for piece, source in zip(made, [s for _ in range(20) for s in sampler.sources], strict=True):
        if piece is not None:
            assert piece.start == -1
            answer = source.text[source.start : source.end + 1]
            within = any(piece.text[i : i + len(answer)] == answer for i in range(len(piece.text)))
            assert not within or piece.question != source.question
    assert kind == "article" or any(made), "articles of one paragraph have no other paragraph"


def test_a_changed_question_names_another_of_its_kind(sampler: EpochSampler) -> None:
    example = next(s.example for s in sampler.sources if s.example.answers == ("1999",))
    rng = np.random.default_rng(2)
    made = {changed(example, rng) for _ in range(200)}
    names = {
        f"When did {a} moved to {b}?"
        for a, b in (("Oslo", "Rome"), ("Dora", "Rome"), ("Carl", "Oslo"), ("Carl", "Dora"))
    }
    negated = {"When didn't Carl moved to Rome?", "When did Carl not moved to Rome?"}
    assert made == names | negated | {"When did Carl unmoved to Rome?"}


def test_generated_questions_join_their_article_but_not_those_kept_back(tmp_path: Path) -> None:
    data = tiny_corpora(tmp_path)
    kept = corpora(data)[1][0]
    other = next(e for e in corpora(data)[0] if e.context != kept.context)
    paragraphs = [
        {"context": e.context, "qas": [{"question": "Generated?", "answers": [{"text": "x", "answer_start": 0}]}]}
        for e in (kept, other)
    ]
    generated = tmp_path / "generated.json"
    generated.write_text(json.dumps({"data": [{"title": "text 0", "paragraphs": paragraphs}]}))
    more = [e for e in corpora(data, [generated])[0] if e.question == "Generated?"]
    assert [(e.context, e.group) for e in more] == [(other.context, other.group)]


def test_command_trains_packs_and_refuses(base: Path, tmp_path: Path) -> None:
    data, out = tiny_corpora(tmp_path / "data"), tmp_path / "out"
    run = ["reader", "--data", str(data), "--base", str(base), "--out", str(out)]
    done = CliRunner().invoke(command, [*run, "--steps", "3"], catch_exceptions=False)
    assert "3 steps" in done.output and (out / "card.md").exists()
    identity = shipped_identity(ModelChoice("reader"), out, base=base)
    trained = load_shipped(identity, _build)
    fresh = _build(base, {})
    same = dict(fresh.named_parameters())
    moved = {n for n, p in trained.named_parameters() if not bool((p == same[n]).all())}
    assert "bert.encoder.layer.1.output.dense.weight" in moved
    assert "bert.embeddings.word_embeddings.weight" not in moved and len(identity.sha256) == 64
    with pytest.raises(UsageError, match="--minutes or --steps"):
        CliRunner().invoke(command, run, catch_exceptions=False)
    empty = tmp_path / "empty"
    empty.mkdir()
    at_empty = [*run[:-1], str(empty)]
    with pytest.raises(UsageError, match="no weights there"):
        CliRunner().invoke(command, [*at_empty, "--evaluate"], catch_exceptions=False)
    with pytest.raises(UsageError, match="holds no checkpoint"):
        CliRunner().invoke(command, [*at_empty, "--pack"], catch_exceptions=False)
    for wrong in (["--batch", "0"], ["--lr", "-1"], ["--threads", "0"], ["--steps", "-1"]):
        assert CliRunner().invoke(command, [*run, *wrong]).exit_code == 2


def _build(folder: Path, settings: Any) -> Any:
    return transformers.AutoModelForQuestionAnswering.from_pretrained(folder)


@pytest.mark.parametrize(("kind", "error"), [("fp16", 1e-3), ("int8", 1.0 / 127)])
def test_stored_weights_come_back_nearly_whole(kind: str, error: float) -> None:
    import torch

    given = {"a.weight": torch.randn(64, 96), "a.bias": torch.randn(7)}
    back = grow(shrink(given, kind))
    assert back.keys() == given.keys()
    for name, tensor in given.items():
        assert float((torch.from_numpy(back[name]) - tensor).abs().max()) <= error * float(tensor.abs().max())


def test_answers_are_found_as_the_text_writes_them() -> None:
    assert locate("the sun.", "Then The Sun rose") == (5, "The Sun")
    assert locate("sun", "sunny days")[0] == -1


def test_bad_files_are_named_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"context": "x", "question": "y", "answer": "z"}\n{"context": "x"}\n')
    with pytest.raises(UsageError, match=r"a\.jsonl:2"):
        read_jsonl(tmp_path / "a.jsonl")
    (tmp_path / "b.json").write_text("[]")
    with pytest.raises(UsageError, match="not a SQuAD file"):
        read_squad(tmp_path / "b.json")


def test_scores_are_squads() -> None:
    # values of the official evaluate-v1.1.py rules, by hand
    assert best_score("The Swiss Alps!", ["swiss alps", "Alps"]) == (1.0, 1.0)
    assert best_score("in the Alps", ["swiss alps"]) == (0.0, pytest.approx(0.5))
    assert best_score("", []) == (1.0, 1.0) and best_score("x", []) == (0.0, 0.0)


def test_the_fitted_belief_is_the_logistic_regression_of_statsmodels() -> None:
    import statsmodels.api as sm

    rng = np.random.default_rng(3)
    odds = rng.normal(-1, 3, 4000)
    answerable = rng.random(4000) >= 1 / (1 + np.exp(-(0.6 * odds + 1.5)))
    found = fit_belief(list(1 / (1 + np.exp(-odds))), list(answerable))
    outside = sm.Logit(1.0 - answerable, sm.add_constant(odds)).fit(disp=0).params
    assert found == pytest.approx((outside[1], outside[0]), abs=0.02)  # a little shrunk towards a factor of 1


def test_lengths_are_scored_by_their_share() -> None:
    made = length_scores([1, 1, 2, 400])  # of 4 answers and 30 halves: an answer too long counts as the longest
    assert len(made) == 30
    assert made[:3] == pytest.approx([log(2.5 / 19), log(1.5 / 19), log(0.5 / 19)])
    assert made[-1] == pytest.approx(log(1.5 / 19))


def test_near_misses_are_half_unanswerable_and_do_not_hold_the_answer() -> None:
    texts = [f"The river Arno runs past town {i}. It was built in 19{i:02d} by Anna of Rome." for i in range(8)]
    asked = [
        Example(str(i), t, f"When was town {i} built in Rome?", (f"19{i:02d}",), t.index("19"), "A")
        for i, t in enumerate(texts)
    ]
    made = near_misses(asked, 8)
    assert sum(bool(e.answers) for e in made) * 2 == len(made) > 4
    for right, wrong in zip(made[::2], made[1::2], strict=True):
        assert right.answers and not wrong.answers
        assert wrong.question != right.question or right.answers[0] not in wrong.context
