"""`elench replicate`: published tables come out as printed; score files are used; what is missing is said."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from elench.cli.replicate import command
from elench.errors import UsageError
from elench.evaluate.replicate.compute import PAPERS, Line, Table, replicate
from elench.evaluate.replicate.scores import Source
from elench.show.replication_tables import show

DATA = Path(os.environ.get("ELENCH_DATA", Path(__file__).parents[2] / ".." / "shared" / "data"))


def lines_of(table: Table) -> dict[str, Line]:
    return {line.label: line for line in table.lines}


def test_qascore_table_2_and_7_follow_from_the_published_scores() -> None:
    """QAScore Tables 1, 5 and 6 hold three digits, so coefficients agree to a few thousandths; ties by rounding apart."""
    found = replicate("qascore", Source(None))
    published = [table for table in found.tables if table.lines and table.lines[0].spec == "published scores"]
    assert len(published) == 6
    for table in published:
        for line in table.lines:
            if line.label == "appropriateness":  # two pairs of printed means tie
                continue
            for name, ours in line.ours.items():
                assert ours == pytest.approx(line.theirs[name], abs=0.0021), (table.name, line.label, name)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_paper_says_what_it_cannot_do(paper: str) -> None:
    found = replicate(paper, Source(None, lexical=True))
    assert found.cannot and all(reason for _, reason in found.cannot)
    for table in found.tables:
        assert table.lines or "no data" in (table.reason or ""), table.name
    text = show(found)
    assert "cannot be replicated" in text and found.paper.split(":")[0] in text
    json.loads(show(found, "json"))


TABLES = {"qrelscore": 9, "questeval": 4, "kpqa": 10, "qascore": 7, "qsts": 5}


@pytest.mark.parametrize("paper", PAPERS)
def test_every_table_of_every_paper_is_named_with_its_status(paper: str) -> None:
    found = replicate(paper, Source(None, lexical=True))
    names = " ".join([t.name for t in found.tables] + [name for name, _ in (*found.cannot, *found.elsewhere)])
    for n in range(1, TABLES[paper] + 1):
        assert numbered(names, n), f"Table {n} of {paper}"
    assert {t.status for t in found.tables} <= {"done", "other data"}
    assert "Every table of the paper" in show(found) and "impossible" in show(found)


def numbered(names: str, n: int) -> bool:
    """Is Table n named: "Table 3", "Tables 3, 7 and 9", "Tables 4 to 6"?"""
    for listed in re.findall(r"Tables? ((?:\d+(?:, | and | to )?)+)", names):
        if (span := re.search(r"(\d+) to (\d+)", listed)) and int(span[1]) <= n <= int(span[2]):
            return True
        if str(n) in re.findall(r"\d+", listed):
            return True
    return False


def test_a_row_is_shown_in_all_forms_and_ours_beside_no_figure_of_the_paper(tmp_path: Path) -> None:
    write_marco(tmp_path)
    scores = tmp_path / "s.jsonl"
    specs = ["bleu1-kpqa", "bleu1-kpqa[form=code]", "bleu1-kpqa[form=ours]"]
    lines = [{"id": str(k), "system": None, "scores": dict.fromkeys(specs, float(k % 2 == 0))} for k in range(40)]
    scores.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    found = lines_of(replicate("kpqa", Source(tmp_path, score_files=[scores], lexical=True)).tables[0])
    assert found["BLEU-1-KPQA"].theirs == found["BLEU-1-KPQA · program"].theirs == {"pearson": 0.675, "spearman": 0.634}
    assert found["BLEU-1-KPQA · ours"].theirs == {"pearson": None, "spearman": None}
    assert found["BLEU-1-KPQA · ours"].note == "our improvement, not in the paper"


def test_printed_examples_are_scored_beside_the_papers_figures() -> None:
    found = replicate("kpqa", Source(None, lexical=True))
    example = next(t for t in found.tables if t.name.startswith("Figure 1"))
    plain = next(line for line in example.lines if line.spec == "rouge-l")
    assert plain.theirs == {"score": 0.713} and plain.ours["score"] == pytest.approx(0.706, abs=0.01)


def write_marco(folder: Path, n: int = 40) -> Path:
    rng = np.random.default_rng(0)
    rows = []
    for k in range(n):
        good = k % 2 == 0
        words = "paris is the capital" if good else f"maybe {rng.choice(['rome', 'oslo', 'bonn'])} then"
        rows.append(
            {"id": str(k), "group": str(k // 2), "question": "what is the capital of france", "answer": words,
             "references": ["paris is the capital of france"], "judge": "answer",
             "human": {"correctness": 4.0 + 0.1 * float(rng.integers(9)) if good else 1.0 + 0.1 * float(rng.integers(9))}}
        )  # fmt: skip
    (folder / "kpqa_marco.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def test_score_files_replace_scoring_and_their_signature_is_kept(tmp_path: Path) -> None:
    write_marco(tmp_path)
    scores = tmp_path / "s.jsonl"
    lines = [{"id": str(k), "system": None, "scores": {"bleu1-kpqa": float(k % 2 == 0)}} for k in range(40)]
    scores.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (tmp_path / "s.meta.json").write_text(json.dumps({"signatures": {"bleu1-kpqa": "bleu1-kpqa | as signed"}}))
    found = replicate("kpqa", Source(tmp_path, score_files=[scores], lexical=True))
    first, rank = lines_of(found.tables[0]), lines_of(found.tables[3])
    assert first["BLEU-1-KPQA"].ours["pearson"] == pytest.approx(1, abs=0.05)
    assert first["BLEU-1-KPQA"].theirs["pearson"] == 0.675
    assert first["BLEU-1-KPQA"].n == 40
    assert found.signatures["bleu1-kpqa"] == "bleu1-kpqa | as signed"
    assert first["BERTScore"].ours["pearson"] is None and "left out by --lexical" in first["BERTScore"].note
    assert rank["BLEU-1-KPQA"].ours["share"] == 1.0 and rank["BLEU-1-KPQA"].n == 20
    assert "novel-f1" in first and first["novel-f1"].note.startswith("sanity baseline")
    assert found.tables[1].reason is not None and "kpqa_semeval.jsonl is not in" in found.tables[1].reason


def test_the_command_writes_every_format_and_refuses_bad_input(tmp_path: Path) -> None:
    write_marco(tmp_path)
    for form in ("text", "markdown", "latex", "json"):
        out = tmp_path / form
        done = CliRunner().invoke(
            command, ["kpqa", "--data", str(tmp_path), "--lexical", "--format", form, "-o", str(out)]
        )
        assert done.exit_code == 0, done.output
        assert "BLEU-1" in out.read_text(encoding="utf-8")
    done = CliRunner().invoke(command, ["kpqa", "--data", str(tmp_path / "nowhere")])
    assert isinstance(done.exception, UsageError) and "no such folder" in str(done.exception)
    assert CliRunner().invoke(command, ["bleu"]).exit_code == 2
    with pytest.raises(UsageError, match="choose qrelscore"):
        replicate("bleurt", Source(None))


@pytest.mark.validation
@pytest.mark.skipif(not DATA.is_dir(), reason="the shared data sets are not here (ELENCH_DATA)")
def test_kpqa_table_3_comes_out_as_printed_for_the_coco_metrics() -> None:
    """The paper's own numbers, to its three digits, on its own data: BLEU and ROUGE-L of the COCO scripts."""
    found = replicate("kpqa", Source(DATA, lexical=True))
    for table in found.tables[:2]:
        for label in ("BLEU-1", "BLEU-4", "ROUGE-L"):
            line = lines_of(table)[label]
            for name in ("pearson", "spearman"):
                assert line.ours[name] == pytest.approx(line.theirs[name], abs=0.0016), (table.name, label, name)
    assert {line.n for line in found.tables[3].lines if line.n} == {93}
