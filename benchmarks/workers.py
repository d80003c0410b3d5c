"""Worker processes: records per second and memory of each, and what the parent holds (no model).

    python benchmarks/workers.py [--records 600] [--workers 1,2] [-m bertscore]

With 1 worker the models are in the one process there is. Memory is the proportional set size: pages that processes
share, such as mapped weights, are counted once, in parts.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from pathlib import Path

import click

os.environ["OMP_NUM_THREADS"] = "1"


def memory(pid: int) -> float:
    """Proportional set size of a process in MB; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
    except OSError:
        return 0.0


def children() -> list[int]:
    """Worker processes of this one: children that have a worker's main function on their command line."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            try:
                if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(int(pid))
            except OSError:
                continue
    return found


class Watch(threading.Thread):
    """Looks at the processes' memory while they work; keeps the highest of each."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most: dict[int, float] = {}
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(0.5):
            for pid in (os.getpid(), *children()):
                self.most[pid] = max(self.most.get(pid, 0.0), memory(pid))


@click.command()
@click.option("--records", default=600, show_default=True)
@click.option("--workers", default="1,2", show_default=True)
@click.option("-m", "spec", default="bertscore", show_default=True)
def main(records: int, workers: str, spec: str) -> None:
    """Print one line for each number of workers."""
    from texts import mixed_texts

    from elench.engine.job import Job, score_file
    from elench.engine.session import Session
    from elench.metrics import metric
    from elench.models.base import ModelSet

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "in.jsonl"
        pairs = enumerate(zip(mixed_texts(records, 1), mixed_texts(records, 2), strict=True))
        lines = [{"id": str(i), "judge": "answer", "answer": a, "references": [b]} for i, (a, b) in pairs]
        source.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        for count in sorted(map(int, workers.split(",")), reverse=True):  # one worker last: its models stay here
            session, watch = Session(ModelSet(), False, count), Watch()
            watch.start()
            begun = time.perf_counter()
            score_file(Job(source, [metric(spec)], Path(folder) / f"out{count}.jsonl", session))
            seconds = time.perf_counter() - begun
            watch.done.set()
            watch.join()
            own = watch.most.pop(os.getpid(), 0.0)
            each = ", ".join(f"{m:.0f}" for m in watch.most.values()) or "none"
            print(
                f"{count} worker(s): {records / seconds:.1f} records/s wall, {seconds:.1f} s; parent {own:.0f} MB, models "
                f"loaded there: {', '.join(session.models.loaded) or 'none'}; workers {each} MB; n = {records}, {spec}; "
                f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores",
                flush=True,
            )


if __name__ == "__main__":
    main()
