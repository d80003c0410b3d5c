"""From ratings to a ranking: the paper's rules, checked by hand-made ratings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import PermutationMethod, kendalltau, pearsonr, rankdata, spearmanr, wilcoxon

from elench.errors import UsageError
from elench.show.study_tables import as_html, as_json, as_text
from elench.stats.signed_rank import signed_rank
from elench.study.analyse.quality import judge_raters
from elench.study.analyse.ranking import Options, analyse_sittings
from elench.study.analyse.rated import rated_records
from elench.study.analyse.replication import correlate
from elench.study.analyse.scores import judgements
from elench.study.analyse.simulate import as_published
from elench.study.analyse.sittings import Sitting
from elench.study.collect.store import Arrival, Store
from elench.study.design.protocol_file import load_protocol
from elench.study.folder import Study, load_study
from tests.study.conftest import THREE_SCALES, MakeStudy

NAMES = ("understandability", "relevancy", "answerability", "appropriateness")


def sitting(study: Study, task: str, rater: str, rate: object, minutes: float = 30) -> Sitting:
    """`rate(item, criterion)` gives every rating."""
    values = {
        place: {c.name: float(rate(item, c.name)) for c in study.protocol.criteria}  # type: ignore[operator]
        for place, item in enumerate(study.by_id[task].items)
    }
    return Sitting(f"{rater}-{task}", task, rater, "link", "submitted", 0.0, 60 * minutes, values)


def careful(rng: np.random.Generator) -> object:
    """Prefers systems with a low number, the human one most; sees bad references."""

    def rate(item: object, criterion: str) -> float:
        system = getattr(item, "system")  # noqa: B009
        level = 80 if system == "human" else 75 - 2 * int(system[-2:])
        drop = 30 if getattr(item, "kind") == "bad" else 0  # noqa: B009
        return float(np.clip(round(level - drop + rng.normal(0, 6)), 0, 100))

    return rate


def crowd(study: Study, raters: int = 6) -> list[Sitting]:
    rng = np.random.default_rng(0)
    tasks = [task.id for task in study.tasks]
    good = [sitting(study, task, f"good{k % raters}", careful(rng), 33) for k, task in enumerate(tasks)]
    lazy = [sitting(study, task, f"lazy{k % 3}", lambda i, c: rng.integers(0, 101), 20) for k, task in enumerate(tasks)]
    flat = [sitting(study, tasks[0], "flat", lambda i, c: 50, 5)]
    return good + lazy + flat


def test_the_published_filter_is_the_papers_test(make_study: MakeStudy) -> None:
    study = as_published(make_study())
    rows = crowd(study)
    verdicts = judge_raters(study, rows)
    assert {name for name, v in verdicts.items() if v.passed} == {f"good{k}" for k in range(6)}
    assert verdicts["flat"].p == 1.0
    own = [s for s in rows if s.rater == "lazy1"]
    ordinary, bad = [], []
    for s in own:
        items = study.by_id[s.task].items
        for place, item in enumerate(items):
            if item.kind == "bad":
                first = next(k for k, i in enumerate(items) if i.kind == "ordinary" and i.record == item.record)
                ordinary += [s.values[first][name] for name in NAMES]
                bad += [s.values[place][name] for name in NAMES]
    assert verdicts["lazy1"].pairs == len(bad) == 4 * 6 * 4  # 4 tasks, 6 bad references, 4 criteria
    # SciPy's signed-rank test on the same pairs, found independently
    assert verdicts["lazy1"].p == pytest.approx(wilcoxon(ordinary, bad, alternative="greater").pvalue)


def test_the_filter_may_pair_items_instead_of_ratings(make_study: MakeStudy) -> None:
    study = as_published(make_study())
    rule = replace(study.protocol.filter, pairs="items")
    by_item = replace(study, protocol=replace(study.protocol, filter=rule))
    verdict = judge_raters(by_item, crowd(study))["good0"]
    assert verdict.pairs == 2 * 6 and verdict.passed


def test_scores_are_equation_13_by_hand(make_study: MakeStudy) -> None:
    study = make_study()
    row = crowd(study)[0]
    found = judgements(study, [row], standardise=True)
    everything = [value for given in row.values.values() for value in given.values()]
    mean, spread = np.mean(everything), np.std(everything)
    items = study.by_id[row.task].items
    for judged in found:
        shown = [
            p for p, i in enumerate(items) if (i.record, i.system) == (judged.record, judged.system) and i.kind != "bad"
        ]
        assert judged.shown == len(shown)
        for k, name in enumerate(NAMES):
            by_hand = np.mean([(row.values[p][name] - mean) / spread for p in shown])
            assert judged.values[k] == pytest.approx(by_hand)
    assert len(found) == 11


def test_counts_are_the_papers(make_study: MakeStudy) -> None:
    """334 kept HITs gave N = 668 for the human system and 334 × 14 × 4 = 18,704 ratings: 2 and 14 items per HIT."""
    study = make_study()
    report = analyse_sittings(study, crowd(study), Options(draws=100))
    kept = report.passed.tasks
    assert kept == 12
    n = {s.system: s.n for s in report.scores}
    assert n["human"] == 2 * kept and sum(n.values()) == 14 * kept


def test_the_report(make_study: MakeStudy) -> None:
    study = make_study()
    report = analyse_sittings(study, crowd(study), Options(draws=200))
    assert (report.passed.raters, report.failed.raters, report.total.raters) == (6, 4, 10)
    assert report.passed.minutes == 33 and report.passed.tasks_per_rater == 2
    assert report.paid == pytest.approx(12 * 0.99) and report.paid_all == pytest.approx(25 * 0.99)
    names = [s.system for s in report.scores]
    assert names[0] == "human" and names[-1] == "system10"
    assert report.scores[0].cluster != report.scores[-1].cluster
    for score in report.scores:
        assert score.interval[0] <= score.overall <= score.interval[1]
        assert score.overall == pytest.approx(np.mean(list(score.criteria.values())))
    best = report.pairs[[(p.first, p.second) for p in report.pairs].index(("human", "system10"))]
    assert best.p <= best.corrected < 0.05 and best.n == 12 and len(report.pairs) == 55
    assert report.repeat_pairs == 12 * 3 * 4 and 4 < report.repeat_gap < 10  # type: ignore[operator]
    assert report.replication[0].measure == "overall" and report.replication[0].pearson > 0.8  # type: ignore[operator]
    assert "one rater" in report.agreement[0].reason and report.agreement[0].alpha["interval"] is None
    assert report.needed is not None and report.needed > 1
    text = as_text(report)
    for part in ("pass rate", "60.00 %", "human", "self-replication", "undefined", "planning", "11.88 USD"):
        assert part in text, part
    assert json.loads(as_json(report))["scores"][0]["system"] == "human"
    html = as_html(report)
    assert report.mixed is not None and "<h2>Mixed model</h2>" in html
    assert "<script" not in html and "http" not in html.replace("http-equiv", "")


def test_without_the_filter_the_ranking_is_blurred(make_study: MakeStudy) -> None:
    study = make_study()
    kept = analyse_sittings(study, crowd(study), Options(draws=100))
    everybody = analyse_sittings(study, crowd(study), Options(draws=100, unfiltered=True))
    spread = [max(s.overall for s in r.scores) - min(s.overall for s in r.scores) for r in (kept, everybody)]
    assert spread[0] > 1.3 * spread[1]
    assert sum(s.n for s in everybody.scores) == 24 * 14  # the flat rater has no z
    assert any("never changed a rating" in note and note.endswith(": flat") for note in everybody.notes)


def test_two_runs(make_study: MakeStudy) -> None:
    study = make_study()
    rng = np.random.default_rng(5)
    second = [sitting(study, task.id, f"other{k % 4}", careful(rng)) for k, task in enumerate(study.tasks)]
    report = analyse_sittings(study, crowd(study), Options(draws=100), (study, second))
    assert [x.measure for x in report.replication] == ["overall", *NAMES]
    assert report.replication[0].pearson > 0.95 and report.replication[0].systems == 11  # type: ignore[operator]


@pytest.mark.parametrize("n", [5, 8, 30, 80])
@pytest.mark.parametrize("ties", [True, False])
def test_the_signed_rank_test_is_scipys(n: int, ties: bool) -> None:
    rng = np.random.default_rng(n)
    gaps = rng.integers(-4, 7, n).astype(float) if ties else rng.normal(0.3, 1, n)
    gaps[0] = 2.5
    exact = PermutationMethod(n_resamples=np.inf) if n <= 8 else "asymptotic" if n > 50 else "auto"
    if ties and n == 30:  # SciPy has no exact p for so many tied pairs: a close simulation instead
        flips = np.sign(rng.random((20000, n)) - 0.5) * np.abs(gaps)
        ranks = rankdata(np.abs(gaps[gaps != 0]))
        sums = (ranks * (flips[:, gaps != 0] > 0)).sum(axis=1)
        assert signed_rank(gaps) == pytest.approx((sums >= (ranks * (gaps[gaps != 0] > 0)).sum()).mean(), abs=0.02)
        return
    nonzero = gaps[gaps != 0]
    assert signed_rank(gaps) == pytest.approx(wilcoxon(nonzero, alternative="greater", method=exact).pvalue)
    assert signed_rank(gaps, True) == pytest.approx(wilcoxon(nonzero, method=exact).pvalue)
    assert signed_rank(np.zeros(5)) == 1.0


def test_correlations_are_scipys() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        x, y = rng.integers(0, 6, 11).astype(float), rng.integers(0, 6, 11).astype(float)
        found = correlate("overall", x, y)
        expected = [test(x, y).statistic for test in (pearsonr, spearmanr, kendalltau)]  # SciPy
        assert [found.pearson, found.spearman, found.kendall] == pytest.approx(expected)
    assert correlate("overall", np.ones(5), np.arange(5.0)).reason != ""


def test_agreement_of_several_raters(make_study: MakeStudy) -> None:
    study = make_study("qg-expert", systems=4, passages=10)
    rng = np.random.default_rng(1)
    truth = {i.record: rng.integers(1, 4) for t in study.tasks for i in t.items}

    def rate(item: object, criterion: str) -> float:
        return float(np.clip(truth[getattr(item, "record")] + rng.choice([-1, 0, 0, 0, 0, 1]), 1, 3))  # noqa: B009

    rows = [sitting(study, task.id, f"r{k}", rate) for task in study.tasks for k in range(5)]
    report = analyse_sittings(study, rows, Options(draws=200))
    found = report.agreement[0]
    assert found.units == 40 and found.ratings == 200 and found.reason == ""
    assert 0.4 < found.alpha["ordinal"] < 0.95  # type: ignore[operator]
    low, high = found.interval["ordinal"]  # type: ignore[misc]
    assert low < found.alpha["ordinal"] < high  # type: ignore[operator]
    assert not report.standardised and 1 <= report.scores[0].overall <= 3


def test_kpqas_filter_drops_far_ratings_only(make_study: MakeStudy) -> None:
    study = make_study("qa-correctness", systems=3, passages=10)
    outlier = {"r9": 1.0}
    rows = [
        sitting(study, task.id, f"r{k}", lambda i, c, k=k: outlier.get(f"r{k}", 5.0))  # type: ignore[misc]
        for task in study.tasks
        for k in range(10)
    ]
    found = judgements(study, rows, standardise=False)
    assert all(np.isnan(j.values[0]) == (j.rater == "r9") for j in found)
    assert all(s.overall == 5.0 for s in analyse_sittings(study, rows, Options(draws=100)).scores)


def test_prediction_powered_scores_join_ratings_and_metric(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study()
    rng = np.random.default_rng(2)
    path = tmp_path / "scores.jsonl"
    with path.open("w") as file:
        for (record, system), _ in study.records.items():
            level = 80 if system == "human" else 75 - 2 * int(system[-2:])
            scores = {"metric": level + rng.normal(0, 3), "other": None}
            file.write(json.dumps({"id": record, "system": system, "scores": scores}) + "\n")
        for k in range(200):  # outputs nobody rated
            file.write(
                json.dumps(
                    {"id": f"x{k}", "system": "human", "scores": {"metric": 80.0 + rng.normal(0, 3), "other": None}}
                )
                + "\n"
            )
    report = analyse_sittings(study, crowd(study), Options(draws=100, scores=path))
    top = next(p for p in report.powered if p.system == "human")
    assert report.metric == "metric" and (top.rated, top.scored) == (12, 212)
    assert report.correlation > 0.5 and report.needed_with_metric < report.needed  # type: ignore[operator]
    with pytest.raises(UsageError, match=r"scores.jsonl: no metric 'mertic'; it has metric, other"):
        analyse_sittings(study, crowd(study), Options(draws=100, scores=path, metric="mertic"))
    path.write_text("nonsense\n")
    with pytest.raises(UsageError, match=r"scores.jsonl:1: not valid JSON"):
        analyse_sittings(study, crowd(study), Options(draws=100, scores=path))


def test_criteria_with_different_scales_count_alike(make_study: MakeStudy, tmp_path: Path) -> None:
    """By hand: slider 80 of 100 is 80 %, 2 of 1 to 5 is 25 %, yes is 100 %. Before, the slider was nearly all of it."""
    folder = make_study("qg-expert", systems=2, passages=3).folder
    protocol = folder / "protocol.toml"
    text = protocol.read_text("utf-8")
    protocol.write_text(text[: text.index("[[criteria]]")] + THREE_SCALES + text[text.index("[task]") :], "utf-8")
    study = load_study(folder)
    assert not study.protocol.one_scale and load_protocol("qg-crowd").one_scale
    values = {place: {"clear": 80.0, "grammar": 2.0, "answerable": 1.0} for place in range(len(study.tasks[0].items))}
    done = Sitting("a", study.tasks[0].id, "ann", "test", "submitted", 0.0, 60.0, values)
    report = analyse_sittings(study, [done], Options(draws=20))
    assert report.scores[0].criteria == pytest.approx({"clear": 80, "grammar": 25, "answerable": 100})
    assert report.scores[0].overall == pytest.approx((80 + 25 + 100) / 3)
    assert any("percent of each" in note for note in report.notes)
    store = Store(study)
    held = store.assign(Arrival("ann", "link", "s"))
    for place in values:
        store.rate(held.id, place, {"clear": 80, "grammar": 1, "answerable": 0})
    store.submit(held.id, "")
    (record, *_) = rated_records(store)  # as rated, and no overall score of numbers that cannot be averaged
    assert record.human == {"clear": 80.0, "grammar": 2.0, "answerable": 1.0}
    store.close()


def test_nothing_to_analyse_is_said(make_study: MakeStudy) -> None:
    study = make_study()
    with pytest.raises(UsageError, match="no task has been submitted"):
        analyse_sittings(study, [], Options())
    flat = [sitting(study, "t0001", "flat", lambda i, c: 50)]
    with pytest.raises(UsageError, match="none of 1 raters passes"):
        analyse_sittings(study, flat, Options())
    with pytest.raises(UsageError, match="nothing can be standardised"):
        analyse_sittings(study, flat, Options(unfiltered=True))
