"""`elench replicate` on parts of the data: samples, halves of a file, other models, unrelated pairs, mean correlations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import pearsonr

from elench.evaluate.replicate.compute import replicate
from elench.evaluate.replicate.human_agreement import averages
from elench.evaluate.replicate.sources import Materials
from elench.evaluate.replicate.values import unrelated
from elench.models.base import ModelSet


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_the_two_systems_of_kpqa_table_9_stay_apart_in_a_sample(tmp_path: Path) -> None:
    """The first half of the file is rated by its BLEU-1, the second half the other way round."""
    rows = []
    for k in range(1000):
        good = k % 2 == 0
        answer = "paris is the capital" if good else "maybe oslo then"
        rating = 5.0 if good == (k < 500) else 1.0
        rows.append({"id": str(k), "question": "q", "answer": answer, "references": ["paris is the capital of france"],
                     "judge": "answer", "human": {"correctness": rating}})  # fmt: skip
    write(tmp_path / "kpqa_marco.jsonl", rows)
    found = replicate("kpqa", Materials(tmp_path, lexical=True, limit=60), only="Table 9")
    lines = {t.name: next(x for x in t.lines if x.label == "BLEU-1") for t in found.tables if t.lines}
    first, second = lines["Table 9, MS-MARCO, UniLM"], lines["Table 9, MS-MARCO, MHPGM"]
    assert first.n + second.n == 60 and 15 < first.n < 45
    assert first.ours["pearson"] == pytest.approx(1) and second.ours["pearson"] == pytest.approx(-1)


def test_groups_are_drawn_whole_and_a_limit_draws_among_them(tmp_path: Path) -> None:
    rows = [{"id": str(k), "group": f"g{k // 4}", "summary": "s", "context": "c"} for k in range(80)]
    write(tmp_path / "r.jsonl", rows)
    whole = Materials(tmp_path, groups=5)
    drawn = [r.group for r in whole.records("r.jsonl")]
    assert len(drawn) == 20 and len(set(drawn)) == 5
    assert whole.places("r.jsonl").tolist() == [int(r.id) for r in whole.records("r.jsonl")]
    some = Materials(tmp_path, groups=5, limit=8).records("r.jsonl")
    assert len(some) == 8 and {r.group for r in some} <= set(drawn)
    assert [r.id for r in Materials(tmp_path, groups=5, seed=1).records("r.jsonl")] != [
        r.id for r in whole.records("r.jsonl")
    ]


def test_a_row_may_have_models_of_its_own() -> None:
    run = Materials(None, ModelSet({"causal": "small-lm", "encoder": "one"}, "large"))
    row = run.played_by({"encoder": "another"})
    assert row is not None and row.family == "large" and row.names == {"causal": "small-lm", "encoder": "another"}
    assert run.played_by(None) is run.models


def test_unrelated_pairs_take_question_and_context_from_different_records(tmp_path: Path) -> None:
    """Questions of 4 and 6 words; the short context shares "who" with a question, a BLEU-1 of 1/4 or 1/6."""
    questions = ["who saw blue whales", "when did seven tall ships arrive", "where do quick foxes sleep now"]
    contexts = ["Grass grows in spring. " * 5, "who", "Milk turns sour. " * 5]
    pairs = zip(questions, contexts, strict=True)
    write(tmp_path / "d.jsonl", [{"id": str(k), "question": q, "context": c} for k, (q, c) in enumerate(pairs)])
    entry = {"name": "t", "data": {"Data": "d.jsonl"}, "rows": {"b": {"spec": "length", "Data": 0.5}}}
    (line,) = unrelated(entry, Materials(tmp_path, limit=200)).lines
    assert line.theirs == {"mean": 0.5, "deviation": None} and line.part == "Data" and line.n == 200
    # left: (0, 2), (1, 0), (1, 2), (2, 0), (2, 1); (0, 1) shares a word
    assert line.ours["mean"] == pytest.approx((4 + 4 * 6) / 5, abs=0.2)
    assert 25 < int(line.note.split()[0]) < 60  # a sixth of the draws


def test_mean_correlations_stand_beside_the_papers_and_the_first_row(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    human, scores = rng.normal(size=(60, 2)), rng.normal(size=(60, 2))
    rows = [{"id": str(k), "summary": "s", "context": "c", "human": {"a": float(x), "b": float(y)}}
            for k, (x, y) in enumerate(human)]  # fmt: skip
    specs = ("questeval", "questeval[beams=2]")
    given = [{"id": str(k), "system": None, "scores": dict(zip(specs, map(float, pair), strict=True))}
             for k, pair in enumerate(scores)]  # fmt: skip
    write(tmp_path / "r.jsonl", rows)
    source = Materials(tmp_path, score_files=[write(tmp_path / "s.jsonl", given)], lexical=True)
    table = {"1": {"spec": specs[0], "value": 0.344}, "2": {"spec": specs[1]}, "5": {"spec": "questeval[beams=5]"}}
    found = averages({"name": "t", "data": "r.jsonl", "rows": table}, source).lines
    r = np.corrcoef(np.column_stack([scores, human]).T)
    assert found[0].ours == pytest.approx({"r": r[0, 2:].mean(), "r with the first": 1.0})
    assert found[1].ours == pytest.approx({"r": r[1, 2:].mean(), "r with the first": r[0, 1]})
    assert found[0].theirs["r"] == 0.344 and found[1].n == 60
    assert found[2].ours["r"] is None and "--lexical" in found[2].note


def test_the_folds_of_questeval_table_3_have_an_interval(tmp_path: Path) -> None:
    """scipy's confidence interval of Pearson's r; all questions are important, the share answered varies."""
    rng = np.random.default_rng(2)
    human, answered = rng.normal(size=40), rng.integers(0, 4, size=40)
    spec = "questeval[points=16,part=recall]"
    told = [
        [{"direction": "recall", "weight": 0.9, "unanswerable": 0.1 if i < k else 0.9} for i in range(4)]
        for k in answered
    ]
    rows = [
        {"id": str(k), "summary": "s", "context": "c", "human": {"relevance": float(x)}} for k, x in enumerate(human)
    ]
    given = [
        {"id": str(k), "system": None, "scores": {spec: 0.5}, "evidence": {spec: {"questions": t}}}
        for k, t in enumerate(told)
    ]
    write(tmp_path / "summeval.jsonl", rows)
    source = Materials(tmp_path, score_files=[write(tmp_path / "s.jsonl", given)], lexical=True)
    table = next(t for t in replicate("questeval", source, only="Table 3").tables if t.lines)
    line = next(x for x in table.lines if x.label == "important, answered")
    expected = pearsonr(answered / 4, human)
    assert line.ours["r"] == pytest.approx(expected.statistic)
    assert (line.low, line.high) == pytest.approx(tuple(expected.confidence_interval()))
