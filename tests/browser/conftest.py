"""A real browser and a real server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = os.environ.get("ELENCH_CHROMIUM", "/usr/bin/chromium")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-sync "
    "--disable-component-update --no-first-run"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not Path(CHROMIUM).exists():
        pytest.skip("no chromium on this machine: apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install playwright")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        yield opened
        opened.close()


@dataclass
class Server:
    """`elench study serve` in a process of its own, to be killed and started again."""

    folder: Path
    port: int
    database: str | None
    process: subprocess.Popen[str] | None = None
    join: str = ""
    admin: str = ""
    bad: frozenset[str] | set[str] = frozenset()
    """Texts of bad references, for simulated raters that read."""

    def start(self) -> None:
        words = ["study", "serve", str(self.folder), "--port", str(self.port)]
        words += ["--db", self.database] if self.database else []
        run = [sys.executable, "-u", "-c", "from elench.cli import main; main()", *words]
        self.process = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert self.process.stdout is not None
        said = ""
        while "Stop with" not in said:
            line = self.process.stdout.readline()
            assert line, said
            said += line
        self.join = re.search(r"raters:\s+(\S+)", said)[1]  # type: ignore[index]
        self.admin = re.search(r"researcher: (\S+)", said)[1]  # type: ignore[index]
        for _ in range(1200):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=20)
                return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("the server does not answer")

    def kill(self) -> None:
        """As with kill -9."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            if self.process.stdout is not None:
                self.process.stdout.close()
            self.process = None


Serve = Callable[..., Server]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a server for a study folder."""
    import socket

    servers: list[Server] = []

    def start(folder: Path, database: str | None = None) -> Server:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        servers.append(Server(folder, port, database))
        servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        server.kill()
