"""`elench serve` under load: requests and records per second, p50 and p95 per request, for batches of 1, 16 and 128.

    python benchmarks/service.py [--seconds 10] [--clients 4] [-m rouge-l] [-m bertscore]

The real server in its own process on loopback; clients post one request after the other for so many seconds. Texts differ
from request to request, so that no answer is cached.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from http.client import HTTPConnection

import click
import numpy as np
from texts import mixed_texts


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def post(connection: HTTPConnection, specs: tuple[str, ...], records: list[dict[str, object]]) -> float:
    """Seconds of one request; anything but full scores is an error."""
    body = json.dumps({"records": records, "metrics": list(specs)})
    begun = time.perf_counter()
    connection.request("POST", "/score", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    told = json.loads(answer.read())
    spent = time.perf_counter() - begun
    if answer.status != 200 or len(told["results"]) != len(records):
        raise SystemExit(f"status {answer.status}: {told}")
    return spent


@click.command()
@click.option("--seconds", default=10.0, show_default=True)
@click.option("--clients", default=4, show_default=True)
@click.option("-m", "specs", multiple=True, default=("rouge-l",), show_default=True)
def main(seconds: float, clients: int, specs: tuple[str, ...]) -> None:
    """Start the server, load it, print the figures, stop it."""
    port = free_port()
    command = [sys.executable, "-m", "elench", "serve", "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            try:
                first = HTTPConnection("127.0.0.1", port, timeout=60)
                post(first, specs, [{"id": "0", "judge": "answer", "answer": "a b", "references": ["a c"]}])
                break
            except OSError:
                time.sleep(0.1)
        for size in (1, 16, 128):
            spent: list[float] = []
            end = time.monotonic() + seconds

            def client(number: int, size: int = size, end: float = end, spent: list[float] = spent) -> None:
                connection = HTTPConnection("127.0.0.1", port, timeout=120)
                texts = mixed_texts(4096, 1000 * size + number)
                at = 0
                while time.monotonic() < end:
                    pairs = [(texts[(at + i) % 4096], texts[(at + i + 1) % 4096]) for i in range(size)]
                    at += size
                    records = [
                        {"id": str(i), "judge": "answer", "answer": f"{a} {number}-{at}", "references": [b]}
                        for i, (a, b) in enumerate(pairs)
                    ]
                    spent.append(post(connection, specs, list(records)))

            threads = [threading.Thread(target=client, args=(i,)) for i in range(clients)]
            begun = time.perf_counter()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            whole = time.perf_counter() - begun
            p50, p95 = np.percentile(spent, [50, 95]) * 1e3
            print(
                f"{'+'.join(specs)}, batches of {size:3}: {len(spent) / whole:7.1f} requests/s, {len(spent) * size / whole:7.0f} "
                f"records/s, p50 {p50:.0f} ms, p95 {p95:.0f} ms; n = {len(spent)} requests, {clients} clients, 0 errors",
                flush=True,
            )
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
