"""A whole study over HTTP with raters of every kind, and the server killed twice (kill -9).

    python benchmarks/study_crowd.py [--raters 100] [--databases sqlite,postgresql]

Careful, careless (noisy), clicking, straight-lining and slow raters, some who leave and come back, some whose answers get
lost on the way, and some who come twice from the same browser. Checked: every acknowledged rating is in the database, the
target is reached in passed ratings, clickers among the kept, good raters rejected, true order found, cost.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import json
import random
import re
import socket
import sys
import tempfile
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from study_load import Answer, Rater, Tally, check, csrf, make_study, wipe
from tests.browser.conftest import Server
from tests.study.cluster import running_cluster

from elench.study.analyse.crowd import KINDS, SimulatedRater, Truth, answers_of
from elench.study.analyse.quality import judge_raters
from elench.study.analyse.replication import correlate
from elench.study.analyse.scores import judgements, kept_sittings, tabulate
from elench.study.analyse.sittings import collect
from elench.study.collect.store import Store
from elench.study.folder import Study, load_study, write_study

SHARES = {"careful": 0.5, "noisy": 0.15, "biased": 0.1, "random": 0.15, "straight": 0.05, "per-item": 0.05}
MOST_TASKS = 2


class CrowdRater(Rater):
    """A simulated person with a kind, who may be slow, leave and return, or repeat what met no answer."""

    def __init__(
        self, server: Server, tally: Tally, number: int, kind: str, world: World, twin: Rater | None = None
    ) -> None:
        super().__init__(server, tally, number)
        self.kind, self.world, self.twin, self.number = kind, world, twin, number
        self.person = SimulatedRater(kind, np.random.default_rng([7, number]))
        self.slow = self.rng.random() < 0.1
        self.returns = self.rng.random() < 0.1
        self.offline = self.rng.random() < 0.1
        self.turned_away = False

    async def ask(self, path: str, form: dict[str, str] | None = None) -> Answer:
        if form is not None and self.offline and self.rng.random() < 0.3:
            await self._lose_answer(path, form)
        return await super().ask(path, form)

    async def _lose_answer(self, path: str, form: dict[str, str]) -> None:
        """The connection breaks after the request has left: whether it arrived is not known, so it is sent again."""
        try:
            await self.send(path, form)
            if self.streams is not None:
                self.streams[1].close()
        except OSError:
            pass  # the server is being killed
        self.streams = None
        self.world.cut_off += 1
        await asyncio.sleep(0.1)

    async def work(self) -> None:
        path = self.server.join[len(f"http://127.0.0.1:{self.server.port}") :]
        if self.twin is not None:
            self.cookie = self.twin.cookie
            path += f"?PROLIFIC_PID=twin{self.number}&STUDY_ID=s&SESSION_ID=v{self.number}"
        for _ in range(MOST_TASKS):
            page = await self.ask(path)
            answer = await self.ask(path, {"csrf": csrf(page), "step": "instructions"})
            if answer.status != 303:
                self.tally.refused += 1
                self.world.duplicates += "each person can take part only once" in answer.text
                self.turned_away = "no task left" in answer.text
                return
            await self._task(answer.location, path)
        self.tally.finished += 1

    async def _task(self, task: str, path: str) -> None:
        where = (await self.ask(task)).location
        link = task.split("/")[2]
        self.world.kinds[link.split(".")[0]] = self.kind
        while not where.endswith("/review"):
            page = await self.ask(where)
            given = self.world.answers(link, page.text, self)
            form = {"csrf": csrf(page), "go": "next", **{f"c-{name}": str(a) for name, a in given.items()}}
            answer = await self.ask(where, form)
            if answer.status != 303:
                return
            self.tally.acknowledged.append((link, int(where.rsplit("/", 1)[1]), given))
            where = answer.location
            if self.slow:
                await asyncio.sleep(0.05)
            if self.returns and where.endswith("/10"):  # closes the browser and comes back with the same cookie
                self.returns, self.streams = False, None
                page = await self.ask(path)
                where = (
                    await self.ask((await self.ask(path, {"csrf": csrf(page), "step": "instructions"})).location)
                ).location
        page = await self.ask(where)
        await self.ask(f"{task}/submit", {"csrf": csrf(page), "feedback": "fine" if self.rng.random() < 0.1 else ""})


class World:
    """What the items are worth, and which item a page shows."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.truth = Truth(study, np.random.default_rng([0, 7]))
        self.places = {(item.text): (task, n) for task in study.tasks for n, item in enumerate(task.items)}
        self._given: dict[tuple[int, str], Any] = {}
        self.duplicates = 0
        self.cut_off = 0
        """Answers that offline raters did not get."""
        self.kinds: dict[str, str] = {}
        """Assignment → kind of its rater."""

    def answers(self, link: str, page: str, rater: CrowdRater) -> dict[str, str]:
        shown = html.unescape(re.search(r'class="subject" dir="auto">([^<]*)<', page)[1])  # type: ignore[index]
        task, place = self.places[shown]
        key = (id(rater), task.id)
        if key not in self._given:
            positions = rater.person.rate(self.truth.quality(task))
            self._given[key] = answers_of(self.study.protocol, task, positions)
        return dict(self._given[key][place])


async def crowd(server: Server, study: Study, raters: int, kills: int) -> tuple[Tally, list[CrowdRater]]:
    """Raters arrive one after the other, until the target is reached or they run out; the server dies on the way."""
    tally, world, rng = Tally(), World(study), random.Random(0)
    kinds = [kind for kind, share in SHARES.items() for _ in range(round(share * raters))]
    rng.shuffle(kinds)
    people = [CrowdRater(server, tally, number, kind, world) for number, kind in enumerate(kinds)]
    for twin in people[:: max(1, raters // 5)]:  # comes again from the same browser with another identity
        people.append(CrowdRater(server, tally, len(people), twin.kind, world, twin))
    gate = asyncio.Semaphore(20)

    async def visit(one: CrowdRater) -> None:
        async with gate:
            await one.work()

    jobs = asyncio.gather(*(visit(one) for one in people))
    for kill in range(kills):
        while len(tally.acknowledged) < raters * 10 * (kill + 1) and not jobs.done():
            await asyncio.sleep(0.05)
        server.kill()
        await asyncio.sleep(0.5)
        await asyncio.to_thread(server.start)
    await jobs
    for one in people:  # whoever found no task comes again later: work that failed has freed its place meanwhile
        if one.turned_away:
            one.turned_away = False
            await one.work()
    return tally, people


def run(kind: str, url: str | None, raters: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        small = make_study(Path(place) / "plan", raters)
        tasks = small.tasks[: raters * 6 // 10]
        study = write_study(
            Path(place) / "study", replace(small.protocol), tasks, list(small.records.values()), human="human", seed=0
        )
        if url:
            wipe(url)
        server = Server(study.folder, port, url)
        server.start()
        begun = time.perf_counter()
        try:
            tally, people = asyncio.run(crowd(server, study, raters, kills=2))
        finally:
            server.kill()
        lost, over, stored = check(study, url, tally)
        return report(kind, study, url, tally, people, lost, over, stored, time.perf_counter() - begun)


def report(
    kind: str, study: Study, url: str | None, tally: Tally, people: list[CrowdRater], lost: int, over: int, stored: int,
    seconds: float,
) -> dict[str, Any]:  # fmt: skip
    """Figures of one run. A rater's kind is found by the link of a task they rated."""
    store = Store(load_study(study.folder), url)
    store.settle()
    sittings = collect(store)
    verdicts = judge_raters(study, sittings)
    world = people[0].world
    careless = {name for name in KINDS if not KINDS[name][0]}
    kind_of = {s.rater: world.kinds[s.id] for s in sittings if s.id in world.kinds}
    done = [s for s in sittings if s.state == "submitted"]
    kept = kept_sittings(sittings, {r for r, v in verdicts.items() if v.passed})
    good = {s.rater for s in done if kind_of.get(s.rater) not in careless}
    clicked = [s for s in kept if kind_of.get(s.rater) in careless]
    systems = list(study.systems)
    found = tabulate(judgements(study, kept, True), systems, len(study.protocol.criteria)).scores()[:, -1]
    true = np.array([world.truth.systems[name] for name in systems])
    counted = sum(s.slot is not None for s in done)
    store.close()
    return {
        "database": kind,
        "raters": len(people),
        "target": len(study.tasks),
        "passed_tasks": counted,
        "submitted_tasks": len(done),
        "lost": lost,
        "over_assigned": over,
        "stored": stored,
        "duplicates_refused": world.duplicates,
        "repeated_requests": tally.away,
        "answers_lost_offline": world.cut_off,
        "errors": sorted(set(tally.errors))[:5],
        "clickers_share_of_kept": round(len(clicked) / max(1, len(kept)), 4),
        "clickers_share_submitted": round(sum(kind_of.get(s.rater) in careless for s in done) / max(1, len(done)), 4),
        "false_rejection": round(
            sum(not verdicts[r].passed and not verdicts[r].undecided for r in good) / max(1, len(good)), 4
        ),
        "good_raters": len(good),
        "good_raters_undecided": sum(verdicts[r].undecided for r in good),
        "spearman_with_truth": round(correlate("overall", found, true).spearman or 0, 3),
        "paid": round(len(done) * study.protocol.pay, 2),
        "paid_old_design": round(_old_cost(study, done, verdicts), 2),
        "seconds": round(seconds, 1),
    }


def _old_cost(study: Study, done: list[Any], verdicts: dict[str, Any]) -> float:
    """Before, raters who fail went on like the others: as many passed tasks cost target / share of passing raters."""
    raters = {s.rater for s in done}
    passing = sum(verdicts[r].passed for r in raters)
    return len(study.tasks) / max(1e-9, passing / len(raters)) * study.protocol.pay


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--raters", type=int, default=100)
    options.add_argument("--databases", default="sqlite,postgresql")
    chosen = options.parse_args()
    for kind in chosen.databases.split(","):
        with running_cluster(durable=True) if kind == "postgresql" else nullcontext(None) as url:
            print(json.dumps(run(kind, url, chosen.raters)), flush=True)


if __name__ == "__main__":
    main()
