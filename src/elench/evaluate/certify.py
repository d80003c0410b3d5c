"""`elench certify`: how far a judge, metric or profile agrees with people, as a file that a run can be held to.

A certificate names the signature it was measured with. A changed prompt, model, parameter or version is another
signature, and the certificate no longer applies (`elench score --require-certificate`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elench.errors import UsageError
from elench.evaluate.calibrate_data import file_source, judged, text_hashes
from elench.evaluate.judgements import Judgements, load
from elench.evaluate.meta import evaluate
from elench.evaluate.sanity_baselines import with_baselines
from elench.evaluate.slices import slices
from elench.metrics.profile import Profile, content_hash
from elench.stats.agreement import rating_matrix
from elench.stats.correlation import coefficient

if TYPE_CHECKING:
    from elench.engine.result import Result
    from elench.metrics.base import Metric
    from elench.models.base import ModelSet

Array = NDArray[np.float64]
FORMAT = "elench certificate 1"
FEWEST = 20
"""Rated records that a certificate, or a slice of one, needs."""
REPEATED = 30
"""Records scored twice to see whether the same text gets the same score."""


@dataclass(frozen=True)
class CertificateOptions:
    """What a certificate is asked for."""

    floor: float = 0.3
    dimensions: tuple[str, ...] = ()
    by: tuple[str, ...] = ("length", "system")
    draws: int = 500
    seed: int = 0


def certify(metric: Metric, path: Path, asked: CertificateOptions, models: ModelSet | None = None) -> dict[str, Any]:
    """Score the rated records of a file and measure the metric against them."""
    import elench

    whole = load(path).choose((), asked.dimensions)
    judge = judged(whole)
    table = _unseen(metric, path, whole)
    learned = len(whole.records) - len(table.records)
    if learned and len(table.records) < FEWEST:
        raise UsageError(
            f"{path}: {metric} learned from {learned} of these {len(whole.records)} records, which therefore cannot "
            f"test it, and {FEWEST} others are needed; calibrate on a part of the file and certify on the rest"
        )
    result = elench.score(table.records, [metric], models=models)
    spec = str(metric)
    scores = np.array([np.nan if v is None else v for v in result.values(spec)], dtype=np.float64)
    if np.isfinite(scores).sum() < FEWEST:
        reasons = "".join(f"; {reason}" for reason in sorted(set(result.unscored[spec].values()))[:2])
        raise UsageError(f"{path}: {spec} scored {np.isfinite(scores).sum()} records, {FEWEST} are needed{reasons}")
    own = replace(table, metrics=(spec,), scores=scores[:, None], kinds={spec: "metric"})
    dimensions = {name: _dimension(own.choose((), (name,)), asked) for name in table.dimensions}
    content = {
        "format": FORMAT,
        "spec": spec,
        "signature": result.signatures[spec],
        "judge": judge,
        "data": file_source(path, whole),
        "learned_from": learned,
        "scored": int(np.isfinite(scores).sum()),
        "unscored": int((~np.isfinite(scores)).sum()),
        "floor": asked.floor,
        "dimensions": dimensions,
        "repeats": _repeats(metric, result, models),
        "position_bias": _position(result, spec),
        "passed": all(reaches(d["r"], asked.floor) for d in dimensions.values()),
    }
    return {**content, "sha256": content_hash(content)}


def _unseen(metric: Metric, path: Path, table: Judgements) -> Judgements:
    """Without the records whose texts a profile learned from: they cannot test it."""
    if not isinstance(metric, Profile):
        return table
    if "texts" in metric.profile.content["data"]:
        known = set(metric.profile.content["data"]["texts"])
        return table.where([text not in known for text in text_hashes(table)])
    if path.stem in metric.profile.learned_from:
        raise UsageError(
            f"{path}: {metric} learned from a file called {path.name}, which therefore cannot test it; rename it if it "
            "is another one"
        )
    return table


def reaches(r: float | None, floor: float) -> bool:
    """Is the agreement high enough? A metric without one (constant scores, say) never passes."""
    return r is not None and r >= floor


def no_r(dimension: Mapping[str, Any]) -> str:
    """Why there is no r; certificates of earlier versions do not say."""
    return dimension.get("reason") or "the certificate does not say why"


def _dimension(table: Judgements, asked: CertificateOptions) -> dict[str, Any]:
    (name,) = table.dimensions
    whole = _agreement(with_baselines(table), asked)
    own = whole.pop(table.metrics[0])
    parts = {by: _slices(table, by, asked) for by in asked.by}
    return {
        **own,
        "baselines": {spec: found["r"] for spec, found in whole.items()},
        "beats_baselines": own.pop("mark") == "" and own["r"] is not None,
        "human_ceiling": human_ceiling(table, name),
        "slices": {by: found for by, found in parts.items() if found},
        "bias": bias(table),
    }


def _agreement(table: Judgements, asked: CertificateOptions) -> dict[str, dict[str, object]]:
    """Pearson's r with its interval, of every metric of a table with one dimension."""
    found = evaluate(table, coefficients=("pearson",), draws=asked.draws, seed=asked.seed)
    return {
        row.metric: {
            "r": row.values.get("pearson"),
            "ci95": [row.low.get("pearson"), row.high.get("pearson")],
            "n": row.records,
            "mark": row.mark,
            "reason": row.reason,
        }
        for row in found.rows
    }


def _slices(table: Judgements, by: str, asked: CertificateOptions) -> dict[str, object]:
    """Agreement within each part of the file that is large enough."""
    try:
        parts = list(slices(table, by))
    except UsageError:
        if by in CertificateOptions.by:  # a default, and the file has no such field
            return {}
        raise
    found: dict[str, Any] = {}
    for label, part in parts:
        usable = np.isfinite(part.scores[:, 0]) & np.isfinite(part.human[:, 0])
        if len(parts) < 2 or usable.sum() < FEWEST or np.ptp(part.human[usable, 0]) == 0:
            continue
        if np.ptp(part.scores[usable, 0]) == 0:
            continue
        one = _agreement(part, asked)[part.metrics[0]]
        found[label] = {key: one[key] for key in ("r", "ci95", "n")}
    return found


def human_ceiling(table: Judgements, dimension: str) -> dict[str, Any] | None:
    """How well one rater agrees with the mean of the others: what a judge can be expected to reach."""
    if not any(dimension in record.ratings for record in table.records):
        return None
    matrix = rating_matrix(table.records, dimension)  # raters × records
    values = []
    for k in range(len(matrix)):
        others = np.delete(matrix, k, axis=0)
        count = np.isfinite(others).sum(axis=0)
        rest = np.nansum(others, axis=0) / np.maximum(count, 1)
        found = coefficient(matrix[k], np.where(count > 0, rest, np.nan))
        if found.value is not None and found.n >= FEWEST:
            values.append(found.value)
    return {"r": float(np.mean(values)), "raters": len(values)} if values else None


def bias(table: Judgements) -> dict[str, Any]:
    """What the score follows besides the rating: the length of the text, and the system that wrote it.

    Both are about the standardised score minus what the rating explains of it."""
    score, human = table.scores[:, 0], table.human[:, 0]
    both = np.isfinite(score) & np.isfinite(human)
    if both.sum() < FEWEST or np.ptp(score[both]) == 0:
        return {}
    z = (score[both] - score[both].mean()) / score[both].std()
    h = human[both] - human[both].mean()
    rest = z - h * float((z * h).sum() / max(float((h * h).sum()), 1e-12))
    records = [record for record, kept in zip(table.records, both, strict=True) if kept]
    length = np.array([len(r.judged_text.split()) for r in records], dtype=np.float64)
    found: dict[str, Any] = {}
    if (by_length := coefficient(length, rest)).value is not None:
        found["length"] = by_length.value
    systems = Counter(sorted(r.system for r in records if r.system is not None))
    shifts = {name: float(rest[[r.system == name for r in records]].mean()) for name in systems}
    if len(shifts) > 1:
        most, least = max(shifts, key=shifts.__getitem__), min(shifts, key=shifts.__getitem__)
        found["systems"] = {
            "favoured": [most, shifts[most], systems[most]],
            "disfavoured": [least, shifts[least], systems[least]],
        }
    return found


def _repeats(metric: Metric, result: Result, models: ModelSet | None) -> dict[str, object]:
    """The same records scored again, nothing cached: the largest difference."""
    import elench

    spec = str(metric)
    known = [
        (r, o.scores[spec].value) for r, o in zip(result.records, result.outcomes, strict=True) if spec in o.scores
    ]
    step = max(1, len(known) // REPEATED)
    chosen = known[::step][:REPEATED]
    again = elench.score([r for r, _ in chosen], [metric], models=models, cache=False).values(spec)
    gaps = [abs(value - once) for value, (_, once) in zip(again, chosen, strict=True) if value is not None]
    return {"n": len(chosen), "failed": len(chosen) - len(gaps), "largest_difference": max(gaps, default=None)}


def _position(result: Result, spec: str) -> float | None:
    """Mean position bias of a pairwise judge."""
    found = [o.scores[spec].evidence.get("position_bias") for o in result.outcomes if spec in o.scores]
    numbers = [value for value in found if isinstance(value, float)]
    return float(np.mean(numbers)) if numbers else None


def read_certificate(path: Path) -> dict[str, Any]:
    """A certificate whose hash still fits its content."""
    if not path.is_file():
        raise UsageError(f"{path}: no such file; make a certificate with `elench certify`")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise UsageError(f"{path}: cannot be read as a certificate ({problem})") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UsageError(f"{path}: not a certificate of `elench certify`")
    if content.get("sha256") != content_hash(content):
        raise UsageError(f"{path}: its content does not match its sha256; run `elench certify` again")
    return content


def require(paths: Sequence[Path], signatures: Mapping[str, str]) -> Iterator[str]:
    """Refuse a run in which a metric has no certificate, another signature than its certificate, or one that failed;
    for each metric a line on what its certificate says."""
    held = {content["spec"]: (path, content) for path in paths for content in [read_certificate(path)]}
    for spec, signature in signatures.items():
        if spec not in held:
            raise UsageError(f"{spec}: no certificate is for this metric; run: elench certify {spec} RATED.jsonl")
        path, content = held[spec]
        if content["signature"] != signature:
            raise UsageError(
                f"{path}: {spec} has changed since it was certified; certified: {content['signature']}; now: "
                f"{signature}; run `elench certify` again"
            )
        low = {name: d for name, d in content["dimensions"].items() if not reaches(d["r"], content["floor"])}
        if low:
            figures = ", ".join(
                f"{name} has no r ({no_r(d)})" if d["r"] is None else f"{name} r = {d['r']:.3f}"
                for name, d in low.items()
            )
            raise UsageError(f"{path}: {spec} is below the floor {content['floor']:g}: {figures}")
        said = [f"{name} r = {d['r']:.3f} (n = {d['n']})" for name, d in content["dimensions"].items()]
        yield f"{path}: {spec} is certified on {content['data']['file']}: {', '.join(said)}"
