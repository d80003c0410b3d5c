"""`elench certify` and `elench score --require-certificate`."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from elench.cli import cli
from elench.errors import UsageError
from elench.evaluate.certify import bias, human_ceiling, read_certificate
from elench.evaluate.judgements import from_records
from elench.metrics.profile import content_hash
from elench.records.record import Record
from elench.show.certificate import certificate_notes
from tests.evaluate.rated import rated_records, write


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certify")
    rng = np.random.default_rng(4)
    rows = rated_records(160, 40)
    for row in rows:  # three raters around the same truth
        truth = row["human"]["good"]
        row["ratings"] = {"good": [truth + rng.normal() for _ in range(3)]}
        row["human"] = {"good": truth}
    rated = write(folder / "rated.jsonl", rows)
    return folder, rated


def run(*arguments):
    return CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=False, standalone_mode=False)


def certified(made, judge="f1", floor=0.3, name="cert.json"):
    folder, rated = made
    code = run("certify", judge, rated, "-o", folder / name, "--floor", floor, "-d", "good").return_value
    return folder / name, code


def test_a_good_metric_passes_and_the_page_says_so(made):
    cert, code = certified(made)
    content = read_certificate(cert)
    good = content["dimensions"]["good"]
    assert code == 0 and content["passed"] and good["n"] == 160
    scored = run("score", made[1], "-m", "f1", "-o", made[0] / "s.jsonl")
    assert scored.exception is None
    lines = [json.loads(line) for line in (made[0] / "s.jsonl").read_text().splitlines()]
    ratings = [json.loads(line)["human"]["good"] for line in made[1].read_text().splitlines()]
    assert good["r"] == pytest.approx(np.corrcoef([line["scores"]["f1"] for line in lines], ratings)[0, 1], abs=1e-9)
    assert good["ci95"][0] < good["r"] < good["ci95"][1]
    assert set(good["slices"]["system"]) == {"a", "b"}
    assert content["repeats"]["largest_difference"] == 0
    page = cert.with_suffix(".html").read_text()
    assert "passed" in page and content["sha256"] in page and "http" not in page.split("<body>")[1]


def test_a_metric_below_the_floor_ends_with_code_1_and_is_refused(made):
    cert, code = certified(made, floor=0.999, name="strict.json")
    assert code == 1 and not read_certificate(cert)["passed"]
    with pytest.raises(UsageError, match=r"f1 is below the floor 0\.999: good r ="):
        run("score", made[1], "-m", "f1", "--require-certificate", cert)


def test_a_constant_metric_has_no_agreement_and_beats_nothing(made):
    folder, rated = made
    done = run("certify", "em", rated, "-o", folder / "flat.json", "--floor", "-1", "-d", "good")
    good = read_certificate(folder / "flat.json")["dimensions"]["good"]
    assert done.return_value == 1 and good["r"] is None and good["beats_baselines"] is False
    with pytest.raises(UsageError, match=r"good has no r \(.+\)"):
        run("score", rated, "-m", "em", "-o", folder / "x.jsonl", "--require-certificate", folder / "flat.json")


def test_a_certificate_that_does_not_say_why_there_is_no_r_is_still_read(made, tmp_path):
    run("certify", "em", made[1], "-o", tmp_path / "flat.json", "-d", "good")
    content = read_certificate(tmp_path / "flat.json")
    del content["dimensions"]["good"]["reason"]  # as written by earlier versions
    content["sha256"] = content_hash(content)
    (tmp_path / "flat.json").write_text(json.dumps(content))
    with pytest.raises(UsageError, match=r"good has no r \(the certificate does not say why\)"):
        run("score", made[1], "-m", "em", "--require-certificate", tmp_path / "flat.json")
    assert "good: no r: the certificate does not say why" in certificate_notes(content)


def test_a_run_is_held_to_its_certificate(made, tmp_path):
    cert, _ = certified(made)
    accepted = run("score", made[1], "-m", "f1", "-o", tmp_path / "o.jsonl", "--require-certificate", cert)
    assert accepted.return_value in (0, None) and (tmp_path / "o.jsonl").exists()
    r = read_certificate(cert)["dimensions"]["good"]["r"]
    assert f"{cert}: f1 is certified on rated.jsonl: good r = {r:.3f} (n = 160)" in accepted.output
    with pytest.raises(UsageError, match="no certificate is for this metric"):
        run("score", made[1], "-m", "f1,rouge-l", "--require-certificate", cert)
    content = json.loads(cert.read_text())
    content["floor"] = -1
    cert.write_text(json.dumps(content))
    with pytest.raises(UsageError, match="does not match its sha256"):
        run("score", made[1], "-m", "f1", "--require-certificate", cert)


def test_a_profile_calibrated_again_needs_a_new_certificate(made):
    folder, rated = made
    profile = folder / "p.json"
    other = write(folder / "other.jsonl", rated_records(100, 25, seed=5))
    run("calibrate", other, "-m", "f1,length", "-o", profile, "--sample", 0)
    spec = f"profile:{profile}#good"
    cert, code = certified(made, spec, name="profile-cert.json")
    assert code == 0
    run("calibrate", other, "-m", "f1,length,rouge-l", "-o", profile, "--sample", 0)
    with pytest.raises(UsageError, match="has changed since it was certified"):
        run("score", rated, "-m", spec, "--require-certificate", cert)


def test_a_profile_is_not_certified_on_records_that_it_learned_from(made, tmp_path):
    rows = [json.loads(line) for line in made[1].read_text().splitlines()]
    learned, rest = write(tmp_path / "learned.jsonl", rows[:100]), write(tmp_path / "rest.jsonl", rows[100:])
    mixed = write(tmp_path / "mixed.jsonl", [row | {"id": f"new{k}"} for k, row in enumerate(rows[90:140])])
    profile = tmp_path / "p.json"
    run("calibrate", learned, "-m", "f1,length", "-o", profile, "--sample", 0)
    arguments = ("-o", tmp_path / "c.json", "-d", "good")
    with pytest.raises(UsageError, match="learned from 100 of these 100 records, which therefore cannot test it"):
        run("certify", f"profile:{profile}#good", learned, *arguments)
    assert not (tmp_path / "c.json").exists()
    printed = run("certify", f"profile:{profile}#good", mixed, *arguments).output
    assert "10 records left out: the profile learned from the same texts" in printed
    assert read_certificate(tmp_path / "c.json")["dimensions"]["good"]["n"] == 40
    assert run("certify", f"profile:{profile}#good", rest, *arguments).return_value == 0
    shipped = write(tmp_path / "kpqa_marco.jsonl", rows)
    with pytest.raises(UsageError, match=r"learned from a file called kpqa_marco.jsonl, .* rename it"):
        run("certify", "profile:answers#correctness", shipped, *arguments)


def test_a_changed_rubric_is_a_changed_judge(monkeypatch):
    from elench.metrics import judge, metric

    before = metric("judge[dimension=fluency]").spec(full=True)
    other = {kind: dict(texts) for kind, texts in judge.rubrics().items()}
    other["question"]["fluency"] = "Is it nice?"
    monkeypatch.setattr(judge, "rubrics", lambda: other)
    assert metric("judge[dimension=fluency]").spec(full=True) != before
    with pytest.raises(UsageError, match="now has the hash"):
        metric(before.replace("judge=,", ""))


def test_the_human_ceiling_is_one_rater_against_the_others(made):
    rows = [json.loads(line) for line in made[1].read_text().splitlines()]
    found = human_ceiling(from_records([Record.from_object(r) for r in rows]), "good")
    matrix = np.array([r["ratings"]["good"] for r in rows])
    by_hand = [np.corrcoef(matrix[:, k], np.delete(matrix, k, axis=1).mean(axis=1))[0, 1] for k in range(3)]
    assert found == {"r": pytest.approx(np.mean(by_hand)), "raters": 3}


def test_length_bias_is_what_the_rating_does_not_explain():
    rng = np.random.default_rng(0)
    rows = []
    for k in range(300):
        words, good = int(rng.integers(1, 30)), float(rng.normal())
        score = {"biased": good + 0.1 * words}
        rows.append({"id": str(k), "answer": "w " * words, "judge": "answer", "human": {"g": good}, "scores": score})
    for k, row in enumerate(rows):
        row["system"] = "long" if k < 3 else "other"
        row["scores"] = {"biased": row["scores"]["biased"] + (5 if k < 3 else 0)}
    found = bias(from_records([Record.from_object(r) for r in rows]))
    assert found["length"] > 0.7
    assert found["systems"]["favoured"][::2] == ["long", 3] and found["systems"]["disfavoured"][::2] == ["other", 297]


def test_too_few_scored_records_are_refused(tmp_path):
    rated = write(tmp_path / "few.jsonl", rated_records(10))
    with pytest.raises(UsageError, match="scored 10 records, 20 are needed"):
        run("certify", "f1", rated, "-o", tmp_path / "c.json")


def test_an_unknown_slice_is_refused(made, tmp_path):
    with pytest.raises(UsageError, match="no record has the field 'nofield'"):
        run("certify", "f1", made[1], "-o", tmp_path / "c.json", "--by", "nofield")
    assert not (tmp_path / "c.json").exists()
