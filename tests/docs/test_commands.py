"""The commands of README and guides: every one parses, and those on the sample files run (`embedded`: with models)."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from elench.cli import cli
from elench.cli.train import TRAINERS
from elench.metrics import all_metrics

HOME = Path(__file__).parents[2]
PAGES = [HOME / "README.md", *sorted((HOME / "docs").glob("*.md")), *sorted((HOME / "docs" / "guides").glob("*.md"))]
RUN = [HOME / "README.md", HOME / "docs" / "guides" / "your-data.md"]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def words(line: str) -> list[str] | None:
    """The arguments of an elench command, without comment and what follows the command; None where it is not one."""
    line = line.strip().removeprefix("$ ")
    if not line.startswith("elench ") or line.startswith("elench ("):
        return None
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&<>")
    lexer.whitespace_split = True
    taken: list[str] = []
    for word in lexer:
        if set(word) <= set("|;&<>"):
            break
        taken.append(word)
    return taken[1:]


def lines_of(page: Path) -> Iterator[str]:
    """Lines of fenced and indented code, and inline code that is a whole command; joined where a backslash ends a line."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    for _, body in BLOCK.findall(text):
        yield from body.splitlines()
    rest = BLOCK.sub("", text)
    yield from (line for line in rest.splitlines() if line.startswith("    "))
    yield from re.findall(r"(?<!`)`(elench [^`\n]+)`", rest)


def commands() -> list[tuple[str, list[str]]]:
    return [(page.name, found) for page in PAGES for line in lines_of(page) if (found := words(line))]


@pytest.mark.parametrize(("page", "arguments"), commands(), ids=lambda x: " ".join(x) if isinstance(x, list) else x)
def test_command_and_options_exist(page: str, arguments: list[str]) -> None:
    command: click.Command = cli
    context = click.Context(cli)
    rest = list(arguments)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        if command.name == "train" or name == "train":  # loading a trainer loads torch
            assert name == "train" and (not rest or rest[0].split("|")[0] in TRAINERS), (
                f"{page}: no trainer in {arguments}"
            )
            return
        found = command.get_command(context, name)
        assert found is not None, f"{page}: elench has no command {name!r}"
        command = found
    known = {option for p in command.get_params(context) for option in (*p.opts, *p.secondary_opts)} | {
        "--help",
        "-h",
        "--version",
    }
    used = {word.strip("[]").split("=")[0] for word in rest if re.match(r"\[?--?[a-z]", word)}
    assert used <= known, f"{page}: elench {' '.join(arguments)}: no option {used - known}"


def test_the_pages_have_commands() -> None:
    found = commands()
    assert {"README.md", "your-data.md", "study.md", "trust.md"} <= {page for page, _ in found}
    assert {arguments[0] for _, arguments in found} >= {
        "score",
        "check",
        "compare",
        "gate",
        "report",
        "judge",
        "study",
        "train",
    }


def console_blocks(page: Path) -> list[list[list[str]]]:
    blocks = [body for kind, body in BLOCK.findall(page.read_text(encoding="utf-8")) if kind == "console"]
    return [
        [found for line in body.splitlines() if line.startswith("$ ") and (found := words(line))] for body in blocks
    ]


def needs_models(arguments: list[str]) -> bool:
    if arguments[0] == "judge":
        return True
    if "-m" not in arguments:
        return False
    names = re.sub(r"\[.*?\]", "", arguments[arguments.index("-m") + 1]).split(",")
    return any(all_metrics()[name]().roles for name in names)


CASES = [
    pytest.param(block, marks=pytest.mark.embedded if any(map(needs_models, block)) else (), id=f"{page.stem}-{k}")
    for page in RUN
    for k, block in enumerate(console_blocks(page))
]


@pytest.mark.parametrize("block", CASES)
def test_console_block_runs_as_pasted(block: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(HOME / "sample", tmp_path / "sample")
    monkeypatch.chdir(tmp_path)
    assert block
    for arguments in block:
        done = CliRunner().invoke(cli, arguments)
        assert done.exit_code == 0, f"elench {' '.join(arguments)}\n{done.output}\n{done.exception!r}"


def test_table_in_readme_is_what_the_command_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HOME)
    printed = CliRunner().invoke(cli, ["score", "sample/answers.jsonl", "-m", "f1,rouge-l,novel-f1"]).output
    table = [
        line
        for line in (HOME / "README.md").read_text(encoding="utf-8").splitlines()
        if "0.5" in line and line.startswith(" ")
    ]
    assert len(table) == 3
    assert all(row in printed.splitlines() for row in table)


def test_python_of_readme_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(HOME)
    [code] = [
        body for kind, body in BLOCK.findall((HOME / "README.md").read_text(encoding="utf-8")) if kind == "python"
    ]
    exec(compile(code, "README.md", "exec"), {})
    assert "novel-f1" in capsys.readouterr().out


def test_links_of_the_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def run_example(name: str, *arguments: str, where: Path = HOME, **environment: str) -> subprocess.CompletedProcess[str]:
    program = ["bash"] if name.endswith(".sh") else [sys.executable]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return subprocess.run(
        [*program, str(HOME / "examples" / name), *arguments], cwd=where, text=True, capture_output=True, timeout=120,
        env={**os.environ, "PATH": path, "GITHUB_STEP_SUMMARY": "", **environment}, check=False,
    )  # fmt: skip


def test_example_compare_summarisers() -> None:
    done = run_example("compare_summarisers.py")
    assert done.returncode == 0, done.stderr
    assert "Worst by source-overlap" in done.stdout


def test_example_quiz_generator_writes_what_it_keeps(tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    done = run_example("quiz_generator.py", "--cheap", "sample/questions.jsonl", str(kept))
    assert done.returncode == 0, done.stderr
    lines = kept.read_text(encoding="utf-8").splitlines()
    assert f"{len(lines)} of 18 questions kept" in done.stdout
    assert 0 < len(lines) < 18 and done.stdout.count("drop ") == 18 - len(lines)


def test_example_gate_passes_the_same_answers_and_fails_worse_ones(tmp_path: Path) -> None:
    """Forty answers that are all right one night and all wrong the next: the second night fails, the baseline stays."""
    good = [{"id": f"r{k}", "judge": "answer", "answer": f"it is {k}", "references": [f"it is {k}"]} for k in range(40)]
    for name, records in (("good", good), ("bad", [{**r, "answer": "no idea"} for r in good])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    nights = [
        run_example("rag_gate.sh", f"{night}.jsonl", "runs", where=tmp_path, METRICS="f1", DROP="f1=-0.02")
        for night in ("good", "good", "bad", "good")
    ]
    assert [night.returncode for night in nights] == [0, 0, 1, 0], [night.stdout + night.stderr for night in nights]
    assert "worse" in nights[2].stdout


@pytest.mark.parametrize("models", [False, pytest.param(True, marks=pytest.mark.embedded)])
def test_tutorial_notebook_runs(
    models: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its cells in order, as a kernel runs them; those tagged `models` only with the embedded models."""
    monkeypatch.chdir(HOME)
    cells = json.loads((HOME / "examples" / "tutorial.ipynb").read_text(encoding="utf-8"))["cells"]
    names: dict[str, object] = {}
    for cell in cells:
        if cell["cell_type"] == "code" and (models or "models" not in cell["metadata"].get("tags", [])):
            exec(compile("".join(cell["source"]), f"tutorial.ipynb {cell['id']}", "exec"), names)
            assert capsys.readouterr().out.strip()
    result = names["result"]
    assert result["novel-f1", "a1", "reader"] > result["novel-f1", "a1", "chatty"]  # type: ignore[index]
    assert ("rag" in names) == models


@pytest.mark.parametrize(
    ("absent", "arguments", "extra"),
    [
        ("sqlalchemy", ["study", "new", "sample/questions.jsonl", "-o", "STUDY"], "study"),
        ("elench_models", ["score", "sample/answers.jsonl", "-m", "equivalent"], "models"),
    ],
)
def test_a_missing_extra_is_named_in_one_line(absent: str, arguments: list[str], extra: str, tmp_path: Path) -> None:
    """As on a machine with `pip install elench` alone: no traceback, the pip line, exit code 2."""
    hide = (
        "import importlib.util, sys; found = importlib.util.find_spec; sys.modules[sys.argv[1]] = None; "
        "importlib.util.find_spec = lambda name, *more: None if name == sys.argv[1] else found(name, *more); "
        "del sys.argv[1]; from elench.cli import main; main()"
    )
    words = [str(tmp_path / "study") if word == "STUDY" else word for word in arguments]
    done = subprocess.run(
        [sys.executable, "-c", hide, absent, *words], cwd=HOME, text=True, capture_output=True, check=False
    )
    assert done.returncode == 2, done.stderr
    assert f"elench[{extra}]" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("model", "lines", "form"),
    [
        ("support", ("mnli-dev", "snli-dev"), "accuracy {}, {}"),
        ("equivalent", ("evouna_nq.jsonl", "semeval2013.jsonl", "sas.jsonl"), "AUC {}, {}, {}"),
    ],
)
def test_figures_of_readme_are_those_of_the_cards(model: str, lines: tuple[str, ...], form: str) -> None:
    card = (HOME / "packages/elench-models/elench_models" / model / "card.md").read_text(encoding="utf-8")
    found = [re.search(rf"kept back, {re.escape(line)}\*\*: n \d+, (?:accuracy|auc) 0(\.\d+)", card) for line in lines]
    figures = [match[1] for match in found if match]
    assert form.format(*figures) in (HOME / "README.md").read_text(encoding="utf-8")
