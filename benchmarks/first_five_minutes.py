"""The README's first five minutes, replayed as a newcomer would paste them, and timed.

    python benchmarks/first_five_minutes.py

In an empty folder: a new environment, elench and its models (these need the package index), the sample, then every
`$ elench …` line of the section, with nothing cached.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

HOME = Path(__file__).parents[1]


def steps() -> list[str]:
    """The commands of the section, in its order."""
    text = (HOME / "README.md").read_text(encoding="utf-8")
    section = text.split("## First five minutes")[1].split("\n## ")[0]
    return re.findall(r"^\$ (elench .*)$", section, re.MULTILINE)


@click.command()
def main() -> None:
    """Print each step with its exit code and wall seconds; exit code 1 if one fails."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(HOME / "sample", folder / "sample")
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment |= {"PATH": f"{folder}/venv/bin:{os.environ['PATH']}", "ELENCH_CACHE": str(folder / "cache")}
        packages = f"-e {HOME}/packages/elench-models -e '{HOME}[models]'"
        first = [
            f"{sys.executable} -m venv {folder}/venv",
            f"pip install -q -c {HOME}/constraints.txt {packages}",
            "elench models pull",
        ]
        failed, whole = 0, 0.0
        for line in [*first, *steps()]:
            begun = time.monotonic()
            done = subprocess.run(line, shell=True, cwd=folder, env=environment, capture_output=True, text=True)
            seconds = time.monotonic() - begun
            failed, whole = failed + (done.returncode != 0), whole + seconds
            shown = line.replace(str(HOME), ".").replace(str(folder), "FOLDER").replace(sys.executable, "python")
            click.echo(f"{seconds:6.1f} s  exit {done.returncode}  {shown}")
            if done.returncode:
                click.echo(done.stderr[-400:])
        click.echo(f"{whole:6.1f} s  in all, {failed} failed; load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
