"""`study new --choose`: passages on which systems disagree, unlike each other; and training with feedback, and export."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from elench.cli import cli
from elench.errors import UsageError
from elench.records.record import Record, write_records
from elench.study.analyse.sittings import collect
from elench.study.collect.payments import PLATFORM_FILES
from elench.study.collect.store import Arrival, Store
from elench.study.design.choose import choose_records
from elench.study.folder import load_study
from tests.study.conftest import MakeStudy, outputs
from tests.study.test_store import rate_all
from tests.study.web import Visitor

TRAINING = """
[[training]]
context = "Berlin is the capital of Germany."
question = "What is the capital of Germany?"
answer = "Berlin"
expected = { understandability = "high", relevancy = "high" }
explanation = "The passage answers this plain question."
"""


def agreeing(records: list[Record], groups: set[str]) -> list[Record]:
    """On these passages all systems ask the same question."""
    return [replace(r, question="What is it ?") if r.group in groups else r for r in records]


def test_passages_on_which_all_systems_agree_are_left_out() -> None:
    records = agreeing(outputs(4, 8), {"g0", "g3", "g5", "g6"})
    assert {r.group for r in choose_records(records, "question", 4)} == {"g1", "g2", "g4", "g7"}


def test_of_two_equal_passages_only_one_is_chosen() -> None:
    records = outputs(4, 6)
    copies = [replace(r, id=f"{r.id}-copy", group=f"{r.group}-copy") for r in records if r.group == "g0"]
    chosen = {r.group for r in choose_records([*records, *copies], "question", 6)}
    assert chosen == {"g0", "g1", "g2", "g3", "g4", "g5"} or chosen == {"g0-copy", "g1", "g2", "g3", "g4", "g5"}


def test_metric_scores_that_disagree_count_too(tmp_path: Path) -> None:
    records = agreeing(outputs(3, 5), {f"g{k}" for k in range(5)})
    scores = tmp_path / "scores.jsonl"
    with scores.open("w") as file:
        for r in records:
            value = int((r.system or "")[-1:] == "1") if r.group == "g3" else 0.5  # systems differ on one passage only
            file.write(json.dumps({"id": r.id, "system": r.system, "scores": {"f1": value, "bleu": None}}) + "\n")
    assert {r.group for r in choose_records(records, "question", 1, scores)} == {"g3"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--choose", "9"], "the file has only 4 passages"),
        (["--choose", "2", "--scores", "nowhere.jsonl"], "nowhere.jsonl: no such file"),
        (["--scores", "nowhere.jsonl"], "--scores needs --choose"),
    ],
)
def test_what_cannot_be_chosen_is_named(tmp_path: Path, words: list[str], message: str) -> None:
    write_records(outputs(6, 4), tmp_path / "r.jsonl")
    done = CliRunner().invoke(cli, ["study", "new", str(tmp_path / "r.jsonl"), "-o", str(tmp_path / "s"), *words])
    assert isinstance(done.exception, UsageError) and message in str(done.exception)
    assert not (tmp_path / "s").exists()


def test_training_tells_what_was_right_and_why_and_leads_to_the_first_task(make_study: MakeStudy) -> None:
    folder = make_study().folder
    path = folder / "protocol.toml"
    path.write_text(path.read_text("utf-8") + TRAINING, "utf-8")
    store = Store(load_study(folder))
    rater = Visitor(store)
    task = rater.join()
    assert "Example 1 of 1" in rater.page.text
    fields = {c.field: "90" for c in store.study.protocol.criteria} | {"c-relevancy": "10"}
    rater.post(f"{task}/1", {"csrf": rater.csrf, "go": "next", **fields})
    lessons = re.findall(r'class="lesson"[^>]*>([^<]*)<', rater.page.text)
    assert lessons[0] == "Right." and lessons[1] != "Right." and lessons[-1].startswith("The passage answers")
    assert rater.get(f"{task}/review").status_code == 200
    rater.post(f"{task}/submit", {"csrf": rater.csrf})
    assert "Item 1 of 20" in rater.page.text  # the first real task
    assert not collect(store)[0].values  # and nothing of the training is in it
    store.close()


def test_prolific_gets_a_list_of_submissions_and_excluded_workers_are_not_in_it(make_study: MakeStudy) -> None:
    store = Store(make_study(keep_worker_ids=True))
    for name, careful in (("ann", True), ("flat", False)):
        held = store.assign(Arrival(name, "prolific", name, f"P-{name}", {"study": "S", "session": f"X-{name}"}))
        rate_all(store, held, careful=careful)
        store.submit(held.id, "")
    rows = list(csv.DictReader(io.StringIO(PLATFORM_FILES["prolific"](store))))
    assert {"P-ann", "P-flat"} == {value for row in rows for value in row.values() if value.startswith("P-")}
    store.close()


def test_the_export_goes_straight_into_meta_and_calibrate(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(passages=6)
    store = Store(study)
    for k in range(6):
        held = store.assign(Arrival(f"r{k}", "link", f"r{k}"))
        for place, item in enumerate(study.by_id[held.task].items):
            level = 90 - 5 * int("0" + item.system[-2:].strip("an")) - (45 if item.kind == "bad" else 0) + (place % 3)
            store.rate(held.id, place, {c.name: max(0, level) for c in study.protocol.criteria})
        store.submit(held.id, "")
    store.close()
    rated, scores = tmp_path / "rated.jsonl", tmp_path / "scores.jsonl"
    with scores.open("w") as file:
        for k, r in enumerate(study.records.values()):
            value = 1 - int("0" + (r.system or "")[-2:].strip("an")) / 20 + (k * 7 % 5) / 10
            file.write(json.dumps({"id": r.id, "system": r.system, "scores": {"f1": value}, "unscored": {}}) + "\n")
    commands = (
        ["study", "export", str(study.folder), "--records", "-o", str(rated)],
        ["meta", str(rated), "--scores", str(scores)],
        ["calibrate", str(rated), "--scores", str(scores), "-o", str(tmp_path / "profile.json")],
    )
    for words in commands:
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == 0, (words, done.output, done.exception)
    assert json.loads((tmp_path / "profile.json").read_text())
