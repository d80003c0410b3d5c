"""Who is kept: the permutation test keeps its level whatever a rater clicks, and doubt earns another task."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import wilcoxon

from elench.cli.study import command
from elench.errors import UsageError
from elench.records.record import write_records
from elench.study.analyse.crowd import MIXTURE, Crowd, SimulatedRater, Truth
from elench.study.analyse.quality import control_pairs, judge_rater
from elench.study.analyse.reading import SAME_OUTPUT, reading_p, residuals
from elench.study.analyse.simulate import as_published, simulate_study
from elench.study.analyse.sittings import Sitting, collect
from elench.study.collect.handout import NoTask
from elench.study.collect.payments import payments
from elench.study.collect.store import Store
from elench.study.design.compose import Item, compose
from elench.study.design.protocol import PAPER_FILTER
from elench.study.design.protocol_file import load_protocol, parse_protocol
from elench.study.folder import Study, load_study
from tests.study.conftest import MakeStudy, outputs
from tests.study.test_store import person, rate_all

CROWD = load_protocol("qg-crowd")


def sitting(study: Study, rater: str, task: str, positions: np.ndarray) -> Sitting:
    names = [c.name for c in study.protocol.criteria]
    values = {place: dict(zip(names, row.tolist(), strict=True)) for place, row in enumerate(positions)}
    return Sitting(f"{rater}-{task}", task, rater, "test", "submitted", 0.0, 0.0, values)


def test_the_fit_is_that_of_generalised_least_squares() -> None:
    """A second implementation: the normal equations with the inverse covariance, for every order of four ratings."""
    kinds = [("a", "ordinary"), ("b", "ordinary"), ("a", "bad"), ("b", "repeat")]
    items = [Item(name, "s", kind, f"{name}{kind}") for name, kind in kinds]  # type: ignore[arg-type]
    inverse = np.linalg.inv(
        [[1.0 if i == j else SAME_OUTPUT if kinds[i][0] == kinds[j][0] else 0.0 for j in range(4)] for i in range(4)]
    )
    full = np.array([[1, 0], [1, 0], [1, -1], [1, 0]], float)
    for given in itertools.permutations((0.9, 0.7, 0.1, 0.65)):
        y = np.array(given)
        fits = []
        for design in (full[:, :1], full):
            beta = np.linalg.solve(design.T @ inverse @ design, design.T @ inverse @ y)
            rest = y - design @ beta
            fits.append((float(rest @ inverse @ rest), beta))
        expected = fits[1][0] if fits[1][1][1] > 0 else fits[0][0]  # a drop, never a rise
        assert residuals(items, y[None])[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("pattern", ["random", "per-item", "drift", "zigzag"])
def test_whoever_does_not_read_passes_no_more_often_than_alpha(make_study: MakeStudy, pattern: str) -> None:
    """The order is the server's, so any pattern in time is unrelated to the items. 200 raters: at most 10 of p < .01
    (binomial, chance below .01 of more); single ratings counted as independent pairs let far more per-item ones pass."""
    study = make_study()
    rng = np.random.default_rng(5)
    passed = 0
    for number in range(200):
        task = study.tasks[number % len(study.tasks)]
        count = len(task.items)
        time_order = rng.permutation(count)
        if pattern in ("random", "per-item"):
            given = SimulatedRater(pattern, rng).rate(np.zeros((count, 4)))
        else:
            course = np.linspace(95, 5, count) if pattern == "drift" else np.tile([90.0, 10.0], count)[:count]
            given = np.repeat(course[time_order][:, None], 4, axis=1)
        passed += reading_p(study, f"r{number}", [sitting(study, f"r{number}", task.id, given)]) < 0.01
    assert passed <= 7


def test_equal_ratings_have_p_1_and_a_perfect_rater_the_smallest(make_study: MakeStudy) -> None:
    study = make_study()
    task = study.tasks[0]
    flat = np.full((len(task.items), 4), 70.0)
    assert reading_p(study, "flat", [sitting(study, "flat", task.id, flat)]) == 1
    sharp = np.array([[20.0] * 4 if item.kind == "bad" else [80.0] * 4 for item in task.items])
    assert reading_p(study, "sharp", [sitting(study, "sharp", task.id, sharp)]) == 1 / 2000


def test_both_goals_are_met_where_the_published_control_misses_one(make_study: MakeStudy) -> None:
    """More than half of this crowd clicks. Goals: careless share of kept work <= 3 %, false rejection <= 5 %."""
    study = make_study(passages=20)
    crowd = Crowd(MIXTURE, 60, 2)
    ours, paper = (simulate_study(one, crowd, 5, 0) for one in (study, as_published(study)))
    assert ours.careless_work <= 0.03 < paper.careless_work  # type: ignore[operator]
    assert ours.false_reject <= 0.05  # type: ignore[operator]
    assert ours.submitted_tasks / ours.kept_tasks < 1.1 * paper.submitted_tasks / paper.kept_tasks


def rate_with(store: Store, name: str, rater: SimulatedRater, truth: Truth) -> str:
    held = store.assign(person(name))
    positions = rater.rate(truth.quality(store.study.by_id[held.task]))
    for place, row in enumerate(positions):
        store.rate(held.id, place, {c.name: int(v) for c, v in zip(store.study.protocol.criteria, row, strict=True)})
    store.submit(held.id, "")
    return held.id


def test_an_undecided_rater_gets_further_tasks_and_is_decided_by_eighteen_controls(make_study: MakeStudy) -> None:
    store = Store(make_study(passages=40))
    rng = np.random.default_rng(0)
    truth = Truth(store.study, rng)
    taken = Counter[int]()
    for number in range(40):
        name, clicker = f"r{number}", SimulatedRater("random", rng)
        for tasks in (1, 2, 3):
            rate_with(store, name, clicker, truth)  # another task is offered while nothing is decided
            verdict = judge_rater(store.study, name, [s for s in collect(store) if s.rater == name])
            if not verdict.undecided:
                break
            assert (0.01 if tasks == 1 else 0.002) <= verdict.p < 0.1 and tasks < 3  # type: ignore[operator]
            assert not store.rater(name).standing  # type: ignore[union-attr]
        taken[tasks] += 1
        if not verdict.passed:
            with pytest.raises(NoTask, match="stopped"):
                store.assign(person(name))
    assert taken[1] > 30 and taken[2] + taken[3] > 0
    store.close()


def test_the_second_look_is_stricter_than_the_first(make_study: MakeStudy) -> None:
    """Goals for raters who do two tasks: fewer than 3 in 1,000 clickers kept, at most 5 % of good raters rejected.
    With p < .01 at both looks 7 in 1,000 stayed (1,500 simulated raters)."""
    study = make_study(passages=20)
    crowd = Crowd({"careful": 0.2, "noisy": 0.1, "random": 0.4, "per-item": 0.3}, 100, 2)
    found = simulate_study(study, crowd, 8, 3)
    assert found.false_accept_n == 560 and found.false_accept <= 2 / 560  # type: ignore[operator]
    assert found.false_reject <= 0.05  # type: ignore[operator]
    task, other = study.tasks[:2]
    rule = study.protocol.filter
    assert (rule.alpha, rule.later) == (0.01, 0.002)
    doubtful = SimulatedRater("noisy", np.random.default_rng(1))
    truth = Truth(study, np.random.default_rng(1))
    seen = set()
    for _ in range(60):
        own = [sitting(study, "r", t.id, doubtful.rate(truth.quality(t))) for t in (task, other)]
        verdict = judge_rater(study, "r", own)
        assert verdict.passed == (verdict.p < 0.002) and verdict.undecided == (0.002 <= verdict.p < 0.1)  # type: ignore[operator]
        seen.add(verdict.undecided)
    assert seen == {True, False}


def test_undecided_work_is_paid_even_where_failed_work_is_not(make_study: MakeStudy) -> None:
    folder = make_study(systems=3).folder  # 2 bad references per task: nobody is rejected after one
    path = folder / "protocol.toml"
    path.write_text(path.read_text("utf-8").replace("[pay]", '[pay]\nfailed = "none"'), "utf-8")
    store = Store(load_study(folder))
    for turn in range(3):
        held = store.assign(person("flat"))
        rate_all(store, held, careful=False)
        store.submit(held.id, "")
        (last, *_) = reversed(list(payments(store)))
        assert last.approved == (turn < 2)  # the third task makes six controls
    assert "too few control items" not in last.reason
    with pytest.raises(NoTask, match="stopped"):
        store.assign(person("flat"))
    store.close()


def test_a_design_whose_raters_cannot_rate_enough_controls_is_refused() -> None:
    with pytest.raises(UsageError, match=r"smallest reachable p is 0\.1000.*add passages"):
        compose(outputs(2, 1), CROWD, None, None, 0)
    assert compose(outputs(2, 3), CROWD, None, None, 0)


@pytest.mark.parametrize(("systems", "kind"), [(3, "wilcoxon"), (5, "wilcoxon"), (6, "permutation")])
def test_raters_who_take_one_task_can_pass_in_every_study_that_the_command_makes(
    tmp_path: Path, systems: int, kind: str
) -> None:
    """With few systems a task has too few items for the permutation test: a perfect rater of one task would wait."""
    write_records(outputs(systems), tmp_path / "records.jsonl")
    made = CliRunner().invoke(command, ["new", str(tmp_path / "records.jsonl"), "-o", str(tmp_path / "s")])
    assert made.exit_code == 0 and ("judged as published" in made.output) == (kind == "wilcoxon"), made.output
    study = load_study(tmp_path / "s")
    assert study.protocol.filter.kind == kind
    for task in study.tasks:
        perfect = np.array([[20.0] * 4 if item.kind == "bad" else [80.0] * 4 for item in task.items])
        assert judge_rater(study, "r", [sitting(study, "r", task.id, perfect)]).passed


def test_the_published_control_is_one_setting(make_study: MakeStudy, tmp_path: Path) -> None:
    write_records(outputs(), tmp_path / "records.jsonl")
    made = CliRunner().invoke(
        command, ["new", str(tmp_path / "records.jsonl"), "-o", str(tmp_path / "s"), "--qc", "paper"]
    )
    assert made.exit_code == 0 and "p < 0.05" in made.output, made.output
    study = load_study(tmp_path / "s")
    assert study.protocol.filter == PAPER_FILTER and 'qc = "paper"' in (tmp_path / "s" / "protocol.toml").read_text()
    task = study.tasks[0]
    noisy = SimulatedRater("noisy", np.random.default_rng(3)).rate(np.full((20, 4), 60.0))
    own = sitting(study, "r", task.id, noisy)
    pairs = np.array(control_pairs(study, own, "bad"))
    expected = wilcoxon(pairs[:, 0], pairs[:, 1], alternative="greater", method="approx", correction=False).pvalue
    assert len(pairs) == 24 and judge_rater(study, "r", [own]).p == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(
    ("filter_", "message"),
    [
        ('qc = "paper"\nalpha = 0.1', "filter: alpha: unknown"),
        ('qc = "strict"', "'strict' is not one of paper"),
        ('kind = "permutations"', "did you mean"),
    ],
)
def test_a_wrong_filter_is_named_with_its_line(filter_: str, message: str) -> None:
    text = CROWD.text[: CROWD.text.index("[filter]")] + f"[filter]\n{filter_}\n"
    with pytest.raises(UsageError, match=message) as wrong:
        parse_protocol(text, "mine.toml")
    assert str(wrong.value).startswith("mine.toml:")
