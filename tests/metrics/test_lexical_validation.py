"""The sanity baselines reach the correlations with people that METRICS promises, on the shared judgement files."""

import os
from pathlib import Path

import pytest
from scipy.stats import pearsonr

from elench.engine.scoring import score
from elench.records.record import read_records

DATA = Path(os.environ.get("ELENCH_DATA", Path(__file__).parents[3] / "shared" / "data")) / "judgements"
pytestmark = [
    pytest.mark.validation,
    pytest.mark.skipif(not DATA.is_dir(), reason="no judgement files: set ELENCH_DATA"),
]


@pytest.mark.parametrize(
    ("spec", "file", "dimension", "promised"),
    [
        ("novel-f1", "kpqa_marco", "correctness", 0.686),
        ("novel-f1", "kpqa_semeval", "correctness", 0.728),
        ("source-overlap", "summeval", "consistency", 0.489),
        ("source-overlap", "summeval", "fluency", 0.352),
        ("source-overlap", "qags_cnndm", "consistency", 0.668),
        ("lead-overlap", "summeval", "relevance", 0.362),
        ("lead-overlap", "summeval", "coherence", 0.210),
        ("length", "qgeval_squad", "conciseness", -0.28),
        ("length", "summeval", "relevance", 0.26),
        ("answer-leak", "qgeval_squad", "answer_consistency", 0.291),
        ("near-answer", "qgeval_squad", "answer_consistency", 0.230),
    ],
)
def test_baseline_reaches_its_measured_figure(spec, file, dimension, promised):
    records = list(read_records(DATA / f"{file}.jsonl"))
    result = score(records, spec)
    scored = [
        (o.scores[spec].value, r.human[dimension]) for o, r in zip(result.outcomes, records, strict=True) if o.scores
    ]
    assert len(scored) >= 0.99 * len(records)
    assert pearsonr(*zip(*scored, strict=True))[0] == pytest.approx(promised, abs=0.015)
