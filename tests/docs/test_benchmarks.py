"""The commands behind the figures in docs: what they take from elench is still there."""

import ast
import importlib
from pathlib import Path

import pytest

BENCHMARKS = sorted((Path(__file__).parents[2] / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_every_name_a_benchmark_imports_from_elench_exists(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "elench":
            try:
                module = importlib.import_module(node.module)
            except ModuleNotFoundError as error:
                if (error.name or "").startswith("elench"):
                    raise
                pytest.skip(f"{error.name} is not installed")
            missing = [name.name for name in node.names if not hasattr(module, name.name)]
            for name in missing:  # a submodule that nothing has imported yet
                importlib.import_module(f"{node.module}.{name}")
