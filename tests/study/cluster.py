"""Start a PostgreSQL cluster of our own, as a user that is not root, and remove it afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def programs() -> Path | None:
    """Where initdb and postgres are: Debian's package keeps them out of PATH."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: float(p.parts[-3]))
    return versions[-1].parent if versions else None


def _as_nobody_special() -> list[str]:
    """PostgreSQL refuses to run as root: become somebody else."""
    if os.getuid() != 0:
        return []
    names = {entry.pw_name for entry in pwd.getpwall()}
    return ["runuser", "-u", "postgres" if "postgres" in names else "nobody", "--"]


@contextmanager
def running_cluster(durable: bool = False) -> Iterator[str]:
    """The URL of an empty database in a cluster of its own; `durable` writes to disk as in real use."""
    where = programs()
    if where is None:
        raise FileNotFoundError("no PostgreSQL on this machine: apt-get install postgresql")
    home = Path(tempfile.mkdtemp(prefix="elench-pg-"))
    user = _as_nobody_special()
    if user:
        shutil.chown(home, user[2])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = str(home / "data")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "cwd": home, "text": True}
    made = [str(where / "initdb"), "-D", data, "-U", "elench", "-A", "trust", "-E", "UTF8", "--no-sync"]
    subprocess.run([*user, *made], check=True, timeout=240, **quiet)  # type: ignore[call-overload]
    server = [str(where / "postgres"), "-D", data, "-k", str(home), "-h", "127.0.0.1", "-p", str(port)]
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            [*user, *server, "-c", f"fsync={'on' if durable else 'off'}"], stdout=log, stderr=log, cwd=home
        )
    try:
        for _ in range(600):
            ready = subprocess.run([str(where / "pg_isready"), "-h", "127.0.0.1", "-p", str(port)], capture_output=True)
            if ready.returncode == 0:
                break
            time.sleep(0.1)
        else:
            raise RuntimeError((home / "log").read_text())
        yield f"postgresql://elench@127.0.0.1:{port}/postgres"
    finally:
        stop = [str(where / "pg_ctl"), "-D", data, "-m", "immediate", "stop"]
        subprocess.run([*user, *stop], timeout=120, **quiet)  # type: ignore[call-overload]
        process.wait(timeout=120)
        shutil.rmtree(home, ignore_errors=True)


def wipe(url: str) -> None:
    """An empty database again."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    if programs() is None:
        pytest.skip("no PostgreSQL on this machine: apt-get install postgresql")
    with running_cluster() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> str | None:
    """None: the SQLite file of the study; else the URL of an empty PostgreSQL database."""
    if request.param == "sqlite":
        return None
    url: str = request.getfixturevalue("cluster")
    wipe(url)
    return url
