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
from elench.evaluate.replicate.compute import PAPERS, replicate
from elench.evaluate.replicate.results import PaperLine, PaperTable
from elench.evaluate.replicate.sources import Materials
from elench.show.replication_tables import show

DATA = Path(os.environ.get("ELENCH_DATA", Path(__file__).parents[2] / ".." / "shared" / "data"))


def lines_of(table: PaperTable) -> dict[str, PaperLine]:
    return {line.label: line for line in table.lines}


def test_qascore_table_2_and_7_follow_from_the_published_scores() -> None:
    """QAScore Tables 1, 5 and 6 hold three digits, so coefficients agree to a few thousandths; ties by rounding apart."""
    found = replicate("qascore", Materials(None))
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
    found = replicate(paper, Materials(None, lexical=True))
    assert found.cannot and all(reason for _, reason in found.cannot)
    for table in found.tables:
        assert table.lines or re.search("no data|--lexical", table.reason or ""), table.name
    text = show(found)
    assert "impossible" in text and found.paper.split(":")[0] in text
    json.loads(show(found, "json"))


TABLES = {"qrelscore": 9, "questeval": 4, "kpqa": 10, "qascore": 7, "qsts": 5}
FIGURES = {"qrelscore": 13, "questeval": 4, "kpqa": 6, "qascore": 5, "qsts": 0}
"""Counted in the papers; figures that only draw a method are named, too."""


@pytest.mark.parametrize("paper", PAPERS)
def test_every_table_of_every_paper_is_named_with_its_status(paper: str) -> None:
    found = replicate(paper, Materials(None, lexical=True))
    others = (*found.cannot, *found.elsewhere)
    names = " ".join([t.name for t in found.tables] + [name for name, _ in others])
    for what, count in (("Table", TABLES[paper]), ("Figure", FIGURES[paper])):
        for n in range(1, count + 1):
            assert numbered(names, what, n), f"{what} {n} of {paper}"
    assert {t.status for t in found.tables} <= {"done", "other data"} and all(why for _, why in others)
    assert "Every table and figure of the paper" in show(found) and "impossible" in show(found)


def numbered(names: str, what: str, n: int) -> bool:
    """Is Table n named: "Table 3", "Tables 3, 7 and 9", "Tables 4 to 6"?"""
    for listed in re.findall(rf"{what}s? ((?:\d+(?:, | and | to )?)+)", names):
        if (span := re.search(r"(\d+) to (\d+)", listed)) and int(span[1]) <= n <= int(span[2]):
            return True
        if str(n) in re.findall(r"\d+", listed):
            return True
    return False


def test_our_form_is_a_column_of_its_own_beside_paper_and_program(tmp_path: Path) -> None:
    write_marco(tmp_path)
    scores = tmp_path / "s.jsonl"
    good = {"bleu1-kpqa": 1, "bleu1-kpqa[form=code]": 1, "bleu1-kpqa[form=ours]": -1}
    lines = [
        {"id": str(k), "system": None, "scores": {spec: float(sign * (k % 2 == 0)) for spec, sign in good.items()}}
        for k in range(40)
    ]
    scores.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    replication = replicate("kpqa", Materials(tmp_path, score_files=[scores], lexical=True), only="Table 3, MS")
    found = lines_of(replication.tables[0])
    paper, program = found["BLEU-1-KPQA"], found["BLEU-1-KPQA · program"]
    assert paper.theirs == program.theirs == {"pearson": 0.675, "spearman": 0.634}
    assert paper.improved == {name: pytest.approx(-value) for name, value in paper.ours.items()}
    assert program.improved is None and not any("ours" in label for label in found)
    rouge = found["ROUGE-L-KPQA"]  # not in the score file
    assert rouge.improved == {"pearson": None, "spearman": None} and "form=ours: not computed" in rouge.note
    text = show(replication, width=200)
    head = next(line for line in text.splitlines() if "metric" in line)
    assert head.split()[:4] == ["metric", "r", "theirs", "form=ours"]
    row = next(line for line in text.splitlines() if "BLEU-1-KPQA " in line and "·" not in line)
    assert row.split()[2] == ".675" and row.split()[3].startswith("−")
    assert replication.tables[1].reason == "left out by --only"


def test_fewer_references_takes_the_best_of_those_drawn(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    human = rng.normal(size=60)
    words = ["anna", "bert", "carl", "dora", "emil", "fritz", "greta", "hans", "ida", "jonas"]
    rows = []
    for k, value in enumerate(human):
        said = [words[i] for i in rng.permutation(10)[:5]]
        hit = int(np.clip(round(2.5 + value), 0, 5))  # so many words of the last reference are right
        references = [" ".join(words[i] for i in rng.permutation(10)[:5]) for _ in range(10)]
        references.append(" ".join([*said[:hit], *["none"] * (5 - hit)]))
        rows.append({"id": str(k), "context": "x", "summary": " ".join(said), "references": references,
                     "judge": "summary", "human": {"relevance": float(value)}})  # fmt: skip
    (tmp_path / "summeval.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    found = replicate("questeval", Materials(tmp_path, lexical=True), only="Figure 2")
    figure = next(t for t in found.tables if t.name.startswith("Figure 2"))
    by_k = {line.part: line for line in figure.lines if line.label == "ROUGE-1"}
    import elench

    best = elench.score(rows, ["rouge-1"]).values("rouge-1")  # rouge-1 itself takes the best of all 11
    assert by_k["11 references"].ours["r"] == pytest.approx(np.corrcoef(best, human)[0, 1])
    assert by_k["11 references"].theirs == {"r": 0.222} and by_k["4 references"].theirs == {"r": None}
    assert by_k["11 references"].n == 60 and by_k["1 reference"].note.startswith("20 draws")
    assert next(line for line in figure.lines if line.label == "BERTScore-f").ours["r"] is None


def test_questions_are_sorted_by_importance_and_answer_as_in_questeval_table_3(tmp_path: Path) -> None:
    rows, lines = [], []
    spec = "questeval[part=recall,points=16]"
    for k in range(12):
        human = {"relevance": float(k)}
        rows.append({"id": str(k), "context": "x", "summary": "y", "judge": "summary", "human": human})
        told = [{"direction": "recall", "weight": 0.9, "unanswerable": 0.1}] * k
        told += [{"direction": "recall", "weight": 0.9, "unanswerable": 0.9}] * (12 - k)
        told += [{"direction": "recall", "weight": 0.1, "unanswerable": 0.1}] * 3
        told += [{"direction": "precision", "weight": 1.0, "unanswerable": 0.1}] * 5
        lines.append({"id": str(k), "system": None, "scores": {spec: 0.5}, "evidence": {spec: {"questions": told}}})
    for name, content in (("summeval.jsonl", rows), ("s.jsonl", lines)):
        (tmp_path / name).write_text("".join(json.dumps(r) + "\n" for r in content), encoding="utf-8")
    source = Materials(tmp_path, score_files=[tmp_path / "s.jsonl"], lexical=True)
    table = next(t for t in replicate("questeval", source, only="Table 3").tables if t.name.startswith("Table 3"))
    found = lines_of(table)
    assert found["important, answered"].n == 12
    assert found["important, answered"].ours["r"] == pytest.approx(1)
    assert found["important, not answered"].ours["r"] == pytest.approx(-1)
    assert found["not important, answered"].ours["r"] is None  # 3 of 15 everywhere
    assert found["important, answered"].theirs == {"r": 0.376}
    assert found["important, answered"].note.startswith("37% of the questions")  # mean of k/15 over 0..11


def test_the_supervised_row_learns_what_can_be_learnt_and_sees_no_test_context() -> None:
    from elench.evaluate.replicate import adversarial
    from elench.records.record import Record

    rng = np.random.default_rng(0)
    labels = rng.permutation([True] * 60 + [False] * 60)
    records = [
        Record(id=str(k), context=f"c{k // 2}", question="q", extra={"perturbed": {"label": "positive" if good else "negative"}})
        for k, good in enumerate(labels)
    ]  # fmt: skip
    noise = rng.normal(size=(120, 5))
    context = np.repeat(np.eye(60), 2, axis=0)  # tells a context apart: useless on contexts never seen
    adversarial_features = {
        "learnable": np.column_stack([noise, labels + 0.1 * rng.normal(size=120)]),
        "leak only": np.column_stack([context, noise]),
    }
    aucs = {}
    for name, features in adversarial_features.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(adversarial, "_features", lambda r, s, f=features: f)
            scores = adversarial.supervised(records, Materials(None))
        good, bad = scores[labels], scores[~labels]
        aucs[name] = np.mean(good[:, None] > bad[None, :])
    assert aucs["learnable"] > 0.99 and 0.3 < aucs["leak only"] < 0.7


def test_printed_examples_are_scored_beside_the_papers_figures() -> None:
    found = replicate("kpqa", Materials(None, lexical=True))
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
    found = replicate("kpqa", Materials(tmp_path, score_files=[scores], lexical=True))
    named = {t.name: t for t in found.tables}
    first, rank = lines_of(named["Table 3, MS-MARCO"]), lines_of(named["Table 7, rank pairs, MS-MARCO"])
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
    with pytest.raises(
        UsageError, match="--only 'Table 99': no table of qsts has this in its name; it has: Table 1, pairs"
    ):
        replicate("qsts", Materials(None), only="Table 99")
    with pytest.raises(UsageError, match="choose qrelscore"):
        replicate("bleurt", Materials(None))


@pytest.mark.validation
@pytest.mark.skipif(not DATA.is_dir(), reason="the shared data sets are not here (ELENCH_DATA)")
def test_kpqa_table_3_comes_out_as_printed_for_the_coco_metrics() -> None:
    """The paper's own numbers, to its three digits, on its own data: BLEU and ROUGE-L of the COCO scripts."""
    found = replicate("kpqa", Materials(DATA, lexical=True))
    for table in found.tables[:2]:
        for label in ("BLEU-1", "BLEU-4", "ROUGE-L"):
            line = lines_of(table)[label]
            for name in ("pearson", "spearman"):
                assert line.ours[name] == pytest.approx(line.theirs[name], abs=0.0016), (table.name, label, name)
    rank = next(t for t in found.tables if t.name.startswith("Table 7"))
    assert {line.n for line in rank.lines if line.n} == {93}
