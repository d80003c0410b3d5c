"""Values that the authors published with their programs (reference-values/ of the shared data).

They come from the authors' checkpoints, which are not here, so the numbers themselves cannot be asked for (exact
parity: test_golden.py). What can: that the embedded models order the same answers alike, and that everything the
published figures show of the program's structure holds here, too.
"""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import pearsonr

import elench

DATA = Path(os.environ.get("ELENCH_DATA", Path(__file__).parents[3] / "shared" / "data")) / "reference-values"
pytestmark = [
    pytest.mark.validation,
    pytest.mark.embedded,
    pytest.mark.skipif(not DATA.is_dir(), reason="the shared data sets are not here (ELENCH_DATA)"),
]


def table(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_kpqa_orders_the_authors_sample_as_their_model_does() -> None:
    sample, published = table("kpqa_sample.csv"), table("kpqa_result.csv")
    assert len(sample) == len(published) == 10
    records = [
        {"id": str(k), "judge": "answer", "question": r["question"], "answer": r["answer"], "references": [r["reference1"]]}
        for k, r in enumerate(sample)
    ]  # fmt: skip
    names = {"BLEU-1-KPQA": "bleu1-kpqa", "ROUGE-L-KPQA": "rouge-l-kpqa", "BERTScore-KPQA": "bertscore-kpqa"}
    result = elench.score(records, [f"{name}[form=code]" for name in names.values()])
    for column, name in names.items():
        ours = result.values(f"{name}[form=code]")
        theirs = [float(row[column]) for row in published]
        assert pearsonr(ours, theirs).statistic > 0.75, (name, ours, theirs)
        assert min(range(10), key=ours.__getitem__) in sorted(range(10), key=theirs.__getitem__)[:6], name
        assert set(sorted(range(10), key=ours.__getitem__)[-2:]) & set(sorted(range(10), key=theirs.__getitem__)[-2:])


def test_questeval_takes_the_better_of_source_and_reference_as_published() -> None:
    constants: dict[str, Any] = json.loads((DATA / "questeval_constants.json").read_text(encoding="utf-8"))
    records = []
    for task in ("t2t", "sum"):
        texts = zip(constants[f"SRC_{task}"], constants[f"HYP_{task}"], constants[f"REF_{task}"], strict=True)
        scores = {name: found["ex_level_scores"] for name, found in constants[f"RES_{task}"].items()}
        for k, (source, summary, references) in enumerate(texts):
            joint, best = scores["source_reference"][k], max(scores["source"][k], scores["reference"][k])
            assert joint == pytest.approx(best, abs=1e-6)
            records.append({"id": f"{task} {k}", "judge": "summary", "context": source, "summary": summary,
                            "references": references})  # fmt: skip
    specs = {name: f"questeval[form=code,against={name}]" for name in ("references", "both")}
    specs["source"] = "questeval[form=code]"
    result = elench.score(records, list(specs.values()))
    for record in records:
        found = {name: result[spec, record["id"]] for name, spec in specs.items()}
        assert found["both"] == max(found["source"], found["references"]), record["id"]
    # the same summary twice, once beside a reference equal to it
    assert result[specs["source"], "sum 0"] == result[specs["source"], "sum 1"]
    assert result[specs["references"], "sum 0"] > result[specs["references"], "sum 1"]


def test_what_the_program_scores_0_for_want_of_text_is_unscored_here() -> None:
    constants = json.loads((DATA / "questeval_constants.json").read_text(encoding="utf-8"))
    assert constants["RES_empty"]["ex_level_scores"] == [0]
    record = {"id": "1", "judge": "summary", "context": constants["SRC_empty"][0], "summary": constants["HYP_empty"][0]}
    with pytest.warns(UserWarning, match="empty summary"):
        result = elench.score([record], ["questeval[form=code]"])
    assert result.unscored["questeval[form=code]"] == {"1": "empty summary"}
