"""The wheel carries everything: it runs away from the checkout, with the data files that commands read."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The wheel, unpacked into a folder of its own."""
    pytest.importorskip("setuptools", reason="no setuptools: pip install setuptools")
    copy, wheels, target = (tmp_path_factory.mktemp(name) for name in ("source", "wheels", "site"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "src"):  # a build writes into the folder it is made from
        (copy / name).symlink_to(HOME / name) if name != "src" else _copied(HOME / name, copy / name)
    words = ["-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "-w", wheels, copy]
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = wheels.glob("elench-*.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(target)
    return target


def _copied(source: Path, target: Path) -> None:
    import shutil

    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))


def run(site, folder, *words):
    environment = {**os.environ, "PYTHONPATH": str(site)}
    code = "import elench, sys; assert elench.__file__.startswith(sys.argv.pop(1)); from elench.cli import main; main()"
    call = [sys.executable, "-c", code, str(site), *words]
    return subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True)


def test_check_score_gate_and_report_run_from_the_wheel(installed, tmp_path):
    rows = ['{"question": "Who?", "answer": "Ada Marsh", "references": "Ada"}', '{"answer": "x", "references": "y"}']
    (tmp_path / "in.jsonl").write_text("\n".join(rows))
    for words in (
        ["check", "in.jsonl"],
        ["score", "in.jsonl", "-m", "f1,meteor,novel-f1", "-o", "out.jsonl", "--explain"],
        ["gate", "out.jsonl", "--fail-under", "f1=0.1"],
        ["report", "out.jsonl", "-o", "report.html", "--draws", "100"],
        ["metrics", "support"],
    ):
        done = run(installed, tmp_path, *words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
    assert "<script>" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_every_data_file_of_the_package_is_in_the_wheel(installed):
    package = HOME / "src" / "elench"
    kept = {p.relative_to(package) for p in package.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    packed = {p.relative_to(installed / "elench") for p in (installed / "elench").rglob("*") if p.is_file()}
    assert not kept - packed
