"""The rooms of the house: nothing below imports what is above it, and no two packages import each other."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "elench"
FLOORS = [
    {"errors", "grid"},
    {"connections", "text"},
    {"records", "requests"},
    {"metrics", "models", "stats"},
    {"runs"},
    {"engine"},
    {"testing", "perturb"},
    {"evaluate", "study"},
    {"show"},
    {"adapters", "case"},
    {"train"},
    {"cli"},
    {"__main__"},
]
"""From the ground up. Packages of one floor do not import each other."""
LATER = {
    ("metrics", "engine"): "a metric that is called like a function is scored by the engine",
    ("engine", "show"): "a result prints itself when asked to",
    ("evaluate", "show"): "a comparison prints itself when asked to",
    ("models", "train"): "the trained asker is built by its trainer's own function",
}
"""Upward imports inside a function, with the reason; there are none at the top of a module."""
FLOOR = {name: level for level, names in enumerate(FLOORS) for name in names}


def imports():
    """(package, imported package, file, whether inside a function) of every import but those for type checkers."""
    for file in sorted(ROOT.rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        if parts == ("__init__",):
            continue  # the package itself names everything, lazily
        yield from _imports(ast.parse(file.read_text()), parts[0], "/".join(parts), False)


def _imports(node, package, file, inside):
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    modules = []
    if isinstance(node, ast.ImportFrom) and node.module:
        modules = [f"elench.{a.name}" for a in node.names] if node.module == "elench" else [node.module]
    elif isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    for module in modules:
        if module.startswith("elench.") and (other := module.split(".")[1]) != package and other in FLOOR:
            yield package, other, file, inside
    for child in ast.iter_child_nodes(node):
        yield from _imports(child, package, file, inside)


def test_every_package_has_a_floor():
    found = {p.stem for p in ROOT.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()} - {"__init__"}
    assert found == set(FLOOR)


def test_nothing_below_imports_what_is_above():
    upward = {(a, b, file, inside) for a, b, file, inside in imports() if FLOOR[b] >= FLOOR[a]}
    assert {(a, b, file) for a, b, file, inside in upward if not inside} == set()
    assert {(a, b) for a, b, _, inside in upward if inside} == set(LATER)


@pytest.mark.parametrize("package", ["stats", "evaluate", "show", "study"])
def test_these_work_without_any_model(package):
    direct = {(file, other) for a, other, file, _ in imports() if a == package and other == "models"}
    assert direct == set()
    modules = [".".join(("elench", *f.relative_to(ROOT).with_suffix("").parts)) for f in (ROOT / package).rglob("*.py")]
    names = [m.removesuffix(".__init__") for m in modules]
    heavy = ("torch", "transformers", "onnxruntime", "spacy", "tokenizers")
    code = (
        f"import importlib, sys\nfor name in {names!r}: importlib.import_module(name)\n"
        f"print([m for m in {heavy!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr[-500:]
