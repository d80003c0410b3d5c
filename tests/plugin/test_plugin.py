"""A metric in a package of its own is found by its entry point and gets everything."""

import subprocess
import sys
from pathlib import Path


def test_a_plugin_gets_command_line_card_and_checks(tmp_path):
    here = Path(__file__).parent
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index",
         "--target", str(tmp_path), str(_copy(here, tmp_path / "source"))],
        check=True, capture_output=True,
    )  # fmt: skip
    code = (
        "import elench\n"
        "from elench.testing import check_metric\n"
        "check_metric('shared-words'); check_metric('shared-words[lower=off]')\n"
        "r = elench.score([{'id': '1', 'answer': 'A b', 'references': ['a c'], 'judge': 'answer'}], 'shared-words')\n"
        "assert r['shared-words', '1'] == 0.5, r\n"
        "from elench.cli import cli\n"
        "cli.main(['metrics', 'shared-words'], standalone_mode=False)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin"},
    )
    assert done.returncode == 0, done.stderr
    assert "Share of the reference's distinct words" in done.stdout and "lower" in done.stdout


def _copy(source, target):
    (target / "elench_example").mkdir(parents=True)
    for name in ("pyproject.toml", "elench_example/__init__.py"):
        (target / name).write_text((source / name).read_text())
    return target
