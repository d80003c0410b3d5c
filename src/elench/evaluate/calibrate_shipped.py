"""The profiles that come with elench: made from the open rated files by one command, and tried on files left out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elench.errors import MissingModel, UsageError
from elench.evaluate.bench import sampled, unlearned
from elench.evaluate.calibrate import believed, calibrate, coverage, measure_costs, quick
from elench.evaluate.calibrate_data import CANDIDATES
from elench.evaluate.calibrate_fit import STRENGTHS, Scale
from elench.evaluate.judgements import Judgements, load
from elench.metrics.profile import Z_LIMIT, content_hash, parsed
from elench.records.record import write_records
from elench.stats.correlation import coefficient, correlate

if TYPE_CHECKING:
    from elench.metrics.base import Metric
    from elench.models.base import ModelSet

Array = NDArray[np.float64]
FEW = 100
"""Ratings with which the first file is also calibrated, leaning on the others."""


@dataclass(frozen=True)
class Shipped:
    """How one profile is made."""

    judge: str
    files: Mapping[str, Mapping[str, str]]
    """File to learn from → the profile's dimension: what the file calls it ({}: all, by their own names). The first
    file gives the rating scale and the level; each is also left out once."""
    others: Mapping[str, Mapping[str, str]]
    """File that the profile is only tried on, likewise."""
    most: Mapping[str, int]
    """File → records that are used at most: whole groups, at random."""
    chosen: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Dimension → the only metrics it is made of; the others are scored to be compared with."""


SHIPPED = {
    "questions": Shipped(
        "question",
        {
            "qgeval_squad": {},
            "lmqg": {
                "fluency": "grammaticality",
                "clarity": "understandability",
                "answer_consistency": "correctness",
            },
            "answerability_squad": {"answerability": "answerability"},
        },
        {"simqg_a": {"fluency": "fluency", "relevance": "relevant", "answerability": "answerable"}},
        {"lmqg": 600},
    ),
    "answers": Shipped(
        "answer",
        {
            "kpqa_marco": {},
            "kpqa_semeval": {},
            "mohler": {"correctness": "score"},
            "sas": {"correctness": "similarity"},
            "evouna_nq": {"correctness": "correct"},
            "semeval2013": {"correctness": "correct"},
        },
        {},
        {"mohler": 600, "evouna_nq": 600, "semeval2013": 600},
        {"correctness": ("equivalent", "bertscore-kpqa[form=ours]", "rouge-l-kpqa[form=ours]")},
    ),
    "summaries": Shipped(
        "summary",
        {
            "summeval": {},
            "qags_cnndm": {"consistency": "consistency"},
            "aggrefact": {"consistency": "consistent"},
            "xsumfaith": {"consistency": "faithful"},
            "polytope": {"consistency": "consistent"},
            "summedits": {"consistency": "consistent"},
        },
        {},
        {"summeval": 800, "xsumfaith": 400, "polytope": 200, "summedits": 300},
        {
            "consistency": (
                "support",
                "support[words=off]",
                "source-overlap[n=1]",
                "source-overlap",
                "source-overlap[n=5]",
                "likelihood",
            )
        },
    ),
}
"""Metrics whose models are not installed are left out; run the command again when they are."""


def make_shipped(
    name: str, data: Path, scores: Path, models: ModelSet, sample: int = 16, seed: int = 0
) -> dict[str, Any]:
    """The content of one shipped profile, with its agreement on each file when that file is left out."""
    plan = SHIPPED[name]
    specs = available(CANDIDATES[plan.judge], models)
    every = {**plan.files, **plan.others}
    tables = {file: _renamed(_table(data, file, specs, scores, models), names) for file, names in every.items()}
    learned = {file: tables[file] for file in plan.files}
    pooled, blocks = _pooled(learned)
    costs = measure_costs(next(iter(tables.values())), pooled.metrics, sample, models) if sample else {}
    source, chosen = _source(data, learned, pooled), plan.chosen
    content = calibrate(pooled, plan.judge, costs, source=source, seed=seed, blocks=blocks, chosen=chosen, sizes=())
    content["taught"] = [mix for file, table in tables.items() for mix in taught(file, table)]
    content["elsewhere"] = _left_out(plan, tables, seed)
    content["first_file"] = _first_file(plan, tables, seed)
    left_out = [spec for spec in CANDIDATES[plan.judge] if spec not in specs]
    if left_out:
        content["notes"] = [*content["notes"], f"models not installed, left out: {', '.join(left_out)}"]
    return {**content, "sha256": content_hash(content)}


def taught(file: str, table: Judgements) -> list[dict[str, Any]]:
    """What one file says of each dimension, for few ratings to lean on: the correlation of each metric with the rating
    (none where it contradicts the metric's sense of better), as a weight on its z score."""
    table = table.choose([m for m in table.metrics if table.kinds[m] == "metric"])
    scale, sense = Scale.of(table.scores), believed(table.metrics).sense
    found = []
    for name, ratings in zip(table.dimensions, table.human.T, strict=True):
        if name == "overall":
            continue
        rows = np.isfinite(ratings)
        y = (ratings[rows] - ratings[rows].mean()) / (ratings[rows].std() or 1.0)
        r = scale.z(table.scores[rows]).T @ y / rows.sum()
        weights = {spec: float(r[k]) for k, spec in enumerate(table.metrics) if r[k] and r[k] * sense[k] >= 0}
        found.append({"file": file, "dimension": name, "weights": weights})
    return found


def _left_out(plan: Shipped, tables: Mapping[str, Judgements], seed: int) -> dict[str, Any]:
    """Each file predicted by what was learned from the others."""
    found = {}
    for file, table in tables.items():
        rest, blocks = _pooled({other: tables[other] for other in plan.files if other != file})
        learned = quick(rest, plan.judge, blocks=blocks, chosen=plan.chosen, seed=seed)
        found[file] = tried(learned, table, [d for d in table.dimensions if d in learned["dimensions"]])
    return found


def _first_file(plan: Shipped, tables: Mapping[str, Judgements], seed: int) -> dict[str, Any]:
    """The first file calibrated as a user would: cross-validation by group, with all its ratings and with few, leaning
    on what the other files taught; and what it alone, at the strongest penalty, says of them."""
    (file, table), *others = tables.items()
    rest, blocks = _pooled(dict(others))
    known = quick(rest, plan.judge, blocks=blocks, chosen=plan.chosen, seed=seed)
    known["taught"] = [mix for other, one in others for mix in taught(other, one)]
    table = table.choose([m for m in table.metrics if table.kinds[m] == "metric"])
    own = calibrate(table, plan.judge, {}, source={}, prior=parsed(known), seed=seed, chosen=plan.chosen, sizes=(FEW,))
    at_few = {
        name: next((point["r"] for point in d["curve"] if point["ratings"] == FEW), None)
        for name, d in own["dimensions"].items()
    }
    single = [file] * len(table.records)
    alone = quick(table, plan.judge, blocks=single, chosen=plan.chosen, seed=seed, strength=STRENGTHS[-1])
    known_to = {name: [d for d in one.dimensions if d in alone["dimensions"]] for name, one in others}
    return {
        "file": file,
        "r": {name: d["full"]["r"] for name, d in own["dimensions"].items()},
        "few": FEW,
        "r_few": at_few,
        "coverage": coverage(table, parsed(known), plan.chosen, seed),
        "alone": {other: tried(alone, one, known_to[other]) for other, one in others},
    }


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


def _table(data: Path, file: str, specs: Sequence[str], scores: Path, models: ModelSet) -> Judgements:
    """A rated file, or the sample of it that is used, with the scores of the metrics. They are kept in `scores`, those
    of each set of models in a file of their own: a new model makes only its own metrics run again."""
    from elench.engine.job import Job, score_file
    from elench.engine.session import Session
    from elench.metrics import metric

    path = data / f"{file}.jsonl"
    if not path.is_file():
        raise UsageError(f"{path}: no such file; --shipped needs the folder of the rated files")
    table = unlearned(load(path), file)
    plan = next(plan for plan in SHIPPED.values() if file in plan.files or file in plan.others)
    table = sampled(table, plan.most.get(file, 0))
    part = scores / f"{file}.sample.jsonl"
    write_records(table.records, part)
    session = Session(models)
    outputs = []
    by_models: dict[tuple[str, ...], list[Metric]] = {}
    for one in map(metric, specs):
        if sum(one.missing(record) is not None for record in table.records) < len(table.records):
            by_models.setdefault(tuple(one.roles), []).append(one)
    for chosen in by_models.values():
        said = "\n".join([*sorted(session.signatures(chosen).values()), hashlib.sha256(part.read_bytes()).hexdigest()])
        outputs.append(scores / f"{file}.{hashlib.sha256(said.encode()).hexdigest()[:8]}.jsonl")
        try:
            score_file(Job(part, chosen, outputs[-1], session, resume=True))
        except UsageError:  # kept by an earlier version of elench: score again
            outputs[-1].unlink()
            score_file(Job(part, chosen, outputs[-1], session))
    table = load(part, outputs)
    peers = [name for name in table.metrics if table.kinds[name] == "peer"]
    own = [name for name in table.metrics if table.kinds[name] == "metric"]
    plain = {name: name.removesuffix(" (scored)") for name in own} | {name: f"{name} (peer)" for name in peers}
    kinds = {plain[name]: table.kinds[name] for name in plain}
    return replace(table.choose([*own, *peers]), metrics=tuple(plain.values()), kinds=kinds)


def _renamed(table: Judgements, names: Mapping[str, str]) -> Judgements:
    """Dimensions under the profile's names (with names given, only those), and `overall`, the mean of several."""
    named = names or {name: name for name in table.dimensions}
    human = table.human[:, [table.dimensions.index(theirs) for theirs in named.values()]]
    if len(named) == 1:
        return replace(table, dimensions=tuple(named), human=human)
    mean = human.mean(axis=1, keepdims=True)
    return replace(table, dimensions=(*named, "overall"), human=np.concatenate([human, mean], axis=1))


def _pooled(tables: Mapping[str, Judgements]) -> tuple[Judgements, list[str]]:
    """Several files as one, groups kept apart, and the file of each record. Ratings are put on the scale that the first
    file has for the dimension."""
    named = [m for table in tables.values() for m in table.metrics if table.kinds[m] == "metric"]
    metrics = tuple(dict.fromkeys(named))
    dimensions = tuple(dict.fromkeys(d for table in tables.values() for d in table.dimensions))
    scale: dict[str, tuple[float, float]] = {}
    records, scores, human, blocks = [], [], [], []
    for file, table in tables.items():
        records += [replace(r, group=f"{file} {r.group or r.id}") for r in table.records]
        blocks += [file] * len(table.records)
        columns = [table.scores[:, table.metrics.index(m)] if m in table.metrics else None for m in metrics]
        nothing = np.full(len(table.records), np.nan)
        scores.append(np.stack([nothing if column is None else column for column in columns], axis=1))
        own = np.full((len(table.records), len(dimensions)), np.nan)
        for k, name in enumerate(table.dimensions):
            values = table.human[:, k]
            low, high = float(np.nanmin(values)), float(np.nanmax(values))
            bottom, top = scale.setdefault(name, (low, high))
            own[:, dimensions.index(name)] = bottom + (top - bottom) * (values - low) / (high - low)
        human.append(own)
    pooled = Judgements(
        records, metrics, np.concatenate(scores), dict.fromkeys(metrics, "metric"), dimensions, np.concatenate(human),
        " + ".join(tables),
    )  # fmt: skip
    return pooled, blocks


def _source(data: Path, tables: Mapping[str, Judgements], pooled: Judgements) -> dict[str, object]:
    digest = hashlib.sha256(b"".join((data / f"{file}.jsonl").read_bytes() for file in tables)).hexdigest()
    name = " + ".join(f"{file}.jsonl" for file in tables)
    return {"file": name, "sha256": digest, "records": len(pooled.records), "groups": len(set(pooled.items))}


def applied(content: Mapping[str, Any], dimension: str, table: Judgements) -> Array:
    """What a profile says of the records of a table that holds its metrics' scores."""
    found = content["dimensions"][dimension]
    total = np.full(len(table.records), float(found["base"]))
    for spec, weight in found["full"]["weights"].items():
        about = content["metrics"][spec]
        if spec not in table.metrics:
            continue  # counts as average, as in use
        z = np.clip((table.choose([spec]).scores[:, 0] - about["mean"]) / about["sd"], -Z_LIMIT, Z_LIMIT)
        total += weight * np.where(np.isfinite(z), z, 0.0)
    return total


def tried(content: Mapping[str, Any], table: Judgements, dimensions: Sequence[str]) -> list[dict[str, Any]]:
    """Agreement on a file that was not learned from, beside its best single metric and its best peer."""
    found = []
    for name in dimensions:
        predicted = applied(content, name, table)
        whole = table.choose((), (name,))
        lined_up = replace(whole, metrics=("profile",), scores=predicted[:, None], kinds={})
        result = correlate(lined_up, draws=500, coefficients=("pearson",))
        limits = [float(side["pearson"][0, 0]) for side in (result.low, result.high)]
        values = {
            m: coefficient(column, whole.human[:, 0]).value
            for m, column in zip(table.metrics, table.scores.T, strict=True)
        }
        own, peers = (
            {m: abs(v) for m, v in values.items() if table.kinds[m] == kind and v is not None and np.isfinite(v)}
            for kind in ("metric", "peer")
        )
        one = {
            "dimension": name,
            "r": float(result.values["pearson"][0, 0]),
            "ci95": limits,
            "n": int(result.records[0, 0]),
            "best_single": max(own.items(), key=lambda item: item[1], default=None),
            "best_peer": max(peers.items(), key=lambda item: item[1], default=None),
            "metrics": own,
        }
        found.append(one)
    return found
