"""How many raters can a study carry, and does it keep every rating when the server is killed?

    python benchmarks/study_load.py [--raters 200] [--databases sqlite,postgresql]

Starts the real server on the loopback address, lets 200 raters work at the same time without pausing (read a page, rate
its item, go on), and some more who must be refused. A second round kills the server with -9 in the middle and starts it
again. In the end every acknowledged rating is looked up in the database.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import json
import os
import random
import re
import socket
import statistics
import sys
import tempfile
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

sys.path.insert(0, str(Path(__file__).parent.parent))
from sqlalchemy import select
from tests.browser.conftest import Server
from tests.study.cluster import running_cluster, wipe

from elench.records.record import Record
from elench.study.collect.schema import assignments, ratings
from elench.study.collect.store import Store
from elench.study.design.compose import compose
from elench.study.design.protocol_file import load_protocol
from elench.study.folder import Study, load_study, write_study

SYSTEMS = ["human", *(f"system{k:02d}" for k in range(1, 11))]


def make_study(folder: Path, passages: int) -> Study:
    rng = random.Random(0)
    words = [f"w{k}" for k in range(4000)]
    records = []
    for p in range(passages):
        context = " ".join(rng.choices(words, k=120)) + "."
        for s, name in enumerate(SYSTEMS):
            question = f"Which {' '.join(rng.choices(words, k=10))} ?"
            records.append(Record(f"{p}-{s}", context, question, context.split()[5 + s], system=name, group=str(p)))
    protocol = load_protocol("qg-crowd")
    return write_study(folder, protocol, compose(records, protocol, None, "human", 0), records, human="human", seed=0)


@dataclass
class Tally:
    """What happened, seen from the raters."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    refused: int = 0
    away: int = 0
    """Requests that met no server and were sent again."""
    finished: int = 0
    acknowledged: list[tuple[str, int, dict[str, int]]] = field(default_factory=list)
    """Task link, place, answers."""


class Answer(NamedTuple):
    status: int
    location: str
    text: str


class Rater:
    """One simulated browser: one kept-alive connection, cookies, repeats what met no server.

    Written on bare sockets, because on a small machine a full HTTP client costs more than the server it measures.
    """

    def __init__(self, server: Server, tally: Tally, number: int) -> None:
        self.server, self.tally = server, tally
        self.rng = random.Random(number)
        self.cookie = ""
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, path: str, form: dict[str, str] | None = None) -> Answer:
        while True:
            start = time.perf_counter()
            try:
                answer = await asyncio.wait_for(self._once(path, form), 120)
            except (OSError, asyncio.IncompleteReadError):
                self.streams = None
                self.tally.away += 1
                await asyncio.sleep(0.3)
                continue
            self.tally.seconds.append(time.perf_counter() - start)
            if answer.status >= 400:
                self.tally.errors.append(f"{answer.status} {path[:12]}")
            return answer

    async def _once(self, path: str, form: dict[str, str] | None) -> Answer:
        reader = await self.send(path, form)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:]) if value}
        text = (await reader.readexactly(int(headers.get("content-length", "0")))).decode()
        if "set-cookie" in headers:
            self.cookie = headers["set-cookie"].split(";")[0]
        return Answer(int(lines[0].split()[1]), headers.get("location", ""), text)

    async def send(self, path: str, form: dict[str, str] | None) -> asyncio.StreamReader:
        """Send a request; its answer is still to be read."""
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.server.port)
        reader, writer = self.streams
        body = urlencode(form).encode() if form is not None else b""
        head = f"{'GET' if form is None else 'POST'} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncookie: {self.cookie}\r\n"
        if form is not None:
            head += f"content-type: application/x-www-form-urlencoded\r\ncontent-length: {len(body)}\r\n"
        writer.write(head.encode() + b"\r\n" + body)
        return reader

    def answers(self, page: str) -> dict[str, int]:
        """Random ratings, higher for what reads like a whole question, so that the filter passes."""
        shown = html.unescape(re.search(r'class="subject" dir="auto">([^<]*)<', page)[1])  # type: ignore[index]
        low, high = (0, 40) if shown in self.server.bad else (50, 100)
        return {name: self.rng.randint(low, high) for name in re.findall(r'type="number" name="c-(\w+)"', page)}

    async def work(self) -> None:
        path = self.server.join[len(f"http://127.0.0.1:{self.server.port}") :]
        page = await self.ask(path)
        answer = await self.ask(path, {"csrf": csrf(page), "step": "instructions"})
        if answer.status != 303:
            self.tally.refused += "no task left" in answer.text
            return
        task = answer.location
        where = (await self.ask(task)).location
        while not where.endswith("/review"):
            page = await self.ask(where)
            given = self.answers(page.text)
            form = {"csrf": csrf(page), "go": "next", **{f"c-{name}": str(answer) for name, answer in given.items()}}
            answer = await self.ask(where, form)
            if answer.status == 303:
                self.tally.acknowledged.append((task.split("/")[2], int(where.rsplit("/", 1)[1]), given))
                where = answer.location
        page = await self.ask(where)
        answer = await self.ask(f"{task}/submit", {"csrf": csrf(page), "feedback": ""})
        self.tally.finished += answer.location.endswith("/done")


def csrf(page: Answer) -> str:
    found = re.search(r'name="csrf" value="([^"]*)"', page.text)
    return found[1] if found else ""


async def storm(server: Server, raters: int, extra: int, kill: bool) -> tuple[Tally, float]:
    tally = Tally()
    start = time.perf_counter()
    work = asyncio.gather(*(Rater(server, tally, k).work() for k in range(raters + extra)))
    if kill:
        while len(tally.acknowledged) < raters * 10 and not work.done():
            await asyncio.sleep(0.05)
        server.kill()  # SIGKILL: no farewell, no flush
        await asyncio.sleep(1)
        await asyncio.to_thread(server.start)
    await work
    return tally, time.perf_counter() - start


def check(study: Study, database: str | None, tally: Tally) -> tuple[int, int, int]:
    """Acknowledged ratings that the database lacks; tasks held more often than planned; ratings stored."""
    store = Store(load_study(study.folder), database)
    with store.reading() as connection:
        rows = connection.execute(select(ratings.c.assignment, ratings.c.item, ratings.c.criterion, ratings.c.answer))
        stored = {tuple(row) for row in rows}
        held = connection.execute(select(assignments)).all()
    store.close()
    orders = {row.id: json.loads(getattr(row, "order")) for row in held}  # noqa: B009
    tasks_of = {row.id: row.task for row in held}
    lost = 0
    for link, place, given in tally.acknowledged:
        name = link.split(".")[0]
        (item,) = orders[name][place - 1]
        key = study.by_id[tasks_of[name]].items[item].key
        lost += sum((name, key, criterion, str(answer)) not in stored for criterion, answer in given.items())
    planned = {task.id: task.raters for task in study.tasks}
    taken: dict[str, int] = {}
    for row in held:
        taken[row.task] = taken.get(row.task, 0) + (row.slot is not None)
    return lost, sum(taken[name] > planned[name] for name in taken), len(stored)


def cpu_seconds(server: Server) -> float:
    """Processor time of the server so far (Linux): unlike waiting times it does not depend on what else is running."""
    assert server.process is not None
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(kind: str, url: str | None, raters: int, extra: int, kill: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        study = make_study(Path(place) / "study", raters)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if url:
            wipe(url)
        server = Server(study.folder, port, url)
        server.bad = {item.text for task in study.tasks for item in task.items if item.kind == "bad"}
        server.start()
        cpu = cpu_seconds(server)
        try:
            tally, seconds = asyncio.run(storm(server, raters, extra, kill))
            cpu = cpu_seconds(server) - cpu
        finally:
            server.kill()
        lost, over, stored = check(study, url, tally)
    times = sorted(tally.seconds)
    return {
        "database": kind,
        "killed": kill,
        "raters": raters,
        "finished": tally.finished,
        "refused": tally.refused,
        "requests": len(times),
        "errors": len(tally.errors),
        "repeated": tally.away,
        "acknowledged": sum(len(given) for _, _, given in tally.acknowledged),
        "stored": stored,
        "lost": lost,
        "over_assigned": over,
        "seconds": round(seconds, 1),
        "per_second": round(len(times) / seconds),
        "server_cpu_ms_per_request": None if kill else round(1000 * cpu / len(times), 2),
        "p50_ms": round(1000 * statistics.median(times)),
        "p95_ms": round(1000 * times[int(0.95 * len(times))]),
        "max_ms": round(1000 * times[-1]),
        "error_kinds": sorted(set(tally.errors))[:5],
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--raters", type=int, default=200)
    options.add_argument("--extra", type=int, default=20, help="raters for whom there is no task")
    options.add_argument("--databases", default="sqlite,postgresql")
    chosen = options.parse_args()
    results = []
    for kind in chosen.databases.split(","):
        with running_cluster(durable=True) if kind == "postgresql" else nullcontext(None) as url:
            for kill in (False, True):
                results.append(run(kind, url, chosen.raters, chosen.extra, kill))
                print(json.dumps(results[-1]), flush=True)
    bad = [r for r in results if r["lost"] or r["over_assigned"] or r["errors"] or r["finished"] != r["raters"]]
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
