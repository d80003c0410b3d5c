"""BLEURT, COMET and CTC through stand-ins with the public interface of the real packages."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from elench.cli.score import command
from elench.errors import MissingModel, UsageError
from elench.models.base import ModelSet
from elench.testing import check_metric

BLEURT = """
class BleurtScorer:
    def __init__(self, checkpoint=None):
        assert checkpoint and __import__("pathlib").Path(checkpoint, "bleurt_config.json").is_file()
    def score(self, *args, references=[], candidates=[], batch_size=None):
        assert not args and len(references) == len(candidates)
        return [len(set(r.split()) & set(c.split())) / len(set(r.split())) for r, c in zip(references, candidates)]
"""
COMET = """
from collections import namedtuple
Prediction = namedtuple("Prediction", "scores system_score")
def download_model(model, saving_directory=None):
    raise OSError("no network here")
def load_from_checkpoint(checkpoint_path):
    assert checkpoint_path.endswith("model.ckpt")
    return Model()
class Model:
    def predict(self, samples, batch_size=16, gpus=1, progress_bar=True):
        assert gpus == 0 and all(set(s) == {"src", "mt", "ref"} for s in samples)
        scores = [len(s["src"]) / 1000 + len(s["mt"]) / len(s["ref"]) for s in samples]
        return Prediction(scores, sum(scores) / len(scores))
"""
CTC = """
class SummarizationScorer:
    def __init__(self, align, aggr_type="mean", device="cuda"):
        assert align == "E-roberta" and device == "cpu"
    def score(self, doc, refs, hypo, aspect, remove_stopwords=False):
        assert refs == [] and aspect == "consistency"
        words = hypo.split()
        return None if hypo == "?" else sum(w in doc for w in words) / len(words)
"""
STAND_INS = ("bleurt", "bleurt.score", "comet", "ctc_score")
RECORD = {
    "id": "1", "judge": "question", "context": "Jack bought milk at the bazaar .", "question": "Who bought milk ?",
    "references": ["Who sold honey ?", "Who bought the milk ?"],
}  # fmt: skip


@pytest.fixture
def checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The stand-ins on the path, and a checkpoint for each that wants one."""
    packages = {"bleurt/__init__.py": "", "bleurt/score.py": BLEURT, "comet/__init__.py": COMET, "ctc_score.py": CTC}
    for name, source in packages.items():
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).write_text(source, encoding="utf-8")
    files = {"bleurt": tmp_path / "BLEURT-20" / "bleurt_config.json", "comet": tmp_path / "da/checkpoints/model.ckpt"}
    for file in files.values():
        file.parent.mkdir(parents=True)
        file.write_text("{}", encoding="utf-8")
    for variable in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.setenv(variable, "1")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    yield {"bleurt": str(tmp_path / "BLEURT-20"), "comet": str(tmp_path / "da")}
    for module in STAND_INS:
        sys.modules.pop(module, None)


def scored(tmp_path: Path, spec: str, *options: str) -> tuple[dict, str]:
    (tmp_path / "r.jsonl").write_text(json.dumps(RECORD) + "\n", encoding="utf-8")
    out = tmp_path / "out.jsonl"
    done = CliRunner().invoke(command, [str(tmp_path / "r.jsonl"), "-m", spec, "-o", str(out), *options])
    assert done.exit_code == 0, (done.output, done.exception)
    signature = json.loads((tmp_path / "out.meta.json").read_text())["signatures"][spec]
    return json.loads(out.read_text()), signature


def test_each_metric_gives_what_its_package_says(tmp_path: Path, checkpoints: dict[str, str]) -> None:
    named = [f"--model={role}={path}" for role, path in checkpoints.items()]
    line, signature = scored(tmp_path, "bleurt", *named)
    assert line["scores"] == {"bleurt": pytest.approx(4 / 5)}  # the better of 2/4 and 4/5 words of a reference
    assert "bleurt=BLEURT-20@" in signature and "/bleurt" in signature
    line, signature = scored(tmp_path, "comet[references=mean]", *named)
    wanted = len(RECORD["context"]) / 1000 + (17 / 16 + 17 / 21) / 2
    assert line["scores"] == {"comet[references=mean]": pytest.approx(wanted)}
    assert "comet=da@" in signature
    line, signature = scored(tmp_path, "ctc", *named)
    assert line["scores"] == {"ctc": pytest.approx(2 / 4)} and "ctc=E-roberta@" in signature


@pytest.mark.parametrize("name", ["bleurt", "comet", "ctc"])
def test_they_keep_the_promises_of_every_metric(name: str, checkpoints: dict[str, str]) -> None:
    check_metric(name, ModelSet({role: path for role, path in checkpoints.items() if role == name}))


@pytest.mark.parametrize(("name", "module"), [("bleurt", "bleurt"), ("comet", "comet"), ("ctc", "ctc_score")])
def test_a_missing_package_is_one_line(name: str, module: str) -> None:
    with pytest.raises(MissingModel) as said:
        ModelSet().identity(name)
    line = str(said.value)
    assert line.startswith(f"{name} needs the package '{module}', which is not installed; get it with: pip install")
    assert "\n" not in line


def test_a_missing_checkpoint_is_one_line_and_nothing_is_fetched_unasked(checkpoints: dict[str, str]) -> None:
    with pytest.raises(MissingModel, match="bleurt needs a checkpoint; name it with: --model bleurt=FOLDER"):
        ModelSet().identity("bleurt")
    with pytest.raises(MissingModel, match=r"--model comet=FOLDER \(--pull fetches Unbabel/wmt22-comet-da\)"):
        ModelSet().identity("comet")
    with pytest.raises(MissingModel, match="nowhere: no such checkpoint"):
        ModelSet({"bleurt": "nowhere"}).identity("bleurt")


def test_another_package_of_the_same_name_is_told_apart(tmp_path: Path, checkpoints: dict[str, str]) -> None:
    (tmp_path / "site" / "comet" / "__init__.py").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="the installed package 'comet' is not unbabel-comet"):
        _ = ModelSet(checkpoints)["comet"]
