"""The profiles that come with elench: made from the open rated files by one command, and tried on files left out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elench.errors import MissingModel, UsageError
from elench.evaluate.bench import sampled
from elench.evaluate.calibrate import calibrate, measure_costs
from elench.evaluate.calibrate_data import QUESTION_SIGNALS, SUMMARY_SIGNALS
from elench.evaluate.judgements import Judgements, load
from elench.metrics.profile import Z_LIMIT, content_hash
from elench.records.record import write_records
from elench.stats.correlation import correlate

if TYPE_CHECKING:
    from elench.models.base import ModelSet

Array = NDArray[np.float64]
MOST = 600
"""Records of a file that a profile is only tried on: whole groups, at random."""


@dataclass(frozen=True)
class Shipped:
    """How one profile is made."""

    judge: str
    metrics: tuple[str, ...]
    files: Mapping[str, Mapping[str, str]]
    """File to learn from → its dimension: what the profile calls it. Several files are pooled, ratings put on 0–1."""
    others: Mapping[str, Sequence[tuple[str, str]]]
    """File it is only tried on → (its dimension, the profile's dimension that should predict it), all reported."""


SHIPPED = {
    "questions": Shipped(
        "question",
        (
            "length", "answer-leak", "near-answer", *(f"signal[of={s}]" for s in QUESTION_SIGNALS), "wellformed",
        ),
        {"qgeval_squad": {}},
        {"lmqg": (
            ("grammaticality", "fluency"), ("understandability", "clarity"), ("correctness", "answer_consistency"),
            ("grammaticality", "overall"), ("understandability", "overall"), ("correctness", "overall"),
        )},
    ),
    "answers": Shipped(
        "answer",
        (
            "length", "em", "f1", "novel-f1", "bleu[n=1]", "rouge-l", "meteor", "bleu1-kpqa[form=ours]",
            "rouge-l-kpqa[form=ours]", "bertscore-kpqa[form=ours]",
        ),
        {"kpqa_marco": {}, "kpqa_semeval": {}, "mohler": {"score": "correctness"}},
        {"sas": (("similarity", "correctness"),)},
    ),
    "summaries": Shipped(
        "summary",
        (
            "length", "source-overlap[n=1]", "source-overlap", "source-overlap[n=5]", "lead-overlap",
            *(f"signal[of={s}]" for s in SUMMARY_SIGNALS),
        ),
        {"summeval": {}},
        {"qags_cnndm": (("consistency", "consistency"),), "xsumfaith": (("faithful", "consistency"),)},
    ),
}  # fmt: skip
"""Metrics whose models are not installed are left out; run the command again when they are."""


def make_shipped(
    name: str, data: Path, scores: Path, models: ModelSet, sample: int = 16, seed: int = 0
) -> dict[str, Any]:
    """The content of one shipped profile, with its agreement on the files it did not learn from."""
    plan = SHIPPED[name]
    specs = available(plan.metrics, models)
    tables = {file: _renamed(_table(data, file, specs, scores, models), names) for file, names in plan.files.items()}
    pooled = _pooled(tables)
    costs = measure_costs(pooled, pooled.metrics, sample, models) if sample else {}
    content = calibrate(pooled, plan.judge, costs, source=_source(data, tables, pooled), seed=seed)
    elsewhere: dict[str, Any] = {}
    if len(tables) > 1:
        for file in tables:
            rest = _pooled({other: table for other, table in tables.items() if other != file})
            learned = calibrate(rest, plan.judge, {}, source={}, seed=seed)
            elsewhere[file] = tried(learned, _pooled({file: tables[file]}), [(d, d) for d in tables[file].dimensions])
    for file, pairs in plan.others.items():
        elsewhere[file] = tried(content, _table(data, file, specs, scores, models, MOST), pairs)
    content = {key: value for key, value in content.items() if key != "sha256"} | {"elsewhere": elsewhere}
    left_out = [spec for spec in plan.metrics if spec not in specs]
    if left_out:
        content["notes"] = [*content["notes"], f"models not installed, left out: {', '.join(left_out)}"]
    return {**content, "sha256": content_hash(content)}


def available(specs: Sequence[str], models: ModelSet) -> list[str]:
    """The metrics whose models are on this machine."""
    from elench.metrics import metric

    found = []
    for spec in specs:
        try:
            for role in metric(spec).roles:
                models.identity(role)
        except MissingModel:
            continue
        found.append(spec)
    return found


def _table(data: Path, file: str, specs: Sequence[str], scores: Path, models: ModelSet, most: int = 0) -> Judgements:
    """A rated file (or whole groups of it, up to `most` records) with the scores of the metrics, kept in `scores`."""
    from elench.engine.job import Job, score_file
    from elench.engine.session import Session
    from elench.metrics import metric

    path = data / f"{file}.jsonl"
    if not path.is_file():
        raise UsageError(f"{path}: no such file; --shipped wants the folder of the rated files")
    if most:
        part = scores / f"{file}.sample.jsonl"
        write_records(sampled(load(path), most).records, part)
        path = part
    chosen = [metric(spec) for spec in specs]
    session = Session(models)
    print_of = hashlib.sha256("\n".join(sorted(session.signatures(chosen).values())).encode()).hexdigest()[:8]
    out = scores / f"{file}.{print_of}.jsonl"
    score_file(Job(path, chosen, out, session, resume=True))
    table = load(path, [out])
    own = [name for name in table.metrics if table.kinds[name] == "metric"]
    peers = [name for name in table.metrics if table.kinds[name] == "peer"]
    return table.choose([*own, *peers])


def _renamed(table: Judgements, names: Mapping[str, str]) -> Judgements:
    """Dimensions under the profile's names (with names given, only those), and `overall`, the mean of several."""
    table = table.choose((), list(names)) if names else table
    named = tuple(names.get(d, d) for d in table.dimensions)
    if len(named) == 1:
        return replace(table, dimensions=named)
    mean = table.human.mean(axis=1, keepdims=True)
    return replace(table, dimensions=(*named, "overall"), human=np.concatenate([table.human, mean], axis=1))


def _pooled(tables: Mapping[str, Judgements]) -> Judgements:
    """Several files as one: groups kept apart, ratings of each file put on 0–1; one file keeps its scale."""
    first = next(iter(tables.values()))
    metrics = tuple(m for m in first.metrics if first.kinds[m] == "metric")
    dimensions = tuple(dict.fromkeys(d for table in tables.values() for d in table.dimensions))
    records, scores, human = [], [], []
    for file, table in tables.items():
        records += [replace(r, group=f"{file} {r.group or r.id}") for r in table.records]
        scores.append(table.choose(metrics).scores)
        own = np.full((len(table.records), len(dimensions)), np.nan)
        for k, name in enumerate(table.dimensions):
            values = table.human[:, k]
            low, high = np.nanmin(values), np.nanmax(values)
            own[:, dimensions.index(name)] = (values - low) / (high - low) if len(tables) > 1 else values
        human.append(own)
    return Judgements(
        records, metrics, np.concatenate(scores), dict.fromkeys(metrics, "metric"), dimensions, np.concatenate(human),
        " + ".join(tables),
    )  # fmt: skip


def _source(data: Path, tables: Mapping[str, Judgements], pooled: Judgements) -> dict[str, Any]:
    digest = hashlib.sha256(b"".join((data / f"{file}.jsonl").read_bytes() for file in tables)).hexdigest()
    name = " + ".join(f"{file}.jsonl" for file in tables)
    return {"file": name, "sha256": digest, "records": len(pooled.records), "groups": len(set(pooled.items))}


def applied(content: Mapping[str, Any], dimension: str, table: Judgements) -> Array:
    """What a profile says of the records of a table that holds its metrics' scores."""
    found = content["dimensions"][dimension]
    total = np.full(len(table.records), float(found["base"]))
    for spec, weight in found["full"]["weights"].items():
        about = content["metrics"][spec]
        z = np.clip((table.choose([spec]).scores[:, 0] - about["mean"]) / about["sd"], -Z_LIMIT, Z_LIMIT)
        total += weight * np.where(np.isfinite(z), z, 0.0)
    return total


def tried(content: Mapping[str, Any], table: Judgements, pairs: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Agreement on a file that was not learned from, beside its best single metric and its best peer."""
    found = []
    for theirs, ours in pairs:
        predicted = applied(content, ours, table)
        lined_up = replace(
            table.choose((), (theirs,)),
            metrics=("profile", *table.metrics),
            scores=np.concatenate([predicted[:, None], table.scores], axis=1),
        )
        result = correlate(lined_up, draws=500, coefficients=("pearson",))
        values = dict(zip(lined_up.metrics, result.values["pearson"][:, 0].tolist(), strict=True))
        limits = [float(side["pearson"][0, 0]) for side in (result.low, result.high)]
        own = {m: abs(values[m]) for m in table.metrics if table.kinds[m] == "metric" and np.isfinite(values[m])}
        peers = {m: abs(values[m]) for m in table.metrics if table.kinds[m] == "peer" and np.isfinite(values[m])}
        one = {
            "rated": theirs,
            "predicted_by": ours,
            "r": float(values["profile"]),
            "ci95": limits,
            "n": int(result.records[0, 0]),
            "best_single": max(own.items(), key=lambda item: item[1], default=None),
            "best_peer": max(peers.items(), key=lambda item: item[1], default=None),
        }
        found.append(one)
    return found
