"""The wheel carries everything: it runs away from the checkout, with the data files that commands read."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """The files that a build reads, apart from the checkout: a build writes into the folder it is made from."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("pyproject.toml", "README.md", "LICENSE", "constraints.txt"):
        shutil.copy(HOME / name, copy)
    shutil.copytree(HOME / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    models = copy / "packages" / "elench-models"
    models.mkdir(parents=True)
    shutil.copy(HOME / "packages" / "elench-models" / "pyproject.toml", models)
    (models / "elench_models").symlink_to(HOME / "packages" / "elench-models" / "elench_models")
    return copy


@pytest.fixture(scope="module")
def wheel(checkout, tmp_path_factory):
    pytest.importorskip("setuptools", reason="no setuptools: pip install setuptools")
    folder = tmp_path_factory.mktemp("wheels")
    words = ["-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "-w", folder, checkout]
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("elench-*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The wheel, unpacked into a folder of its own."""
    target = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(target)
    return target


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


def test_the_core_wheel_carries_no_weights(wheel):
    assert wheel.stat().st_size < 2_000_000


def pip_lines():
    """The install commands of the README, in its order."""
    return re.findall(r"^pip install [^#\n]+|(?<=`)pip install [^`]+", (HOME / "README.md").read_text(), re.MULTILINE)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("line", pip_lines())
def test_the_readmes_install_lines_work_in_an_empty_environment(line, checkout, tmp_path):
    """From a checkout, with what pip finds on the package index; nothing of this environment is seen."""
    bare = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    bare["PATH"] = f"{tmp_path / 'venv' / 'bin'}:{os.environ['PATH']}"

    def shell(command, folder):
        return subprocess.run(command, shell=True, cwd=folder, env=bare, capture_output=True, text=True)

    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    done = shell(f"{line} -q --no-compile -c constraints.txt", checkout)
    if "Failed to establish a new connection" in done.stderr or "name resolution" in done.stderr:
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stderr[-2000:]
    scored = shell(f"elench score {HOME / 'sample' / 'answers.jsonl'} -m f1 -o out.jsonl", tmp_path)
    assert scored.returncode == 0 and len((tmp_path / "out.jsonl").read_text().splitlines()) == 15, scored.stderr
    with_models = shell("python -c 'import elench_models, onnxruntime, spacy'", tmp_path).returncode == 0
    assert with_models == ("models" in line)
    assert shell("python -c 'import torch'", tmp_path).returncode != 0  # the README says: no torch
