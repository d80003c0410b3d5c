"""`pytest -m unit`: the tests that need no model, no browser, no data set and no other process (`make unit`)."""

from functools import cache
from pathlib import Path

import pytest

from tests.study.cluster import cluster, database  # noqa: F401  fixtures of the study's tests, also in a browser

HEAVY = (
    "tests.tiny", "tests.train", "import torch", "transformers", "onnx", "spacy", "mark.embedded", "mark.browser",
    "torchmetrics", "subprocess", "ray = pytest", "testclient", "bert_score", "playwright", "datasets", "CliRunner", "postgres",
)  # fmt: skip
"""A test file with one of these words in it is not a unit test: it loads a model or a framework, or starts a process."""


@cache
def heavy(path: Path) -> bool:
    """Whether a test file does more than call functions."""
    text = path.read_text(encoding="utf-8")
    return any(word in text for word in HEAVY)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m unit`, other files are not even imported: importing torch alone takes seconds."""
    if config.option.markexpr != "unit" or collection_path.suffix != ".py" or collection_path.name == "conftest.py":
        return None
    return True if heavy(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not heavy(item.path) and not item.get_closest_marker("validation"):
            item.add_marker(pytest.mark.unit)
