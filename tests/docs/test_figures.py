"""README's agreement figures are those that `elench bench` measured on the whole files."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MEASURED = json.loads((ROOT / "docs/results/bench.json").read_text(encoding="utf-8"))["entries"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ROWS = {
    "rouge-l-kpqa[form=ours]": ("rouge-l-kpqa[form=ours], rouge-l, novel-f1", "kpqa_marco kpqa_semeval", "correctness"),
    "qa-overlap": ("qa-overlap, RQUGE", "qgeval_squad", "answer_consistency"),
    "roundtrip": ("roundtrip, ROUGE_L, METEOR", "lmqg", "correctness"),
}
"""README's row → metrics and peers in it, files, dimension."""


@pytest.mark.parametrize("row", ROWS)
def test_the_figures_of_a_row_are_the_measured_ones(row):
    (line,) = [line for line in README.splitlines() if line.startswith(f"| `{row}` |")]
    metrics, files, dimension = ROWS[row]
    for metric in metrics.split(", "):
        for file in files.split():
            same = [e for e in MEASURED if (e["metric"], e["file"], e["dimension"]) == (metric, file, dimension)]
            whole = max(same, key=lambda entry: entry["records"])
            assert f"{whole['r']:.3f}".lstrip("0") in line and f"n = {whole['n']:,}" in line
