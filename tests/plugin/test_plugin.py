"""The metric that the guide prints, in a package of its own, is found by its entry point and gets everything."""

import re
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
    """A package whose only module is the guide's first example."""
    guide = source.parents[1] / "docs" / "guides" / "write-your-own-metric.md"
    example = re.search(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), re.S).group(1)
    assert example.count("\n") <= 40
    (target / "elench_example").mkdir(parents=True)
    (target / "elench_example" / "__init__.py").write_text(example)
    (target / "pyproject.toml").write_text((source / "pyproject.toml").read_text())
    return target
