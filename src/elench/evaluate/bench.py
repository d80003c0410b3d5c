"""`elench bench`: every metric on every rated file at hand, as one JSON that the leaderboard pages are made from."""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from elench.errors import MissingExtra, MissingModel, UsageError
from elench.evaluate.calibrate import measure_costs
from elench.evaluate.calibrate_data import judged
from elench.evaluate.judgements import Judgements, load
from elench.evaluate.kept_back import is_kept_back
from elench.stats.correlation import correlate
from elench.stats.resampling_plan import codes

if TYPE_CHECKING:
    from elench.engine.session import Session
    from elench.metrics.base import Metric

FORMAT = "elench bench 1"
COSTS = {"parser": 2, "vectors": 2, "reader": 3, "support": 4, "causal": 5, "masked": 6, "asker": 9}
"""Models by the time they take; others: 1. Cheap metrics are run first."""
TIMED = 4
"""Records that are scored again, without cached answers, to time a metric."""
LEFT_OUT = frozenset(("judge", "baselines"))
"""Metrics that say nothing without a choice of model: name them with -m."""


@dataclass(frozen=True)
class Bench:
    """What to run, and how much of it."""

    data: Path
    out: Path
    session: Session
    specs: tuple[str, ...] = ()
    """Only these metrics; none: all that apply"""
    budget: float = 0.0
    """Minutes after which no further metric is started; 0: no limit"""
    sample: int = 0
    """Records per file at most, whole groups drawn at random; 0: all"""
    seed: int = 0
    say: Callable[[str], None] = lambda line: None
    told: set[str] = field(default_factory=set)
    """Metrics already reported as left out"""


@dataclass(frozen=True)
class Task:
    """One metric on one file."""

    table: Judgements
    about: dict[str, Any]
    metric: Metric
    signature: str

    @property
    def cost(self) -> int:
        """How dear the dearest model of the metric is."""
        return max((COSTS.get(role, 1) for role in self.metric.roles), default=0)

    def replaces(self, entry: dict[str, Any]) -> bool:
        """Is it an older figure of the same metric on the same records? Figures of the whole file and of a sample are
        kept side by side."""
        same = entry["file"], entry["metric"], entry["records"]
        return same == (self.about["file"], str(self.metric), len(self.table.records))

    def measured_in(self, entries: Sequence[dict[str, Any]]) -> bool:
        own = (self.about["sha256"], str(self.metric), self.signature, len(self.table.records))
        return any((e["sha256"], e["metric"], e["signature"], e["records"]) == own for e in entries)


def run(bench: Bench) -> dict[str, Any]:
    """Measure what is not measured yet, cheap metrics on all files first; the file is rewritten after each metric, so
    that it can go on later. Figures of other files, metrics and samples are kept."""
    started = time.monotonic()
    earlier = read_bench(bench.out) if bench.out.exists() else {"entries": []}
    skipped: list[str] = earlier.get("not_run", [])
    content = {"format": FORMAT, "elench": version("elench"), "not_run": skipped, "entries": earlier["entries"]}
    for task in sorted(_tasks(bench, content), key=lambda task: task.cost):
        if task.measured_in(content["entries"]):
            continue
        spec, file = str(task.metric), task.about["file"]
        if bench.budget and time.monotonic() - started > 60 * bench.budget:
            skipped.append(f"{file} {spec}")
            continue
        bench.say(f"{file}: {spec}, {len(task.table.records)} records")
        found = _measure(bench, task)
        content["entries"] = [e for e in content["entries"] if not task.replaces(e)] + found
        _write(bench.out, content)
    measured = {f"{e['file']} {e['metric']}" for e in content["entries"]}
    content["not_run"] = [name for name in dict.fromkeys(skipped) if name not in measured]
    _write(bench.out, content)
    return content


def _tasks(bench: Bench, content: dict[str, Any]) -> list[Task]:
    """Every metric on every file that it applies to; the entries get the files' peers, and lose figures of files that
    have changed since."""
    tasks: list[Task] = []
    for path in _files(bench.data):
        whole = unlearned(load(path), path.stem)
        if not (np.nanstd(whole.human, axis=0) > 0).any():
            bench.say(f"{path.stem}: left out, all ratings are equal")
            continue
        table = sampled(whole, bench.sample, bench.seed)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        judge = judged(table)
        about = {"file": path.stem, "sha256": digest, "judge": judge, "of": len(whole.records)}
        old = [e for e in content["entries"] if e["file"] == path.stem and e["sha256"] != digest]
        if old:
            bench.say(f"{path.stem}: the file has changed, {len(old)} figures of the earlier one are dropped")
        kept = [e for e in content["entries"] if e not in old]
        content["entries"] = [e | about if e["file"] == path.stem else e for e in kept]
        tasks += [Task(table, about, metric, said) for metric, said in _to_run(bench, judge, table)]
        peers = (path.stem, "peer", len(table.records))
        if not any((e["file"], e["kind"], e["records"]) == peers for e in content["entries"]):
            content["entries"] += _peers(table, about)
    return tasks


def _files(data: Path) -> Iterator[Path]:
    """The rated files of a folder."""
    found = False
    for path in sorted(data.glob("*.jsonl")):
        with path.open(encoding="utf-8") as stream:
            first = stream.readline()
        if '"human"' in first or '"ratings"' in first:
            found = True
            yield path
    if not found:
        raise UsageError(f"{data}: no .jsonl file in it has `human` or `ratings` in its first record")


def unlearned(table: Judgements, file: str) -> Judgements:
    """Without the records that a shipped model learned from."""
    return table.where([is_kept_back(file, record.question or "", record.group or "") for record in table.records])


def sampled(table: Judgements, most: int, seed: int = 0) -> Judgements:
    """At most this many records: whole groups, in random order, until the number is reached."""
    if not most or len(table.records) <= most:
        return table
    group = codes(table.items)
    order = np.random.default_rng(seed).permutation(int(group.max()) + 1)
    sizes = np.bincount(group)[order].cumsum()
    return table.where(np.isin(group, order[: max(1, int((sizes <= most).sum()))]))


def every_spec() -> list[str]:
    """All metrics, in all of their forms, and the shipped profiles."""
    from elench.metrics import all_metrics
    from elench.metrics.profile import SHIPPED

    chosen = {name: kind for name, kind in all_metrics().items() if name not in LEFT_OUT}
    forms = [
        f"{name}[form={form}]"
        for name, kind in chosen.items()
        for parameter in kind.parameters()
        if parameter.name == "form"
        for form in parameter.metadata["choices"]
        if form != parameter.default
    ]
    return [*chosen, *forms, *(f"profile:{path.stem}" for path in sorted(SHIPPED.glob("*.json")))]


def _to_run(bench: Bench, judge: str, table: Judgements) -> list[tuple[Metric, str]]:
    """The metrics that apply to a file and whose models are here, with their signatures."""
    from elench.metrics import metric, split_specs

    specs = [s for spec in (bench.specs or every_spec()) for s in split_specs(spec)]
    found = []
    for spec in specs:
        one = metric(spec)
        wanted = getattr(one, "judge", "") or judge
        lacking = sum(one.missing(record) is not None for record in table.records[:50])
        if judge not in one.judges or wanted != judge or lacking > min(25, len(table.records) / 2):
            continue
        try:
            found.append((one, bench.session.signature(one)))
        except (MissingModel, MissingExtra) as problem:
            if spec not in bench.told:
                bench.say(f"{spec}: left out, {problem}")
            bench.told.add(spec)
    return found


def _measure(bench: Bench, task: Task) -> list[dict[str, Any]]:
    """One entry per human dimension."""
    import elench
    from elench.metrics.profile import Profile

    table, metric = task.table, task.metric
    models = bench.session.models
    result = elench.score(table.records, [metric], models=models, cache=bool(bench.session.cache))
    seconds = measure_costs(table, [str(metric)], TIMED, models)[str(metric)] / 1000
    column = np.array([np.nan if v is None else v for v in result.values(str(metric))], dtype=np.float64)
    one = replace(table, metrics=(str(metric),), scores=column[:, None], kinds={str(metric): "metric"})
    own = {
        "kind": "metric",
        "signature": task.signature,
        "commit": _commit(),
        "seconds_per_record": seconds,
        "learned_here": isinstance(metric, Profile) and task.about["file"] in metric.profile.learned_from,
    }
    return [{**task.about, **entry, **own} for entry in _entries(one)]


def _peers(table: Judgements, about: dict[str, Any]) -> list[dict[str, Any]]:
    """What other tools' scores in the file reach."""
    names = [name for name in table.metrics if table.kinds[name] == "peer"]
    if not names:
        return []
    own = {"kind": "peer", "signature": None, "commit": None, "seconds_per_record": None}
    return [{**about, **entry, **own} for entry in _entries(table.choose(names))]


def _entries(table: Judgements) -> Iterator[dict[str, object]]:
    found = correlate(table, draws=500, coefficients=("pearson", "spearman"))
    for m, spec in enumerate(table.metrics):
        for d, dimension in enumerate(table.dimensions):
            numbers = {
                "r": found.values["pearson"][m, d],
                "low": found.low["pearson"][m, d],
                "high": found.high["pearson"][m, d],
                "spearman": found.values["spearman"][m, d],
            }
            yield {
                "metric": spec,
                "dimension": dimension,
                **{name: float(v) if np.isfinite(v) else None for name, v in numbers.items()},
                "n": int(found.records[m, d]),
                "records": len(table.records),
                "reason": found.reasons.get((m, d)),
            }


def stale(content: dict[str, Any], session: Session, say: Callable[[str], None] = lambda line: None) -> dict[str, str]:
    """Recorded signatures that are no longer those that would be computed now → their metrics. Metrics whose models
    are not here cannot be checked; `say` tells which."""
    from elench.metrics import metric

    recorded = {e["signature"]: e["metric"] for e in content["entries"] if e["kind"] == "metric"}
    found = {}
    for signature, spec in recorded.items():
        try:
            now = session.signature(metric(spec))
        except (MissingModel, MissingExtra) as problem:
            say(f"{spec}: cannot tell whether its figures are stale, {problem}")
            continue
        except UsageError:  # no longer a metric
            now = ""
        if now != signature:
            found[signature] = spec
    return found


def _commit() -> str | None:
    """The commit of the checkout this runs from; None for an installed package."""
    here = Path(__file__).parent
    asked = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=here, capture_output=True, text=True)
    return asked.stdout.strip() or None if asked.returncode == 0 else None


def read_bench(path: Path) -> dict[str, Any]:
    """What an earlier `elench bench` wrote."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise UsageError(f"{path}: not JSON ({problem}); move it away or name another file") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UsageError(f"{path}: not a file of `elench bench`; name another file")
    return content


def _write(path: Path, content: dict[str, Any]) -> None:
    fresh = path.with_name(path.name + ".new")
    entries = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in content["entries"])
    head = json.dumps({**content, "entries": []}, ensure_ascii=False)
    fresh.write_text(head.replace('"entries": []', f'"entries": [\n{entries}\n]', 1) + "\n", encoding="utf-8")
    fresh.replace(path)


def best_first(entries: Sequence[dict[str, Any]]) -> list[tuple[str, str, list[dict[str, Any]], float]]:
    """(metric, kind, its entries, mean |r|) of one file's entries, the best agreement first."""
    by_metric: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        by_metric.setdefault(entry["metric"], []).append(entry)
    rows = []
    for spec, own in by_metric.items():
        values = [abs(e["r"]) for e in own if e["r"] is not None]
        if values:
            rows.append((spec, own[0]["kind"], own, float(np.mean(values))))
    return sorted(rows, key=lambda row: -row[3])
