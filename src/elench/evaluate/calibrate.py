"""`elench calibrate`: which mix of metrics predicts what people say, how well, from how many ratings, at what cost."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elench.errors import UsageError
from elench.evaluate.calibrate_fit import Belief, Fit, Scale, fit, levelled, unseen
from elench.evaluate.judgements import Judgements
from elench.evaluate.predicted import predicted_mean
from elench.metrics.profile import FORMAT, ProfileFile, content_hash
from elench.stats.correlation import coefficient, correlate
from elench.stats.resampling_plan import codes

if TYPE_CHECKING:
    from elench.models.base import ModelSet

Array = NDArray[np.float64]

UNDIRECTED = frozenset(("length", "signal[of=copied]"))
"""Metrics of which neither more nor less is better in itself."""
FEWEST_RATINGS, FEWEST_GROUPS = 20, 5
SIZES = (15, 20, 30, 45, 70, 100, 200, 400, 800)
"""Points of the learning curve, where there are that many ratings to train on."""
REPEATS = 6
"""Draws of the ratings at each point of the learning curve."""
NEAR_BEST = 0.95
"""The cheap variant keeps this share of the full mix's agreement."""
COST_STEPS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Milliseconds per record at which a cheap variant is cut off."""


@dataclass(frozen=True)
class Dimension:
    """One human dimension, ready to fit: its rated rows and the metrics that have something to say."""

    name: str
    rows: NDArray[np.int64]
    scores: Array
    ratings: Array
    groups: list[str]
    columns: list[int]
    belief: Belief
    blocks: NDArray[np.int64] | None = None
    """The file of each row, where there are several; the first is home: its scale, level and spread count."""

    @property
    def home(self) -> NDArray[np.int64]:
        """Rows of the first file."""
        return np.arange(len(self.rows)) if self.blocks is None else np.flatnonzero(self.blocks == self.blocks[0])

    def only(self, rows: NDArray[np.int64]) -> Dimension:
        """Some rows of one file."""
        groups = [self.groups[k] for k in rows]
        return replace(
            self, rows=self.rows[rows], scores=self.scores[rows], ratings=self.ratings[rows], groups=groups, blocks=None
        )


def calibrate(
    table: Judgements,
    judge: str,
    costs: Mapping[str, float],
    *,
    source: Mapping[str, Any],
    prior: ProfileFile | None = None,
    seed: int = 0,
    blocks: Sequence[str] = (),
    chosen: Mapping[str, Sequence[str]] | None = None,
    sizes: Sequence[int] = SIZES,
) -> dict[str, Any]:
    """The content of a profile file: one mix per human dimension of the table, with its evidence.

    costs: milliseconds per record of each metric; {} where they were not measured. blocks: the file of each record,
    where there are several. chosen: the only metrics that a dimension may be made of."""
    belief, block = believed(table.metrics, prior), codes(blocks) if blocks else None
    scale = Scale.of(table.scores, belief, block)
    dimensions: dict[str, Any] = {}
    notes = list(table.notes)
    for name in table.dimensions:
        found = _dimension(table, name, belief, block, (chosen or {}).get(name, table.metrics))
        if isinstance(found, str):
            notes.append(f"{name}: left out, {found}")
            continue
        dimensions[name] = _calibrate_one(table, found, scale, costs, seed, sizes)
    if not dimensions:
        raise UsageError(f"{table.source}: nothing to calibrate on: {'; '.join(notes)}")
    used = dict.fromkeys(spec for d in dimensions.values() for v in ("full", "cheap") for spec in d[v]["weights"])
    metrics = {
        spec: {"mean": float(scale.mean[k]), "sd": float(scale.sd[k]), "ms": costs.get(spec)}
        for spec in used
        for k in [table.metrics.index(spec)]
    }
    content = {
        "format": f"elench profile {FORMAT}",
        "judge": judge,
        "elench": version("elench"),
        "data": dict(source),
        "prior": prior.sha256 if prior else None,
        "seed": seed,
        "metrics": metrics,
        "dimensions": dimensions,
        "notes": notes,
    }
    return {**content, "sha256": content_hash(content)}


def believed(specs: Sequence[str], prior: ProfileFile | None = None) -> Belief:
    """What the metrics promise (higher is better, or not), and what an earlier profile made of them."""
    from elench.metrics import metric

    sense = np.array([0.0 if s in UNDIRECTED else 1.0 if metric(s).higher_is_better else -1.0 for s in specs])
    taught = earlier_mixes(prior) if prior else []
    weights = np.array([[mix.get(spec, 0.0) for mix in taught] for spec in specs]).reshape(len(specs), len(taught))
    known = {} if prior is None else {spec: about["sd"] for spec, about in prior.content["metrics"].items()}
    usual = np.array([known.get(spec, 0.0) for spec in specs])
    return Belief(sense, weights, usual, single=not weights.any())


def earlier_mixes(prior: ProfileFile) -> list[dict[str, float]]:
    """Weights on z scores: of each file and dimension a shipped profile learned from, else of its dimensions."""
    if "taught" in prior.content:
        return [one["weights"] for one in prior.content["taught"]]
    full = [mix for (_, variant), mix in prior.mixes.items() if variant == "full"]
    return [{str(part.metric): part.weight for part in mix.parts} for mix in full]


def _dimension(
    table: Judgements, name: str, belief: Belief, blocks: NDArray[np.int64] | None, specs: Sequence[str]
) -> Dimension | str:
    """The rated rows of a dimension, or why they cannot be calibrated on."""
    ratings = table.human[:, table.dimensions.index(name)]
    rows = np.flatnonzero(np.isfinite(ratings))
    groups = [table.items[k] for k in rows]
    if len(rows) < FEWEST_RATINGS:
        return f"{len(rows)} ratings, at least {FEWEST_RATINGS} are needed"
    if len(set(groups)) < FEWEST_GROUPS:
        return f"ratings of {len(set(groups))} groups, at least {FEWEST_GROUPS} are needed for cross-validation"
    if np.ptp(ratings[rows]) == 0:
        return "people gave every record the same rating"
    scores = table.scores[rows]
    enough = np.isfinite(scores).mean(axis=0) >= (0.5 if blocks is None else 0.0)
    varies = enough & np.isfinite(Scale.of(scores).sd)
    columns = [k for k, spec in enumerate(table.metrics) if spec in specs and varies[k]]
    if not columns:
        return "no metric has varying values for half of the rated records"
    block = None if blocks is None else blocks[rows]
    return Dimension(name, rows, scores[:, columns], ratings[rows], groups, columns, belief.of(columns), block)


def quick(
    table: Judgements, judge: str, *, blocks: Sequence[str] = (), chosen: Mapping[str, Sequence[str]] | None = None,
    seed: int = 0, strength: float = 0.0,
) -> dict[str, Any]:  # fmt: skip
    """A profile without its evidence: enough to try it on other data, or to lean on it."""
    belief, block = replace(believed(table.metrics), strength=strength), codes(blocks) if blocks else None
    scale = Scale.of(table.scores, belief, block)
    dimensions: dict[str, Any] = {}
    for name in table.dimensions:
        one = _dimension(table, name, belief, block, (chosen or {}).get(name, table.metrics))
        if isinstance(one, str):
            continue
        own = Scale(scale.mean[one.columns], scale.sd[one.columns])
        found = fit(one.scores, one.ratings, one.groups, one.belief, seed, own, one.blocks)
        weights = {table.metrics[k]: float(w) for k, w in zip(one.columns, found.weights, strict=True) if w}
        mix = {"weights": weights, "error95": 0.0}
        scale_of_ratings = [float(one.ratings.min()), float(one.ratings.max())]
        dimensions[name] = {"base": found.base, "scale": scale_of_ratings, "full": mix, "cheap": mix}
    metrics = {m: {"mean": float(scale.mean[k]), "sd": float(scale.sd[k])} for k, m in enumerate(table.metrics)}
    return {"judge": judge, "sha256": "", "metrics": metrics, "dimensions": dimensions}


def _calibrate_one(
    table: Judgements, one: Dimension, scale: Scale, costs: Mapping[str, float], seed: int, sizes: Sequence[int]
) -> Any:
    specs = [table.metrics[k] for k in one.columns]
    own_scale = Scale(scale.mean[one.columns], scale.sd[one.columns])
    found = fit(one.scores, one.ratings, one.groups, one.belief, seed, own_scale, one.blocks)
    outside = unseen(one.scores, one.ratings, one.groups, one.belief, seed, blocks=one.blocks)
    full = _variant(table, one, specs, found, outside.mix, costs, seed)
    home = one.only(one.home)
    curve = learning_curve(home, seed, sizes)
    return {
        "n": len(one.rows),
        "groups": len(set(one.groups)),
        "scale": [float(home.ratings.min()), float(home.ratings.max())],
        "base": found.base,
        "penalty_strength": found.strength,
        "full": full,
        "single": {
            "metric": specs[found.single],
            **agreement(table, one, outside.single, seed),
        },
        "cheap": _cheap(table, one, scale, full, costs, seed),
        "noise": noise(home.ratings - outside.mix[one.home], home.groups, [table.systems[k] or "" for k in home.rows]),
        "curve": curve,
        "more_ratings": more_ratings(curve, len(home.rows)),
    }


def _variant(
    table: Judgements, one: Dimension, specs: Sequence[str], found: Fit, outside: Array, costs: Mapping[str, float],
    seed: int,
) -> dict[str, Any]:  # fmt: skip
    weights = {spec: float(w) for spec, w in zip(specs, found.weights, strict=True) if w}
    return {
        **agreement(table, one, outside, seed),
        "error95": float(np.quantile(np.abs(one.ratings - outside)[one.home], 0.95)),
        "ms": _cost(weights, costs),
        "weights": dict(sorted(weights.items(), key=lambda item: -abs(item[1]))),
    }


def _cost(specs: Mapping[str, float] | Sequence[str], costs: Mapping[str, float]) -> float | None:
    """Milliseconds per record, at most: metrics that ask the same model the same thing share the time."""
    return sum(costs[spec] for spec in specs) if all(spec in costs for spec in specs) else None


def _cheap(
    table: Judgements, one: Dimension, scale: Scale, full: Mapping[str, Any], costs: Mapping[str, float], seed: int
) -> Any:
    """The mix of the cheapest metrics whose agreement on unseen groups comes within 95 % of the full mix's."""
    specs = [table.metrics[k] for k in one.columns]
    for limit in COST_STEPS if costs else ():
        keep = [k for k, spec in enumerate(specs) if costs.get(spec, np.inf) <= limit]
        if not keep or len(keep) == len(specs):
            continue
        part = replace(
            one, scores=one.scores[:, keep], columns=[one.columns[k] for k in keep], belief=one.belief.of(keep)
        )
        outside = unseen(part.scores, part.ratings, part.groups, part.belief, seed, blocks=part.blocks).mix
        if (agreement(table, part, outside, seed)["r"] or 0.0) >= NEAR_BEST * (full["r"] or 0.0):
            own = Scale(scale.mean[part.columns], scale.sd[part.columns])
            found = fit(part.scores, part.ratings, part.groups, part.belief, seed, own, part.blocks)
            return _variant(table, part, [specs[k] for k in keep], found, outside, costs, seed)
    return dict(full)


def agreement(table: Judgements, one: Dimension, predicted: Array, seed: int, draws: int = 500) -> dict[str, Any]:
    """Pearson's r of predictions and ratings, with a bootstrap interval over groups; of several files, their mean r."""
    ratings = one.ratings
    if one.blocks is not None:
        predicted, ratings = (levelled(side[:, None], one.blocks)[:, 0] for side in (predicted, ratings))
    lined_up = replace(
        table,
        records=[table.records[k] for k in one.rows],
        metrics=("prediction",),
        kinds={},
        scores=predicted[:, None],
        dimensions=(one.name,),
        human=ratings[:, None],
    )
    found = correlate(lined_up, draws=draws, seed=seed, coefficients=("pearson",))
    value, low, high = (float(side["pearson"][0, 0]) for side in (found.values, found.low, found.high))
    numbers = [x if np.isfinite(x) else None for x in (value, low, high)]
    return {"r": numbers[0], "ci95": numbers[1:], "n": len(one.rows)}


def learning_curve(one: Dimension, seed: int, sizes: Sequence[int] = SIZES) -> list[dict[str, float]]:
    """Agreement on unseen groups after training on a number of ratings: mean and spread over random draws of them."""
    most = int(len(one.rows) * 0.8)
    points = []
    for size in (s for s in sizes if s <= most):
        found = [
            coefficient(unseen(one.scores, one.ratings, one.groups, one.belief, seed + k, size).mix, one.ratings).value
            or 0.0
            for k in range(REPEATS)
        ]
        points.append({"ratings": size, "r": float(np.mean(found)), "sd": float(np.std(found, ddof=1))})
    return points


def more_ratings(curve: Sequence[Mapping[str, float]], n: int, more: int = 40) -> dict[str, float] | None:
    """What `more` further ratings would bring, from r = a - b / √ratings fitted to the learning curve."""
    if len(curve) < 3:
        return None
    x = np.array([1 / np.sqrt(point["ratings"]) for point in curve])
    slope = float(np.polyfit(x, [point["r"] for point in curve], 1)[0])
    gain = max(0.0, -slope) * (1 / np.sqrt(n) - 1 / np.sqrt(n + more))
    return {"ratings": more, "gain": float(gain)}


def noise(residuals: Array, groups: Sequence[str], systems: Sequence[str]) -> dict[str, float]:
    """Standard deviations of what the mix misses, by source: the text's group, its system, the record itself.

    Method of moments: residuals of two records that share only the group have covariance group², and so on."""
    centred = residuals - residuals.mean()
    group, system = _covariance(centred, groups), _covariance(centred, systems) if len(set(systems)) > 2 else 0.0
    rest = max(float(centred.var()) - group - system, 0.0)
    return {"group": float(np.sqrt(group)), "system": float(np.sqrt(system)), "record": float(np.sqrt(rest))}


def coverage(
    table: Judgements, prior: ProfileFile | None, chosen: Mapping[str, Sequence[str]], seed: int, splits: int = 20
) -> dict[str, float]:
    """How often the 95 % interval of a system's predicted mean holds its mean human rating.

    Predictions are those for groups not trained on. Half of the groups, drawn at random, tell the noise; the intervals
    are for each system's records of the other half."""
    belief, hits, n = believed(table.metrics, prior), 0, 0
    rng = np.random.default_rng(seed)
    for name in table.dimensions:
        one = _dimension(table, name, belief, None, chosen.get(name, table.metrics))
        if isinstance(one, str):
            continue
        said = unseen(one.scores, one.ratings, one.groups, one.belief, seed).mix
        systems = [table.systems[k] or "" for k in one.rows]
        group = codes(one.groups)
        for _ in range(splits):
            known = np.isin(group, rng.permutation(int(group.max()) + 1)[: int(group.max() + 1) // 2])
            half, rest = np.flatnonzero(known), np.flatnonzero(~known)
            about = noise((one.ratings - said)[half], [one.groups[k] for k in half], [systems[k] for k in half])
            for system in dict.fromkeys(systems[k] for k in rest):
                own = [k for k in rest if systems[k] == system]
                found = predicted_mean(said[own].tolist(), [one.groups[k] for k in own], about)
                hits += found.low <= float(one.ratings[own].mean()) <= found.high
                n += 1
    return {"share": hits / n if n else float("nan"), "n": n}


def _covariance(values: Array, labels: Sequence[str]) -> float:
    """Mean product of two different records' values that share a label; 0 where it is negative."""
    products, pairs = 0.0, 0
    where: dict[str, list[int]] = {}
    for k, label in enumerate(labels):
        where.setdefault(label, []).append(k)
    for rows in where.values():
        own = values[rows]
        products += float(own.sum() ** 2 - (own**2).sum())
        pairs += len(rows) * (len(rows) - 1)
    return max(products / pairs, 0.0) if pairs else 0.0


def measure_costs(table: Judgements, specs: Sequence[str], sample: int, models: ModelSet | None) -> dict[str, float]:
    """Milliseconds per record of each metric on a few records, models loaded, nothing cached: CPU time, which other
    work on the machine hardly changes; wall time where a server answers."""
    import elench
    from elench.engine.session import Session
    from elench.metrics import metric

    step = max(1, len(table.records) // max(sample, 1))
    records = list(table.records[::step])[:sample]
    if not records:
        return {}
    models = models or Session().models
    costs = {}
    for spec in specs:
        remote = any(models.identity(role).kind == "http" for role in metric(spec).roles)
        clock = time.perf_counter if remote else time.process_time
        elench.score(records[:1], [spec], models=models, cache=False)
        started = clock()
        elench.score(records, [spec], models=models, cache=False)
        costs[spec] = 1000 * (clock() - started) / len(records)
    return costs
