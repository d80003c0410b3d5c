"""BERTScore against bert-score 0.3.13 on the same weights, to 1e-4."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

import elench
from elench.models.base import ModelChoice, ModelSet
from elench.models.checkpoints import find
from tests.tiny import tiny

bert_score = pytest.importorskip("bert_score")

PAIRS = [
    ("Who wrote the book?", ["Who is the author of the book?", "Which author wrote it?"]),
    ("When was the old king in the city?", ["When did the king live in the city?"]),
    ("  the river ", ["The great river, by the new city (3,50 €)."]),
    ("Jane Austen wrote it in 1811.", ["It was written by Jane Austen.", "Austen!", "In 1811"]),
    ("what?", ["where"]),
]
RECORDS = [{"id": str(i), "question": c, "references": r, "judge": "question"} for i, (c, r) in enumerate(PAIRS)]


def theirs(folder: Path, layer: int, idf: bool) -> dict[str, list[float]]:
    """bert-score's own P, R and F; with several references it takes the best of each."""
    candidates, references = [c for c, _ in PAIRS], [r for _, r in PAIRS]
    found = bert_score.score(
        candidates, references, model_type=str(folder), num_layers=layer, idf=idf, nthreads=0, device="cpu"
    )
    return {part: values.tolist() for part, values in zip("PRF", found, strict=True)}


def ours(folder: Path, spec: str) -> list[float]:
    found = elench.score(RECORDS, [spec], models=ModelSet({"encoder": str(folder)}), cache=False)
    return [found[spec][record["id"]] for record in RECORDS]


@pytest.mark.parametrize("idf", [False, True])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_equal_to_bert_score(kind: str, idf: bool) -> None:
    # with transformers 5 bert-score's prefix blank for RoBERTa is silently lost: space=off is what it computes
    expected = theirs(tiny(kind), 2, idf)
    for part in "PRF":
        spec = f"bertscore[layer=2,idf={'on' if idf else 'off'},space=off,part={part}]"
        assert ours(tiny(kind), spec) == pytest.approx(expected[part], abs=1e-4)


def test_equal_to_bert_score_with_the_blank_it_means_to_put(tmp_path: Path) -> None:
    blanked = Path(copytree(tiny("roberta"), tmp_path / "roberta"))
    settings: dict[str, Any] = json.loads((blanked / "tokenizer.json").read_text(encoding="utf-8"))
    settings["pre_tokenizer"]["add_prefix_space"] = True
    (blanked / "tokenizer.json").write_text(json.dumps(settings), encoding="utf-8")
    expected, without = theirs(blanked, 3, idf=False), theirs(tiny("roberta"), 3, idf=False)
    assert expected["F"] != pytest.approx(without["F"], abs=1e-3)
    assert ours(tiny("roberta"), "bertscore[layer=3]") == pytest.approx(expected["F"], abs=1e-4)


def test_the_baseline_is_subtracted_and_stretched_away() -> None:
    plain, scaled = (ours(tiny("bert"), spec) for spec in ("bertscore", "bertscore[baseline=0.3]"))
    assert scaled == pytest.approx([(x - 0.3) / 0.7 for x in plain])


@pytest.mark.embedded
def test_equal_to_bert_score_on_the_embedded_encoder() -> None:
    folder = find(ModelChoice("encoder")).folder
    expected = theirs(folder, 5, idf=True)
    assert ours(folder, "bertscore[layer=5,idf=on]") == pytest.approx(expected["F"], abs=1e-4)
