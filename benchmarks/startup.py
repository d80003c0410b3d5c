"""How fast elench starts, and what an install brings: packages and megabytes.

python benchmarks/startup.py [--install core] [--install models]
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


def install(extra: str) -> None:
    """Install the checkout into a fresh environment as `make demo` does; print packages and megabytes."""
    root = Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = str(Path(folder) / "bin" / "python")
        wanted = (
            ["-e", str(root / "packages" / "elench-models"), "-e", f"{root}[{extra}]"] if extra else ["-e", str(root)]
        )
        pip = [python, "-m", "pip", "install", "-q", "--no-compile", "-c", str(root / "constraints.txt")]
        subprocess.run([*pip, *wanted], check=True)
        if extra:
            subprocess.run(["make", "-s", "-C", str(root), "slim", f"VENV={folder}"], check=True)
        listed = subprocess.run(
            [python, "-m", "pip", "list", "--format=freeze"], check=True, capture_output=True, text=True
        )
        names = [line.split("==")[0] for line in listed.stdout.split("\n") if "==" in line]
        own = [name for name in names if name not in ("pip", "setuptools", "wheel")]
        (packages,) = Path(folder).glob("lib/python*/site-packages")
        sizes = sorted(((megabytes(p), p.name) for p in packages.iterdir()), reverse=True)
        click.echo(f"{extra or 'core'} install: {len(own)} packages, {megabytes(Path(folder)):.0f} MB in all")
        click.echo(", ".join(f"{name} {size:.0f}" for size, name in sizes[:14]) + " MB")


def megabytes(path: Path) -> float:
    """Size on disk of a file or folder, as `du` counts it."""
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file() and not p.is_symlink()]
    return sum(p.stat().st_blocks * 512 for p in files) / 2**20


@click.command()
@click.option("--install", "wanted", multiple=True, type=click.Choice(["core", "models"]), help="Also install this.")
def main(wanted: tuple[str, ...]) -> None:
    """Import, help and install."""
    bare = seconds([sys.executable, "-c", "pass"])
    click.echo(f"python -c pass                 {bare:.3f} s")
    click.echo(f"python -c 'import elench'    {seconds([sys.executable, '-c', 'import elench']):.3f} s")
    click.echo(f"elench --help                {seconds([sys.executable, '-m', 'elench', '--help']):.3f} s")
    for extra in wanted:
        install("" if extra == "core" else extra)


if __name__ == "__main__":
    main()
