"""`elench calibrate` and the metric `profile:FILE#dimension`."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from statsmodels.api import OLS

import elench
from elench.cli import cli
from elench.errors import UsageError
from elench.evaluate.calibrate import coverage, more_ratings, noise
from elench.evaluate.calibrate_data import CANDIDATES
from elench.evaluate.calibrate_fit import AT_100, Belief, Scale, _weights, fit, folds, levelled, unseen
from elench.evaluate.calibrate_shipped import Shipped
from elench.evaluate.judgements import Judgements
from elench.evaluate.kept_back import BY_QUESTION, BY_SOURCE, is_kept_back
from elench.metrics import metric, split_specs
from elench.metrics.profile import content_hash
from elench.records.record import Record
from elench.testing import check_metric
from tests.evaluate.rated import rated_records, write

SPECS = "f1,rouge-l,length,em,bleu[n=1]"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(folder, rated file, profile file, what the command printed)"""
    folder = tmp_path_factory.mktemp("calibrate")
    rated = write(folder / "rated.jsonl", rated_records())
    out = folder / "profile.json"
    result = CliRunner().invoke(cli, ["calibrate", str(rated), "-m", SPECS, "-o", str(out)], catch_exceptions=False)
    assert result.exit_code == 0
    return folder, rated, out, result.output


def test_without_favoured_directions_it_is_ridge(monkeypatch):
    """Equal to statsmodels' ridge at the same penalty when the favoured directions cost too much to be used."""
    for name in ("EQUAL", "SINGLE"):
        monkeypatch.setattr(f"elench.evaluate.calibrate_fit.{name}", 1e9)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(64, 5))
    y = x @ [1.0, -0.5, 0, 0, 0.2] + rng.normal(size=64)
    x, y = x - x.mean(axis=0), y - y.mean()
    theirs = OLS(y, x).fit_regularized(alpha=AT_100 * np.sqrt(100 / 64), L1_wt=0).params
    assert np.allclose(_weights(x, y, Belief.none(5), 1.0), theirs, atol=1e-6)


def test_few_ratings_lean_on_an_earlier_mix():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2000, 12))
    truth = np.array([1, 0.8, -0.6, 0.4] + [0] * 8)
    y = x @ truth + 2 * rng.normal(size=2000)
    known = Belief(np.zeros(12), truth[:, None], np.zeros(12))
    few = list(range(25))
    with_prior, alone = (fit(x[:25], y[:25], few, belief).predict(x[25:]) for belief in (known, Belief.none(12)))
    assert np.corrcoef(with_prior, y[25:])[0, 1] > np.corrcoef(alone, y[25:])[0, 1] + 0.05


def test_a_fault_that_the_few_rated_records_lack_still_counts_by_the_earlier_profile():
    """Column 1 is constant in the rated records; the earlier mix and its usual spread say what it means."""
    rng = np.random.default_rng(4)
    x = np.stack([rng.normal(size=60), np.ones(60)], axis=1)
    y = x[:, 0] + rng.normal(size=60)
    prior = Belief(np.ones(2), np.array([[1.0], [5.0]]), np.array([1.0, 0.2]))
    told, alone = (fit(x, y, list(range(60)), belief) for belief in (prior, Belief.none(2)))
    faulty = np.array([[0.0, 1.0], [0.0, 0.0]])
    assert told.predict(faulty)[1] < told.predict(faulty)[0] - 0.3
    assert alone.predict(faulty)[1] == alone.predict(faulty)[0]


def test_pooled_files_count_alike_and_only_differences_within_a_file_count():
    """Two files with the same slope; the second has another level, another rating scale and ten times the rows."""
    rng = np.random.default_rng(6)
    first, second = rng.normal(size=(100, 2)), rng.normal(size=(1000, 2)) + 50.0
    ratings = np.concatenate([2 * first[:, 0], 100 - 7 * (second[:, 1] - 50)])
    blocks = np.array([0] * 100 + [1] * 1000)
    scores = np.concatenate([first, second])
    assert np.allclose([(levelled(scores, blocks)[blocks == k] ** 2).sum() for k in (0, 1)], 1100, rtol=1e-6)
    found = fit(scores, ratings, list(range(1100)), blocks=blocks)
    assert found.base == pytest.approx(ratings[:100].mean())
    assert found.weights[0] == pytest.approx(-found.weights[1], rel=0.25)  # by rows it would be 1 : 10


def test_the_questions_kept_back_are_those_the_trainer_keeps_back(tmp_path):
    from elench.train.equivalent import FILES, judged

    row = {"references": ["r"], "answer": "a", "human": {"correct": 1.0, "similarity": 1.0}}
    for name in FILES:
        lines = [json.dumps({**row, "question": f"What is Number {k}?"}) for k in range(40)]
        (tmp_path / name).write_text("\n".join(lines))
    parts = judged(tmp_path)
    assert {name.removesuffix(".jsonl") for name in FILES} == set(BY_QUESTION)
    for kept in (True, False):
        assert parts[kept] and all(
            is_kept_back(r["file"].removesuffix(".jsonl"), r["question"], "") is kept for r in parts[kept]
        )


def test_judged_summaries_are_kept_back_by_source_and_those_of_the_test_files_left_out(tmp_path):
    from elench.train.judged_summaries import FILES, TESTS, draw, judged_claims

    assert {name.removesuffix(".jsonl") for name in FILES} == set(BY_SOURCE)
    edited = {"summary": "It rained. Nobody came.", "seed_summary": "It rained. Many came.", "judge": "summary"}
    for name, dimension in FILES.items():
        lines = [
            json.dumps({**edited, "context": f"{name} {k}. It rained.", "group": f"g{k}", "human": {dimension: good}})
            for k in range(40)
            for good in (0.0, 1.0)
        ]
        (tmp_path / name).write_text("\n".join(lines))
    for name in TESTS:
        (tmp_path / name).write_text(json.dumps({"group": "g1"}))
    train, kept = judged_claims(tmp_path)
    in_training = {claim.source.sentences[0].split()[-1].rstrip(".") for claim in train}
    assert in_training == {str(k) for k in range(40) if k != 1 and not is_kept_back("summedits", "", f"g{k}")}
    assert kept and {(c.claim, c.supported) for c in train} == {
        ("It rained.", True), ("Nobody came.", True), ("Nobody came.", False)
    }  # fmt: skip
    pairs = draw(train, 100, np.random.default_rng(0))
    assert len(pairs) == 100 and sum(p.target == 0 for p in pairs) == 43


def test_missing_scores_count_as_average():
    scale = Scale.of(np.array([[1.0, np.nan], [3.0, 5.0], [np.nan, 7.0]]))
    assert scale.mean.tolist() == [2.0, 6.0]
    assert scale.z(np.array([[np.nan, 6.0], [3.0, 100.0]])).tolist() == [[0.0, 0.0], [1.0, 6.0]]


def test_no_group_is_on_both_sides():
    groups = [k % 7 for k in range(50)]
    for train, test in folds(groups, 5, seed=3):
        assert not {groups[k] for k in train} & {groups[k] for k in test}
        assert len(train) + len(test) == 50


def test_a_mix_beats_the_best_single_metric_when_two_metrics_carry_the_rating():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 6))
    y = x[:, 0] + x[:, 1] + rng.normal(size=400)
    found = unseen(x, y, list(range(400)))
    mix, single = np.corrcoef(found.mix, y)[0, 1], np.corrcoef(found.single, y)[0, 1]
    assert mix > 0.78  # sqrt(2/3) = .816 is the most that any predictor can reach
    assert abs(single - 0.577) < 0.08  # sqrt(1/3)


def test_few_ratings_draw_the_mix_to_the_single_metric():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 8))
    y = x[:, 2] + rng.normal(size=1000)
    few = fit(x[:30], y[:30], list(range(30)))
    assert few.single == 2
    assert np.corrcoef(few.predict(x[30:]), y[30:])[0, 1] > 0.65  # the metric alone: sqrt(1/2) = .707


def test_ratings_that_no_metric_explains_give_no_agreement():
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(300, 10)), rng.normal(size=300)
    assert abs(np.corrcoef(unseen(x, y, list(range(300))).mix, y)[0, 1]) < 3 / np.sqrt(300)


def test_noise_is_split_into_group_system_and_record():
    rng = np.random.default_rng(2)
    groups, systems = np.repeat(np.arange(300), 20), np.tile(np.arange(20), 300)
    residuals = 0.5 * rng.normal(size=300)[groups] + 0.3 * rng.normal(size=20)[systems] + 0.8 * rng.normal(size=6000)
    found = noise(residuals, groups.astype(str).tolist(), systems.astype(str).tolist())
    assert found["group"] == pytest.approx(0.5, abs=0.05)
    assert found["system"] == pytest.approx(0.3, abs=0.12)  # 20 systems only
    assert found["record"] == pytest.approx(0.8, abs=0.02)


def test_intervals_of_system_means_hold_the_mean_rating():
    """Normal misses with system, group and record parts: about 95 % of the intervals must hold the mean."""
    rng = np.random.default_rng(8)
    group, system = np.repeat(np.arange(60), 12), np.tile(np.arange(12), 60)
    x = rng.normal(size=720)
    y = x + 0.3 * rng.normal(size=60)[group] + 0.2 * rng.normal(size=12)[system] + 0.6 * rng.normal(size=720)
    records = [Record(id=f"{k}", group=f"g{group[k]}", system=f"s{system[k]}", answer="a") for k in range(720)]
    table = Judgements(records, ("f1",), x[:, None], {"f1": "metric"}, ("good",), y[:, None])
    found = coverage(table, None, {}, seed=0)
    assert found["n"] == 12 * 20 and 0.9 <= found["share"] <= 1.0


def test_more_ratings_reads_the_gain_off_the_curve():
    curve = [{"ratings": n, "r": 0.5 - 1 / n**0.5} for n in (25, 50, 100)]
    assert more_ratings(curve, 100)["gain"] == pytest.approx(1 / 10 - 1 / 140**0.5)
    assert more_ratings(curve[:2], 50) is None


def test_the_command_writes_a_profile_and_prints_its_agreement(made):
    _, _, out, printed = made
    content = json.loads(out.read_text())
    good = content["dimensions"]["good"]
    assert good["full"]["r"] > 0.9 and good["n"] == 200 and good["groups"] == 40
    assert good["full"]["ci95"][0] < good["full"]["r"] < good["full"]["ci95"][1]
    assert content["dimensions"]["long"]["single"]["metric"] == "length"
    assert [point["ratings"] for point in good["curve"]] == [15, 20, 30, 45, 70, 100]
    assert "good" in printed and f"{good['full']['r']:.3f}"[1:] in printed
    assert good["cheap"]["ms"] <= good["full"]["ms"]
    assert good["cheap"]["r"] >= 0.95 * good["full"]["r"]


def test_sixty_ratings_are_told_what_more_would_bring_and_what_may_be_chance(tmp_path):
    rng = np.random.default_rng(0)
    rows = [row | {"human": {"good": row["human"]["good"], "chance": rng.normal()}} for row in rated_records(60, 30)]
    out = tmp_path / "p.json"
    arguments = ["calibrate", write(tmp_path / "r.jsonl", rows), "-m", "f1,length", "-o", out, "--sample", "0"]
    printed = CliRunner().invoke(cli, [*map(str, arguments)], catch_exceptions=False).output
    content = json.loads(out.read_text())
    assert all(found["more_ratings"]["ratings"] == 40 for found in content["dimensions"].values())
    assert content["dimensions"]["chance"]["full"]["ci95"][0] < 0 < content["dimensions"]["good"]["full"]["ci95"][0]
    told = " ".join(printed.split())
    assert " chance: the interval of r includes 0, so the predictions may be worthless" in told
    assert f"±{content['dimensions']['good']['full']['error95']:.2g} (" in told
    assert f"use it: elench score FILE -m profile:{out}#good" in told


def test_leaning_on_a_profile_of_the_same_file_is_said(made, tmp_path):
    _, _, profile, printed = made
    assert "so r may be too high" not in printed
    for name, said in (("rated.jsonl", True), ("mine.jsonl", False)):
        file = write(tmp_path / name, rated_records(60, 30, 3))
        arguments = [
            "calibrate",
            file,
            "-m",
            "f1,length",
            "-o",
            tmp_path / "p.json",
            "--sample",
            "0",
            "--prior",
            profile,
        ]
        told = CliRunner().invoke(cli, [*map(str, arguments)], catch_exceptions=False).output
        assert ("learned from a file called rated.jsonl, so r may be too high" in " ".join(told.split())) is said


def test_a_profile_keeps_the_promises_of_every_metric(made):
    from unittest import mock

    from elench.metrics.profile import Profile

    example = {"question": "What is it?", "answer": "a stone bridge", "references": ["the bridge"], "judge": "answer"}
    with mock.patch.object(Profile, "example", example):
        check_metric(f"profile:{made[2]}#good")


def test_contributions_add_up_to_the_score(made):
    _, rated, out, _ = made
    result = elench.score(str(rated), [f"profile:{out}#good"])
    outcome = next(o for o in result.outcomes)
    (score,) = outcome.scores.values()
    total = score.evidence["base"] + sum(one["adds"] for one in score.evidence["contributions"])
    assert score.value == pytest.approx(total)
    scale = json.loads(out.read_text())["dimensions"]["good"]["scale"]
    low, high = score.evidence["interval95"]
    assert scale[0] <= low <= np.clip(total, *scale) <= high <= scale[1]


def test_good_texts_are_not_made_equal_where_nearly_all_ratings_are_the_best(made, tmp_path):
    """A prediction above the scale keeps its place in the ranking."""
    _, rated, out, _ = made
    content = json.loads(out.read_text())
    content["dimensions"]["good"]["scale"] = [0.0, content["dimensions"]["good"]["base"]]
    content["sha256"] = content_hash(content)
    narrow = tmp_path / "narrow.json"
    narrow.write_text(json.dumps(content))
    wide, cut = (elench.score(str(rated), [f"profile:{p}#good"]).values(f"profile:{p}#good") for p in (out, narrow))
    assert wide == cut


def test_a_profile_works_in_score_meta_compare_and_report(made):
    folder, rated, out, _ = made
    scores, run = folder / "scores.jsonl", CliRunner()
    for arguments in (
        ["score", rated, "-m", f"profile:{out}", "-o", scores],
        ["meta", rated, "--scores", scores],
        ["compare", rated, "-m", f"profile:{out}#good", "--draws", "100"],
        ["report", scores, "-o", folder / "report.html"],
    ):
        result = run.invoke(cli, [str(a) for a in arguments], catch_exceptions=False)
        assert result.exit_code == 0, result.output
    meta = json.loads((folder / "scores.meta.json").read_text())
    sha = json.loads(out.read_text())["sha256"]
    assert f"#good@{sha[:12]}" in meta["signatures"][f"profile:{out}#good"]


def test_a_profile_without_a_dimension_means_all_of_them(made):
    out = made[2]
    assert split_specs(f"f1,profile:{out}") == ["f1", f"profile:{out}#good", f"profile:{out}#long"]
    pinned = metric(f"profile:{out}#good").spec(full=True)
    assert metric(pinned) == metric(f"profile:{out}#good")


def test_a_changed_profile_is_refused(made, tmp_path):
    content = json.loads(made[2].read_text())
    content["dimensions"]["good"]["base"] = 9.9
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(content))
    with pytest.raises(UsageError, match="does not match its sha256"):
        metric(f"profile:{path}#good")
    with pytest.raises(UsageError, match="now has the hash"):
        metric(f"profile:{made[2]}#good@000000000000")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("profile:nowhere.json#good", "no such profile"),
        ("profile:{out}#better", "no dimension 'better'; there are: good, long"),
        ("profile:{rated}#good", "cannot be read as a profile"),
        ("profile:{out}#good[variant=tiny]", "full or cheap"),
    ],
)
def test_wrong_profile_specs_say_what_is_wrong(made, spec, said):
    with pytest.raises(UsageError, match=said):
        metric(spec.format(out=made[2], rated=made[1]))


def test_bad_input_ends_in_one_clear_line(tmp_path, made):
    few = write(tmp_path / "few.jsonl", rated_records(12, 6))
    with pytest.raises(UsageError, match="12 ratings, at least 20 are needed"):
        _calibrate(few, tmp_path / "p.json", "f1")
    one_group = write(tmp_path / "one.jsonl", [{**r, "group": "same"} for r in rated_records(60)])
    with pytest.raises(UsageError, match="ratings of 1 groups"):
        _calibrate(one_group, tmp_path / "p.json", "f1")
    with pytest.raises(UsageError, match="cannot be part of a profile"):
        _calibrate(made[1], tmp_path / "p.json", "cider")
    assert not (tmp_path / "p.json").exists()


def _calibrate(rated, out, specs):
    CliRunner().invoke(
        cli, ["calibrate", str(rated), "-m", specs, "-o", str(out)], catch_exceptions=False, standalone_mode=False
    )


def test_a_metric_that_hardly_varies_does_not_break_the_fit():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 3))
    x[:, 0] = 1.0
    x[0, 0] = 1.0 + 1e-9
    found = fit(
        x, x[:, 1] - x[:, 2], list(range(30)), Belief(np.array([1.0, 0.0, -1.0]), np.empty((3, 0)), np.zeros(3))
    )
    assert np.isfinite(found.weights).all() and np.abs(found.weights).max() < 10


def test_a_weight_against_the_sense_of_a_metric_is_not_learned():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    y = x[:, 0] - 0.3 * x[:, 1] + rng.normal(size=300)
    kept = fit(x, y, list(range(300)), Belief(np.ones(2), np.empty((2, 0)), np.zeros(2))).weights
    assert kept[0] > 0 and kept[1] == 0


def test_the_shipped_profiles_are_made_by_one_command_from_the_files_to_the_page(tmp_path, monkeypatch):
    files = {"first": {"correctness": "good"}, "second": {"correctness": "good"}}
    plan = Shipped("answer", files, {}, {"second": 60}, {"correctness": ("f1", "rouge-l")})
    monkeypatch.setattr("elench.evaluate.calibrate_shipped.SHIPPED", {"answers": plan})
    monkeypatch.setitem(CANDIDATES, "answer", ("f1", "rouge-l", "length"))
    data, out, keep = tmp_path / "data", tmp_path / "out", tmp_path / "keep"
    data.mkdir()
    for seed, name in enumerate(files):
        write(data / f"{name}.jsonl", rated_records(120, 30, seed))

    def make(folder):
        arguments = ["calibrate", "--shipped", data, "-o", folder, "--keep", keep, "--docs", tmp_path / "page.md"]
        ran = CliRunner().invoke(cli, [*map(str, arguments), "--sample", "0"], catch_exceptions=False)
        assert ran.exit_code == 0
        return (folder / "answers.json").read_text()

    first = make(out)
    content = json.loads(first)
    assert content["data"]["records"] == 180 and set(content["elsewhere"]) == set(files)
    assert set(content["dimensions"]["correctness"]["full"]["weights"]) <= {"f1", "rouge-l"}
    assert content["elsewhere"]["first"][0]["r"] > 0.9  # the rating is the share of common words, with little noise
    assert "| first | correctness | 120 |" in (tmp_path / "page.md").read_text()

    scored = sorted(keep.glob("*.meta.json"))
    times = [path.stat().st_mtime_ns for path in scored]
    assert make(tmp_path / "again") == first  # the same bytes, from the scores kept
    assert [path.stat().st_mtime_ns for path in scored] == times

    spec = f"profile:{out / 'answers.json'}#correctness"
    fresh = write(tmp_path / "fresh.jsonl", [row | {"human": {}} for row in rated_records(40, 20, 9)])
    ran = CliRunner().invoke(cli, ["score", str(fresh), "-m", spec, "-o", str(tmp_path / "scores.jsonl")])
    assert ran.exit_code == 0, ran.output
    predicted = [json.loads(line)["scores"][spec] for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert np.corrcoef(predicted, [row["human"]["good"] for row in rated_records(40, 20, 9)])[0, 1] > 0.9
