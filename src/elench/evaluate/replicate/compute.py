"""The papers' tables again, one kind of table at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from elench.errors import UsageError
from elench.evaluate.replicate import adversarial, human_agreement, values
from elench.evaluate.replicate.results import OURS, PROGRAM, PaperReplication, PaperTable, fold, with_form
from elench.evaluate.replicate.sources import Entry, Materials

if TYPE_CHECKING:
    from elench.metrics.base import Metric

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAPERS = ("qrelscore", "questeval", "kpqa", "qascore", "qsts")
KINDS: dict[str, Callable[[Entry, Materials], PaperTable]] = {
    "correlation": human_agreement.correlation,
    "rank-pairs": human_agreement.rank_pairs,
    "selection": human_agreement.selection,
    "fewer-references": human_agreement.fewer_references,
    "question-folds": human_agreement.question_folds,
    "averages": human_agreement.averages,
    "means": values.means,
    "unrelated": values.unrelated,
    "shares": values.shares,
    "published": values.published,
    "items": values.items,
    "adversarial": adversarial.table,
}


def replicate(paper: str, source: Materials, only: str = "") -> PaperReplication:
    """Every table of a paper that the data at hand can support; `only` those with this in their name are computed."""
    if paper not in PAPERS:
        raise UsageError(f"no paper {paper!r}: choose {', '.join(PAPERS)}")
    plan = _plan(paper)
    names = [entry["name"] for entry in plan["table"]]
    if not any(only.lower() in name.lower() for name in names):
        raise UsageError(f"--only {only!r}: no table of {paper} has this in its name; it has: {'; '.join(names)}")
    tables = []
    for entry in plan["table"]:
        status = entry.get("status", "done")
        if only.lower() not in entry["name"].lower():
            tables.append(PaperTable(entry["name"], (), (), reason="left out by --only", status=status))
            continue
        entry = {**entry, "rows": _all_forms(entry.get("rows", {}))}
        try:
            tables.append(replace(fold(KINDS[entry["kind"]](entry, source)), status=status))
        except UsageError as error:
            tables.append(PaperTable(entry["name"], (), (), entry.get("note", ""), str(error), status))
    cannot, elsewhere = (
        tuple((entry["name"], entry["reason"]) for entry in plan.get(kind, ())) for kind in ("cannot", "elsewhere")
    )
    signatures = dict(source.signatures)
    return PaperReplication(plan["paper"], plan["models"], tuple(tables), cannot, elsewhere, signatures)


def _plan(paper: str) -> dict[str, Any]:
    text = files("elench.evaluate.replicate").joinpath("tables", f"{paper}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def metrics_of(paper: str, only: str = "") -> list[Metric]:
    """The metrics of a paper's tables; of those with `only` in their name."""
    from elench.metrics import metric

    chosen = [entry for entry in _plan(paper)["table"] if only.lower() in entry["name"].lower()]
    rows = [row["spec"] for entry in chosen for row in _all_forms(entry.get("rows", {})).values() if "spec" in row]
    specs = [*rows, *(spec for entry in chosen for spec in (*entry.get("specs", ()), *[entry.get("spec")]) if spec)]
    return [metric(spec) for spec in dict.fromkeys(specs) if spec != "supervised"]


def _all_forms(rows: Mapping[str, Any]) -> dict[str, Any]:
    """A row with `forms` also as the authors' program computes it, beside the same figures, and in our own form, beside
    none: what we improved is not the paper's."""
    found: dict[str, Any] = {}
    for label, row in rows.items():
        found[label] = row
        for form in row.get("forms", ()):
            spec = with_form(row["spec"], form)
            if form == "ours":
                kept = {key: value for key, value in row.items() if isinstance(value, bool | dict)}
                found[label + OURS] = {"spec": spec, **kept}
            else:
                found[label + PROGRAM] = {**row, "spec": spec}
    return found
