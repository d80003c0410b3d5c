"""Ray gives the same file as the local engine; a dead worker costs a retry; a killer record is told, not lost."""

import json
import os
import signal
import threading
import time
from dataclasses import dataclass
from typing import ClassVar

import pytest

from elench.engine.drive import Driver
from elench.engine.job import Job, score_file
from elench.engine.ray import ActorPool, check_address, score_on_ray
from elench.engine.session import Session
from elench.engine.windows import score_window
from elench.errors import UsageError
from elench.metrics import metric
from elench.metrics.base import Metric, Score
from elench.models.base import ModelSet
from elench.records.record import Record
from tests.engine.test_run import make
from tests.tiny import tiny

ray = pytest.importorskip("ray")


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield
    ray.shutdown()


@dataclass(frozen=True)
class Deadly(Metric):
    """Scores text length; a record that says so kills its process, once (with a flag file) or always."""

    name: ClassVar[str] = "deadly"
    judges: ClassVar[tuple[str, ...]] = ("answer",)
    reads: ClassVar[tuple[str, ...]] = ()
    flag: str = ""

    async def score(self, record):
        text = self.text(record, "answer")
        if text == "kill" or (text == "kill once" and not os.path.exists(self.flag)):  # noqa: PTH110
            if text == "kill once":
                open(self.flag, "w").close()  # noqa: PTH123
            os.kill(os.getpid(), signal.SIGKILL)
        return Score(float(len(text)))


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_same_file_as_the_local_engine(tmp_path, workers):
    source = make(tmp_path / "in.jsonl", 1100)
    chosen = [metric("bleu"), metric("cider")]
    score_file(Job(source, chosen, tmp_path / "local.jsonl"))
    score_file(Job(source, chosen, tmp_path / "ray.jsonl", Session(engine="ray", workers=workers)))
    assert (tmp_path / "ray.jsonl").read_bytes() == (tmp_path / "local.jsonl").read_bytes()


def test_models_in_actors_give_the_same_numbers():
    models = ModelSet({"encoder": str(tiny("bert"))})
    records = [
        Record(str(i), question="who wrote the book ?", context=f"the king {'wrote ' * (i % 7)} it") for i in range(40)
    ]
    chosen = [metric("qrel-lrm")]
    here = score_window(records, chosen, Driver(models), {})
    groups = [records[i : i + 10] for i in range(0, 40, 10)]
    there = [o for part in score_on_ray(Session(models, False, 2), iter(groups), chosen, {}) for o in part]
    assert [o.id for o in there] == [r.id for r in records]
    assert (
        max(abs(a.scores["qrel-lrm"].value - b.scores["qrel-lrm"].value) for a, b in zip(here, there, strict=True))
        < 1e-5
    )


def test_a_worker_that_dies_costs_a_retry(tmp_path):
    chosen = [Deadly(str(tmp_path / "flag"))]
    groups = [
        [Record(f"{g}-{i}", answer="kill once" if (g, i) == (1, 2) else "fine") for i in range(5)] for g in range(4)
    ]
    found = [o for part in score_on_ray(Session(workers=2), iter(groups), chosen, {}) for o in part]
    assert [o.id for o in found] == [r.id for group in groups for r in group]
    assert all(o.scores for o in found)


def test_a_record_that_always_kills_is_unscored_and_the_rest_is_scored():
    groups = [[Record(f"{g}-{i}", answer="kill" if (g, i) == (0, 1) else "fine") for i in range(3)] for g in range(3)]
    found = [o for part in score_on_ray(Session(workers=2), iter(groups), [Deadly()], {}) for o in part]
    assert [o.id for o in found] == [r.id for group in groups for r in group]
    (bad,) = [o for o in found if not o.scores]
    assert bad.id == "0-1" and "the worker died" in bad.unscored["deadly"]


def test_resume_goes_on_under_ray(tmp_path):
    source = make(tmp_path / "in.jsonl", 1600)
    score_file(Job(source, [metric("f1")], tmp_path / "whole.jsonl"))

    def stop(outcome):
        if outcome.id == "700":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score_file(
            Job(source, [metric("f1")], tmp_path / "cut.jsonl", Session(engine="ray", workers=2), on_outcome=stop)
        )
    meta = score_file(
        Job(source, [metric("f1")], tmp_path / "cut.jsonl", Session(engine="ray", workers=2), resume=True)
    )
    assert (tmp_path / "cut.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert meta["records"] == 1600 and json.loads((tmp_path / "cut.meta.json").read_text())["records"] == 1600


def test_an_actor_killed_from_outside_is_replaced():
    pool = ActorPool(1, 1, Session(cache=False), [Deadly()], {})
    records = [Record("1", answer="fine")]
    assert pool.collect(*pool.submit(records))
    actor = pool.actors[0]
    threading.Thread(target=lambda: (time.sleep(0.1), ray.kill(actor))).start()
    time.sleep(1.0)
    outcomes = pool.collect(*pool.submit(records)) or pool.insist(records, [Deadly()])
    assert outcomes[0].scores
    pool.stop()


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:99999"])
def test_an_address_where_nobody_listens_is_named_at_once(address):
    with pytest.raises(UsageError, match="no Ray cluster answers"):
        check_address(address)
