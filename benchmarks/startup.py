"""How fast elench starts, and how many packages its core brings.

python benchmarks/startup.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click


def seconds(command: list[str], runs: int = 7) -> float:
    """The median time of a command; the first run, which fills the file cache, does not count."""
    times = []
    for _ in range(runs + 1):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return statistics.median(times[1:])


@click.command()
@click.option("--install", is_flag=True, help="Also install the core into a fresh environment and count its packages.")
def main(install: bool) -> None:
    """Import, help and install."""
    bare = seconds([sys.executable, "-c", "pass"])
    click.echo(f"python -c pass                 {bare:.3f} s")
    click.echo(f"python -c 'import elench'    {seconds([sys.executable, '-c', 'import elench']):.3f} s")
    click.echo(f"elench --help                {seconds([sys.executable, '-m', 'elench', '--help']):.3f} s")
    if install:
        root = Path(__file__).resolve().parent.parent
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            python = str(Path(folder) / "bin" / "python")
            subprocess.run([python, "-m", "pip", "install", "-q", str(root)], check=True)
            listed = subprocess.run(
                [python, "-m", "pip", "list", "--format=freeze"], check=True, capture_output=True, text=True
            )
            names = [line.split("==")[0] for line in listed.stdout.split()]
            own = [name for name in names if name not in ("pip", "setuptools", "wheel")]
            click.echo(f"core install: {len(own)} packages: {', '.join(own)}")


if __name__ == "__main__":
    main()
