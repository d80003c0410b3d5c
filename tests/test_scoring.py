"""elench.score takes what people have and gives back something readable."""

from dataclasses import dataclass

import pytest

import elench
from elench.errors import UsageError

ROWS = [
    {"id": "1", "system": "s", "judge": "answer", "answer": "the red fox", "references": ["the red fox"]},
    {"id": "2", "system": "t", "judge": "answer", "answer": "a dog", "references": ["the red fox", "a dog barked"]},
    {"id": "3", "system": "t", "judge": "answer", "answer": "", "references": ["x"]},
]


@dataclass
class Row:
    id: str
    answer: str
    references: list
    judge: str = "answer"


def sources(tmp_path):
    import datasets
    import pandas
    import polars

    from elench.records.record import Record, write_records

    write_records([Record.from_object(r) for r in ROWS], tmp_path / "rows.jsonl")
    return {
        "dicts": ROWS,
        "dataclasses": [Row(r["id"], r["answer"], r["references"]) for r in ROWS],
        "records": [elench.Record.from_object(r) for r in ROWS],
        "pandas": pandas.DataFrame(ROWS),
        "polars": polars.DataFrame(ROWS),
        "datasets": datasets.Dataset.from_list(ROWS),
        "columns": {name: [r[name] for r in ROWS] for name in ROWS[0]},
        "path": tmp_path / "rows.jsonl",
        "generator": (r for r in ROWS),
    }


def test_every_source_gives_the_same_numbers(tmp_path):
    for name, source in sources(tmp_path).items():
        result = elench.score(source, ["f1", "em"])
        assert result["f1"] == {"1": 1.0, "2": pytest.approx(2 / 3), "3": None}, name
        assert result.unscored["f1"] == {"3": "empty answer"}, name


def test_the_result_prints_indexes_and_becomes_a_table():
    result = elench.score(ROWS, "f1,em")
    assert result["f1", "1"] == 1.0 and result["1"] == {"f1": 1.0, "em": 1.0}
    assert "f1" in repr(result) and "0.8333" in repr(result)
    assert "<table>" in result._repr_html_() and "0.8333" in result._repr_html_()
    frame = result.to_pandas()
    assert list(frame.columns) == ["id", "system", "f1", "em"] and frame["f1"].isna().sum() == 1
    assert len(result) == 3 and next(iter(result))["evidence"]["f1"]
    assert result.summary()["f1"]["systems"]["s"]["n"] == 1
    assert result.signatures["f1"].startswith("f1[")
    with pytest.raises(KeyError, match="neither a metric"):
        result["nothing"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ([], "no records"),
        ([{"id": "1", "references": {"a": 3}}], "record 0: field 'references'"),
        ([3], "record 0"),
        (3, "cannot read records"),
        ({"answer": ["a", "b"], "references": [["a"]]}, "different lengths: answer 2, references 1"),
    ],
)
def test_bad_input_is_named(source, said):
    with pytest.raises(UsageError, match=said):
        elench.score(source, "f1")


def test_importing_elench_loads_nothing_heavy():
    import subprocess
    import sys

    code = (
        "import sys, elench; elench.score([{'answer': 'a', 'references': ['a']}], 'f1,bleu');"
        "print([m for m in ('torch', 'pandas', 'transformers', 'spacy', 'sklearn') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
