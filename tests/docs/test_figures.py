"""README's agreement figures and the leaderboard pages are what `elench bench` writes from docs/results/bench.json."""

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from elench.cli import cli
from elench.metrics.profile import read_profile

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs/results"


@pytest.mark.embedded
def test_readme_and_pages_are_those_that_the_command_writes(tmp_path):
    readme = Path(shutil.copy(ROOT / "README.md", tmp_path))
    arguments = ["-o", RESULTS / "bench.json", "--docs", tmp_path / "pages", "--fill", readme]
    ran = CliRunner().invoke(cli, ["bench", *map(str, arguments)], catch_exceptions=False)
    assert ran.exit_code == 0 and "cannot tell" not in ran.output, ran.output
    assert readme.read_text(encoding="utf-8") == (ROOT / "README.md").read_text(encoding="utf-8")
    written = sorted((tmp_path / "pages").iterdir())
    assert len(written) == 6
    for page in written:
        assert page.read_text(encoding="utf-8") == (RESULTS / page.name).read_text(encoding="utf-8")


def test_every_agreement_figure_of_the_table_is_marked():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| `") and "| r = " in line]
    assert len(rows) == 5
    for row in rows:
        assert not re.search(r"(?<!-->)(?<!the paper )\.\d{3}", row), "a figure typed by hand"


def test_the_weakest_predicted_rating_is_the_profiles_own():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (said,) = re.findall(r"\(r = (\.\d{3}) for consistency of questions, n = 1,500\)", text)
    found = read_profile("questions").content["dimensions"]
    assert said == f"{found['consistency']['full']['r']:.3f}".lstrip("0")
    assert min(found, key=lambda name: found[name]["full"]["r"]) == "consistency"
